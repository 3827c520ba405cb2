#!/usr/bin/env python3
"""A CPU that goes offline and comes back while it is recorded: it is recorded again, with stacks, programs and probes, within a
second, and this is reported at once and in the capture.

It changes the machine, so it only runs where TACHO_MAY_CHANGE_MACHINE=1 says that nobody minds (tests/vm)."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import programs

SWITCH = Path("/sys/devices/system/cpu/cpu1/online")
SWITCHES = {int(path.parent.name.removeprefix("cpu")): path for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/online")}
HAS_FOUR = SWITCH.exists() and {1, 2, 3} <= SWITCHES.keys()


@programs.needs_root
@unittest.skipUnless(os.environ.get("TACHO_MAY_CHANGE_MACHINE") == "1", "needs a machine that may be changed (tests/vm)")
@unittest.skipUnless(SWITCH.exists(), "needs a second processor that can go offline")
class Hotplug(programs.Scratch):
    def setUp(self):
        super().setUp()
        for switch in SWITCHES.values():
            self.addCleanup(switch.write_text, "1")
            switch.write_text("1")

    def started(self, *words):
        with open(self.folder / "log", "wb") as log:
            run = subprocess.Popen([programs.BIN / "tacho-record", "-o", "h.data", *words], cwd=self.folder, stderr=log,
                                   stdout=log)
        self.addCleanup(lambda: run.poll() is None and (run.kill(), run.wait()))
        self.wait_for(b"has begun")
        return run

    def log(self):
        return (self.folder / "log").read_bytes()

    def wait_for(self, words, count=1):
        for _ in range(1200):
            if self.log().count(words) >= count:
                return
            time.sleep(0.05)
        self.fail(f"never said {words}: " + self.log().decode())

    def ended(self, run):
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(120), 0, self.log().decode())

    def goes_and_comes(self, cpu, count=1):
        SWITCHES[cpu].write_text("0")
        self.wait_for(f"CPU {cpu} went offline".encode(), count)
        SWITCHES[cpu].write_text("1")
        self.wait_for(f"CPU {cpu} came online".encode(), count)

    @staticmethod
    def busy_on(cpu, seconds=0.5):
        subprocess.run(["taskset", "-c", str(cpu), "timeout", str(seconds), "dd", "if=/dev/zero", "of=/dev/null", "bs=4k"],
                       stderr=subprocess.DEVNULL, check=False)

    def busy_on_cpu_1(self, seconds=1.5):
        self.busy_on(1, seconds)

    def events_of(self, cpu, *options):
        """Number and times of the CPU's samples, by event."""
        text = self.tacho("script", "-i", "h.data", "-F", "cpu,time,event", *options).stdout.decode()
        found = {}
        for at, time_text, event in re.findall(r"^\s*\[(\d+)\]\s+([\d.]+):\s+(\S+):", text, re.MULTILINE):
            if int(at) == cpu:
                found.setdefault(event, []).append(float(time_text))
        return found

    def assert_whole_stacks_since(self, time_text):
        """User stacks come from the unwinder, which is another event of the CPU."""
        text = self.tacho("script", "-i", "h.data", "--time", f"{time_text},", "-C", "1", "--comms", "dd", "-F", "ip,sym",
                          "--event", "cpu-clock").stdout.decode()
        stacks = [stack for stack in text.split("\n\n") if stack.strip()]
        whole = sum("_start" in stack for stack in stacks)
        self.assertGreater(len(stacks), 20)
        self.assertGreater(whole, 0.9 * len(stacks))

    def test_a_cpu_that_comes_back_is_recorded_again(self):
        run = self.started("-a", "-e", "cpu-clock,sched:sched_switch", "-g")
        self.busy_on_cpu_1()
        SWITCH.write_text("0")
        self.wait_for(b"CPU 1 went offline")
        time.sleep(3)
        SWITCH.write_text("1")
        self.wait_for(b"CPU 1 came online")
        self.busy_on_cpu_1()
        self.ended(run)
        self.assertRegex(self.log(), rb"CPU 1 came online \([\d.]+ s after the start\), and is recorded")
        for event, times in self.events_of(1).items():
            gap, before = max((later - earlier, earlier) for earlier, later in zip(times, times[1:]))
            self.assertGreater(gap, 2, f"{event}: it was offline")
            self.assertGreater(len([at for at in times if at > before]), 10, f"{event}: after its return")
        header = self.tacho("header", "-i", "h.data").stdout.decode()
        self.assertRegex(header, r"(?s)# CPUs : CPU 1 offline .*# CPUs : CPU 1 online [\d.]+ s after the start, recorded")
        self.assert_whole_stacks_since(before)
        if shutil.which("perf"):
            self.same_scripts("h.data", "-F", "comm,cpu,time,event,ip")

    def test_again_and_again(self):
        run = self.started("-a", "-e", "cpu-clock")
        for count in range(1, 4):
            self.goes_and_comes(1, count)
            self.busy_on_cpu_1(0.5)
        self.ended(run)
        self.assertGreater(len(self.events_of(1)["cpu-clock"]), 100)
        self.assertNotIn(b"not recorded", self.log())

    def test_one_that_was_off_line_at_first(self):
        SWITCH.write_text("0")
        run = self.started("-a", "-e", "cpu-clock", "-g")
        time.sleep(0.3)
        for count in (1, 2):  # the second time it has rings already
            SWITCH.write_text("1")
            self.wait_for(b"CPU 1 came online", count)
            self.busy_on_cpu_1(1)
            if count == 1:
                SWITCH.write_text("0")
                self.wait_for(b"CPU 1 went offline")
                time.sleep(0.3)
        self.ended(run)
        self.assertNotIn(b"not recorded", self.log())
        self.assertGreater(len(self.events_of(1)["cpu-clock"]), 100)
        times = self.events_of(1)["cpu-clock"]
        gap, before = max((later - earlier, earlier) for earlier, later in zip(times, times[1:]))
        self.assertGreater(gap, 0.2)
        self.assert_whole_stacks_since(times[0])
        self.assert_whole_stacks_since(before)

    def test_processes_go_on_by_themselves(self):
        load = subprocess.Popen(["taskset", "-c", "0,1", "timeout", "60", "sh", "-c", "while :; do :; done"])
        self.addCleanup(lambda: (load.kill(), load.wait()))
        run = self.started("-g", "-e", "cpu-clock", "-p", str(load.pid))
        self.goes_and_comes(1)
        self.ended(run)
        self.assertNotIn(b"not recorded", self.log())

    def test_programs_probes_and_conditions(self):
        run = self.started("-a", "-e", "open/comm=cat/", "-e", "uprobe:libc.so.6:getenv(name:string)", "-e", "cpu-clock",
                           "--filter", 'comm == "dd"')
        self.goes_and_comes(1)
        self.run_program("taskset", "-c", "1", "cat", "/etc/hostname")
        self.busy_on_cpu_1(0.5)
        self.ended(run)
        found = self.events_of(1)
        self.assertIn("open", found, self.log().decode())
        self.assertIn("cpu-clock", found)
        self.assertTrue(any("getenv" in event for event in found), found.keys())
        comms = self.tacho("script", "-i", "h.data", "--event", "cpu-clock", "-F", "comm").stdout.split()
        self.assertEqual(set(comms), {b"dd"})

    def test_snapshots(self):
        run = self.started("-a", "-e", "cpu-clock", "--overwrite")
        self.goes_and_comes(1)
        self.busy_on_cpu_1(0.5)
        self.ended(run)
        self.assertGreater(len(self.events_of(1)["cpu-clock"]), 20)

    def test_one_that_nobody_saw_away(self):
        """As during suspend: the recorder does not run either."""
        run = self.started("-a", "-e", "cpu-clock")
        for count in (1, 2):
            run.send_signal(signal.SIGSTOP)
            SWITCH.write_text("0")
            SWITCH.write_text("1")
            run.send_signal(signal.SIGCONT)
            self.wait_for(b"CPU 1 came online", count)
        self.busy_on(1)
        time.sleep(0.5)
        self.ended(run)
        self.assertEqual(self.log().count(b"CPU 1 came online"), 2, self.log())
        self.assertEqual(self.log().count(b"CPU 1 went offline"), 2, self.log())
        self.assertGreater(len(self.events_of(1)["cpu-clock"]), 50)

    def test_programs_on_samples_are_let_go_with_them(self):
        (self.folder / "ticks.bpf.c").write_text("""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <tacho/event.h>
struct tick { __u64 count; };
EVENT(ticks, struct tick);
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} channel SEC(".maps") EVENT_CHANNEL(ticks);
SEC("perf_event")
int on_tick(void *context) {
  struct tick tick = {7};
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &tick, sizeof tick);
  return 1;
}
char LICENSE[] SEC("license") = "GPL";
""")
        run = self.started("-a", "-F", "199", "-e", "./ticks.bpf.c")
        descriptors = []
        for count in range(1, 4):
            self.goes_and_comes(1, count)
            self.busy_on(1)
            descriptors.append(len(os.listdir(f"/proc/{run.pid}/fd")))
        self.ended(run)
        self.assertNotIn(b"not recorded", self.log())
        self.assertEqual(len(set(descriptors)), 1, descriptors)
        self.assertGreater(len(self.events_of(1)["ticks"]), 50)

    def test_events_that_do_not_continue_are_named(self):
        shutil.copy(os.path.realpath(programs.BIN / "deep_library.so"), self.folder / "goes.so")
        run = self.started("-a", "-e", "{cpu-clock,page-faults}:S", "-e", "sched:sched_switch", "-e", "uprobe:./goes.so:deep_library")
        (self.folder / "goes.so").unlink()
        self.goes_and_comes(1)
        self.busy_on(1)
        self.ended(run)
        line = next(line for line in self.log().decode().splitlines() if "came online" in line)
        self.assertRegex(line, r"and is recorded but for cpu-clock: samples with counts of a group \(:S\) cannot be recorded again; "
                               r"page-faults: samples with counts of a group \(:S\) cannot be recorded again")
        self.assertIn("sched:sched_switch", self.events_of(1))
        self.assertIn(line.partition(", and is ")[2], self.tacho("header", "-i", "h.data").stdout.decode())

    @unittest.skipUnless(HAS_FOUR, "needs four processors")
    def test_those_of_a_list(self):
        run = self.started("-C", "0,2", "-e", "cpu-clock")
        self.goes_and_comes(2)
        SWITCHES[3].write_text("0")
        SWITCHES[3].write_text("1")
        self.busy_on(2)
        self.busy_on(3)
        self.ended(run)
        self.assertNotIn(b"not recorded", self.log())
        self.assertNotIn(b"CPU 3", self.log())
        self.assertGreater(len(self.events_of(2)["cpu-clock"]), 50)
        self.assertEqual(self.events_of(3), {})

    @unittest.skipUnless(HAS_FOUR, "needs four processors")
    def test_rings_of_cpus_that_come_later(self):
        """More memory than the mlock limit, which depends on the number of online CPUs."""
        for cpu in (1, 2, 3):
            SWITCHES[cpu].write_text("0")
        run = self.started("-a", "-v", "-m", "1024", "-e", "cpu-clock", "-g")
        for cpu in (3, 1, 2):
            SWITCHES[cpu].write_text("1")
            self.wait_for(f"CPU {cpu} came online".encode())
            self.busy_on(cpu, 1)
        self.goes_and_comes(3)
        self.busy_on(3)
        self.ended(run)
        self.assertNotIn(b"not recorded", self.log())
        self.assertRegex(self.log(), rb"capabilities kept while recording: .*cap_ipc_lock")
        for cpu in (1, 2, 3):
            self.assertGreater(len(self.events_of(cpu)["cpu-clock"]), 100)

    @unittest.skipUnless(HAS_FOUR, "needs four processors")
    def test_no_memory_for_cpus_that_come_later(self):
        for cpu in (1, 2, 3):
            SWITCHES[cpu].write_text("0")
        log = open(self.folder / "log", "wb")
        self.addCleanup(log.close)
        run = subprocess.Popen(["setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock", "prlimit", "--memlock=65536",
                                programs.BIN / "tacho-record", "-o", "h.data", "-a", "-e", "cpu-clock"], cwd=self.folder, stderr=log,
                               stdout=log)
        self.addCleanup(lambda: run.poll() is None and (run.kill(), run.wait()))
        self.wait_for(b"has begun")
        for name, value in (("perf_event_mlock_kb", "0"), ("perf_event_paranoid", "2")):
            setting = Path("/proc/sys/kernel") / name
            self.addCleanup(setting.write_text, setting.read_text())
            setting.write_text(value)
        SWITCHES[3].write_text("1")
        self.wait_for(b"CPU 3 came online")
        self.ended(run)
        self.assertRegex(self.log(), rb"CPU 3 came online \([^)]*\), and is not recorded: .*(lock|permitted)")
        self.assertGreater(len(self.events_of(0)["cpu-clock"]), 0)


if __name__ == "__main__":
    programs.main()
