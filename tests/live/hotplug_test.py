#!/usr/bin/env python3
"""A processor that goes and comes back while it is recorded: it is recorded again, with stacks, programs and probes, within a
second, and what happened is told at once and in the capture.

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


@programs.needs_root
@unittest.skipUnless(os.environ.get("TACHO_MAY_CHANGE_MACHINE") == "1", "needs a machine that may be changed (tests/vm)")
@unittest.skipUnless(SWITCH.exists(), "needs a second processor that can go off line")
class Hotplug(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.addCleanup(SWITCH.write_text, "1")
        SWITCH.write_text("1")

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

    @staticmethod
    def busy_on_cpu_1(seconds=1.5):
        """Dies with the CPU's going: taskset would move it otherwise."""
        subprocess.run(["taskset", "-c", "1", "timeout", str(seconds), "dd", "if=/dev/zero", "of=/dev/null", "bs=4k"],
                       stderr=subprocess.DEVNULL, check=False)

    def events_of(self, cpu, *options):
        """How many samples of each event the CPU has, and the times of them."""
        text = self.tacho("script", "-i", "h.data", "-F", "cpu,time,event", *options).stdout.decode()
        found = {}
        for at, time_text, event in re.findall(r"^\s*\[(\d+)\]\s+([\d.]+):\s+(\S+):", text, re.MULTILINE):
            if int(at) == cpu:
                found.setdefault(event, []).append(float(time_text))
        return found

    def assert_whole_stacks_since(self, time_text):
        """The user's side of stacks comes from a walk, which is another event of the CPU."""
        text = self.tacho("script", "-i", "h.data", "--time", f"{time_text},", "-C", "1", "--comms", "dd", "-F", "ip,sym",
                          "--event", "cpu-clock").stdout.decode()
        stacks = [stack for stack in text.split("\n\n") if stack.strip()]
        whole = sum("_start" in stack for stack in stacks)
        self.assertGreater(len(stacks), 20)
        self.assertGreater(whole, 0.9 * len(stacks))

    def test_what_comes_back_is_recorded_again(self):
        run = self.started("-a", "-e", "cpu-clock,sched:sched_switch", "-g")
        self.busy_on_cpu_1()
        SWITCH.write_text("0")
        self.wait_for(b"CPU 1 went off line")
        time.sleep(3)
        SWITCH.write_text("1")
        self.wait_for(b"CPU 1 came on line")
        self.busy_on_cpu_1()
        self.ended(run)
        self.assertRegex(self.log(), rb"CPU 1 came on line \([\d.]+ s after the beginning\), and is recorded")
        for event, times in self.events_of(1).items():
            gap, before = max((later - earlier, earlier) for earlier, later in zip(times, times[1:]))
            self.assertGreater(gap, 2, f"{event}: it was off line")
            self.assertGreater(len([at for at in times if at > before]), 10, f"{event}: after its return")
        header = self.tacho("header", "-i", "h.data").stdout.decode()
        self.assertRegex(header, r"(?s)# CPUs : CPU 1 off line .*# CPUs : CPU 1 on line [\d.]+ s after the beginning, recorded")
        self.assert_whole_stacks_since(before)
        if shutil.which("perf"):
            self.same_scripts("h.data", "-F", "comm,cpu,time,event,ip")

    def test_again_and_again(self):
        run = self.started("-a", "-e", "cpu-clock")
        for count in range(1, 4):
            SWITCH.write_text("0")
            self.wait_for(b"CPU 1 went off line", count)
            SWITCH.write_text("1")
            self.wait_for(b"CPU 1 came on line", count)
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
            self.wait_for(b"CPU 1 came on line", count)
            self.busy_on_cpu_1(1)
            if count == 1:
                SWITCH.write_text("0")
                self.wait_for(b"CPU 1 went off line")
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
        SWITCH.write_text("0")
        self.wait_for(b"CPU 1 went off line")
        SWITCH.write_text("1")
        self.wait_for(b"CPU 1 came on line")
        self.ended(run)
        self.assertNotIn(b"not recorded", self.log())

    def test_programs_probes_and_conditions(self):
        run = self.started("-a", "-e", "open/comm=cat/", "-e", "uprobe:libc.so.6:getenv(name:string)", "-e", "cpu-clock",
                           "--filter", 'comm == "dd"')
        SWITCH.write_text("0")
        self.wait_for(b"CPU 1 went off line")
        SWITCH.write_text("1")
        self.wait_for(b"CPU 1 came on line")
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
        SWITCH.write_text("0")
        self.wait_for(b"CPU 1 went off line")
        SWITCH.write_text("1")
        self.wait_for(b"CPU 1 came on line")
        self.busy_on_cpu_1(0.5)
        self.ended(run)
        self.assertGreater(len(self.events_of(1)["cpu-clock"]), 20)


if __name__ == "__main__":
    programs.main()
