#!/usr/bin/env python3
"""--filter of sampled events, probes and BPF objects, applied in the kernel before a stack is walked."""
import os
import re
import subprocess
import unittest
from pathlib import Path

import programs

LOAD = programs.BIN / "getppid_load"
FILLED = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <tacho/emit.h>
struct one { __u64 number; __s32 half; char word[12]; };
EVENT(numbers, struct one);
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} channel SEC(".maps") EVENT_CHANNEL(numbers);
__u64 counted = 0;
SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  struct one event = {.word = "even"};
  event.number = __sync_fetch_and_add(&counted, 1);
  event.half = -(__s32)(event.number / 2);
  if (event.number & 1) __builtin_memcpy(event.word, "odd", 4);
  if (!tacho_wants_this(numbers, &event)) return 1;
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 1;
}
char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""
RING = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <tacho/emit.h>
struct one { __u64 number; };
EVENT(numbers, struct one);
RING_CHANNEL(ring, numbers, 1 << 20);
__u64 counted = 0;
SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  struct one *event = tacho_reserve(ring, struct one);
  if (!event) return 1;
  event->number = __sync_fetch_and_add(&counted, 1);
  tacho_submit(ring, event);
  return 1;
}
char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""
# A program that reserves an event for another thread: a condition on the current thread says nothing about it.
RING_FOR = RING.replace("tacho_reserve(ring, struct one)", "tacho_reserve_for(ring, struct one, 1, 1)")
ASKS = FILLED.replace("tacho_wants_this(numbers, &event)", "tacho_wants()")
TELLS = FILLED.replace("!tacho_wants_this(numbers, &event)", "0")


class Filters(programs.Scratch):
    def record(self, *words, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", *words, status=status).stderr.decode()

    def script(self, fields):
        return self.tacho("script", "-i", "out.data", "-F", fields).stdout.decode().splitlines()

    def taken(self):
        return len(self.script("event"))


@programs.needs_root
class OfSamples(Filters):
    """Page faults and context switches, whose numbers are known or large; no clock ticks."""
    FAULTS = ["-a", "-e", "page-faults", "-c", "1"]
    SHELL = ["--", "sh", "-c", "for i in 1 2 3; do /bin/true; /bin/echo; done"]

    def test_a_name_alone(self):
        self.record(*self.FAULTS, *self.SHELL)
        self.assertGreater(len({line.strip() for line in self.script("comm")}), 1)
        self.record(*self.FAULTS, "--filter", 'comm == "echo"', *self.SHELL)
        self.assertEqual({line.strip() for line in self.script("comm")}, {"echo"})
        self.record(*self.FAULTS, "--filter", 'comm !~ "ec*" && comm ~ "tr*"', *self.SHELL)
        self.assertEqual({line.strip() for line in self.script("comm")}, {"true"})

    def test_processes_users_and_cpus(self):
        self.record(*self.FAULTS, "--filter", f"pid == {os.getpid()}", *self.SHELL)
        self.assertLessEqual({line.strip() for line in self.script("pid")}, {str(os.getpid())})
        self.record(*self.FAULTS, "--filter", "cpu == 0", "--filter", 'comm != "nosuch"', *self.SHELL)
        self.assertLessEqual({line.strip() for line in self.script("cpu")}, {"[000]"})
        self.record(*self.FAULTS, "--filter", "uid == 1234567 || gid == 7654321", *self.SHELL)
        self.assertEqual(self.taken(), 0)
        self.record(*self.FAULTS, "--filter", f"uid == {os.getuid()} && gid == {os.getgid()}", *self.SHELL)
        self.assertGreater(self.taken(), 10)
        self.record(*self.FAULTS, "--exclude-perf", *self.SHELL)
        self.assertNotIn("tacho-record", {line.strip() for line in self.script("comm")})

    def test_beside_the_walk_of_stacks(self):
        self.record("--call-graph", "eh", *self.FAULTS, "--filter", 'comm == "echo"', *self.SHELL)
        self.assertEqual({line.strip() for line in self.script("comm") if line.strip()}, {"echo"})
        stacks = self.tacho("script", "-i", "out.data", "-F", "comm,ip,sym").stdout.decode()
        self.assertGreater(max(len(one.splitlines()) for one in stacks.split("\n\n")), 4, "stacks are walked")

    def test_of_probes(self):
        self.record("-a", "-e", f"uprobe:{LOAD}:call_at_depth", "--filter", 'comm == "getppid_load"', "--", LOAD, "50")
        taken = self.taken()
        self.assertGreaterEqual(taken, 50)
        self.record("-a", "-e", f"uprobe:{LOAD}:call_at_depth", "--filter", 'comm == "other"', "--", LOAD, "50")
        self.assertEqual(self.taken(), 0)
        self.record("-a", "-g", "-e", f"uprobe:{LOAD}:call_at_depth", "--filter", 'comm ~ "getppid*"', "--", LOAD, "50")
        self.assertEqual(self.taken(), self.script_blocks())

    def script_blocks(self):
        return len([one for one in self.tacho("script", "-i", "out.data").stdout.decode().split("\n\n") if one.strip()])

    def test_control_groups(self):
        mount = next((line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()
                      if line.split()[2] == "cgroup2"), None)
        if mount is None:
            self.skipTest("no cgroups of version 2")
        outer = os.path.join(mount, f"tacho_filter_{os.getpid()}")
        inner = os.path.join(outer, "inner")
        try:
            os.makedirs(inner)
        except OSError as refused:
            self.skipTest(f"no cgroup can be made: {refused}")
        try:
            for place, comm in ((outer, "cat"), (inner, "sort")):
                subprocess.run(["sh", "-c", f'echo $$ > {place}/cgroup.procs; exec true'], check=True)
            both = ["--", "sh", "-c", f"(echo 0 > {outer}/cgroup.procs; exec cat /dev/null); "
                                      f"(echo 0 > {inner}/cgroup.procs; exec sort /dev/null); ls /dev/null"]
            name = outer[len(mount):]
            for condition, expected in ((f'cgroup == "{name}"', {"cat"}), (f'cgroup ~ "{name}/*"', {"sort"}),
                                        (f'cgroup_id == {os.stat(inner).st_ino}', {"sort"})):
                self.record(*self.FAULTS, "--filter", condition, *both)
                comms = {line.strip() for line in self.script("comm")} - {"sh"}
                self.assertEqual(comms, expected, condition)
                place = name if expected == {"cat"} else name + "/inner"
                self.assertEqual({line.strip() for line in self.script("cgroup")}, {place})
            refused = self.record(*self.FAULTS, "--filter", f'cgroup == "{name}/nosuch"', "--", "true", status=1)
            self.assertIn("there is no cgroup", refused)
        finally:
            os.rmdir(inner)
            os.rmdir(outer)

    def test_conditions_that_the_kernel_cannot_evaluate_are_refused(self):
        for words, expected in (
                (["-e", "cs", "--filter", "time > 5"], "there is no 'time' that the kernel can test"),
                (["-e", "cs", "--filter", "pid >"], "--filter: "),
                (["-e", "cs,sched:sched_switch", "--filter", "pid > 5"], "have another language for it"),
                (["-e", "bpf-output/name=x/", "--filter", "pid > 5"], "put it after the -e of the program"),
                (["--filter", "pid > 5"], "it belongs after the -e that it is for")):
            errors = self.record(*words, "--", "true", status=1)
            self.assertIn(expected, errors)


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class OfObjects(Filters):
    def setUp(self):
        super().setUp()
        for name, source in (("filled", FILLED), ("ring", RING), ("asks", ASKS), ("tells", TELLS),
                             ("ring_for", RING_FOR)):
            (self.folder / f"{name}.bpf.c").write_text(source)

    def numbers(self):
        return [int(found) for found in re.findall(r"number=(\d+)", "\n".join(self.script("event,payload")))]

    def load(self, event, condition, status=0):
        return self.record("-e", f"./{event}.bpf.c", "--filter", condition, "--", "taskset", "-c", "0", LOAD, "40",
                           status=status)

    def test_members_of_the_payload(self):
        # Numbered by the program over all threads: the numbers are known, how many are recorded is not.
        errors = self.load("filled", "number & 1 == 0 && half <= -3")
        numbers = self.numbers()
        self.assertGreater(len(numbers), 10, errors)
        self.assertTrue(all(number % 2 == 0 and number >= 6 for number in numbers), numbers)
        self.load("filled", 'word == "odd" || number == 8')
        numbers = self.numbers()
        self.assertGreater(len(numbers), 10)
        self.assertTrue(all(number % 2 == 1 or number == 8 for number in numbers), numbers)

    def test_members_of_ring_buffers(self):
        errors = self.load("ring", "number >= 20")
        self.assertEqual(self.numbers(), list(range(20, 40)), errors)
        self.assertIn("(20 samples, 0 lost)", errors)

    def test_before_the_event_is_filled(self):
        for program in ("asks", "ring", "filled"):
            self.load(program, 'comm == "getppid_load"')
            self.assertEqual(self.taken(), 40, program)
            self.load(program, 'comm ~ "x*" || cpu > 9999')
            self.assertEqual(self.taken(), 0, program)

    def test_a_program_that_does_not_ask_is_refused(self):
        self.assertIn("does not call tacho_wants() (tacho/emit.h)", self.load("tells", "pid > 5", status=1))
        self.assertIn("does not check its event 'numbers' after filling it", self.load("asks", "number > 5", status=1))
        for condition in ('comm == "getppid_load"', 'comm == "getppid_load" && number > 5'):
            self.assertIn("does not call tacho_wants()", self.load("ring_for", condition, status=1))
        self.assertIn("there is no 'nosuch'", self.load("filled", "nosuch > 5", status=1))

    def test_recorders(self):
        """Some are checked when the event is filled, some at the start of what it describes, some for members only."""
        opens = ["--", "sh", "-c", "for i in 1 2 3; do cat /etc/hostname /etc/nosuch; head -c1 /etc/hostname; done"]
        comms = lambda: {line.strip() for line in self.script("comm")}
        paths = lambda: set(re.findall(r'path="([^"]*)"', "\n".join(self.script("event,payload"))))
        self.record("-e", "open", "--filter", 'comm == "head" && cpu < 9999', *opens)
        self.assertEqual(comms(), {"head"})
        self.record("-e", "open", "--filter", 'error == ENOENT && path ~ "/etc/no*"', *opens)
        self.assertEqual((comms(), paths()), ({"cat"}, {"/etc/nosuch"}))
        self.record("-e", "open", "--max-rate", "1000", "--filter", 'path == "/etc/nosuch"', *opens)
        self.assertEqual(self.taken(), 3)
        naps = ["--", "sh", "-c", "sleep 0.2; sleep 0.01; nice sleep 0.3"]
        self.record("-e", "offcpu", "--filter", 'comm == "sleep"', *naps)
        self.assertEqual(comms(), {"sleep"})
        self.record("-e", "offcpu", "--filter", "off_ns >= 100000000 && state == S", *naps)
        self.assertEqual((comms() - {"sh"}, "sleep" in comms()), ({"sleep"}, True))
        self.record("-e", "offcpu", "--filter", "uid == 1234567", *naps)
        self.assertEqual(self.taken(), 0)
        self.record("-e", "runqlat", "--filter", "wait_ns >= 3600000000000", *naps)
        self.assertEqual(self.taken(), 0)

    def test_conditions_that_recorders_do_not_take(self):
        for recorder, condition, expected in (
                ("runqlat", "pid > 5", "a condition may only use members of its event"),
                ("offcpu", "pid > 5 && off_ns > 5", "condition can use either, not both"),
                ("open", "nosuch > 5", "there is no 'nosuch'")):
            self.assertIn(expected, self.record("-e", recorder, "--filter", condition, "--", "true", status=1))
        for recorder, expected in (("open", "pid, tid, uid, gid, cpu, comm, cgroup and members"), ("runqlat", "can use members of the event"),
                                   ("func", "cpu, comm and cgroup (")):
            self.assertIn(expected, self.run_program(programs.BIN / "tacho-record", "-e", f"{recorder}/help/").stdout.decode())

    def test_the_longest_condition(self):
        condition = " || ".join(f"number == {2 * number}" for number in range(32))
        self.load("filled", condition)
        numbers = self.numbers()
        self.assertGreater(len(numbers), 10)
        self.assertTrue(all(number % 2 == 0 and number < 64 for number in numbers), numbers)

    def control(self, *commands, event="./ring.bpf.c"):
        """Runs the recorder; a command that is a number means that many calls. Returns its messages."""
        for name in ("commands", "answers"):
            os.mkfifo(self.folder / name)
        # Calls of other processes are not in this recording.
        recorder = subprocess.Popen(
            [programs.BIN / "tacho-record", "-o", "out.data", "-a", "-e", event, "--filter", 'comm == "getppid_load"', "--max-rate",
             "1000", "-D", "-1", "--control", "fifo:commands,answers"], cwd=self.folder, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, HOME=str(self.folder)))
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        said = ""
        while "Ready" not in said:
            line = recorder.stderr.readline()
            self.assertTrue(line, said)
            said += line
        with open(self.folder / "commands", "w") as to, open(self.folder / "answers") as answers:
            for command in commands:
                if isinstance(command, int):
                    subprocess.run([LOAD, str(command)], check=True)
                else:
                    print(command, file=to, flush=True)
                    answers.readline()
        said += recorder.stderr.read()
        self.assertEqual(recorder.wait(timeout=60), 0, said)
        return said

    def test_nothing_counts_while_samples_are_off(self):
        """While events are off, the attached program writes no events, so that its ring is not full and none counts as lost."""
        said = self.control(100000, "enable", 20, "disable", 100000, "stop")
        self.assertRegex(said, r" 0 lost\)")
        self.assertNotIn("more than --max-rate", said)
        self.assertEqual(self.numbers(), list(range(20)))

    def test_max_rate_counts_while_events_are_enabled(self):
        said = self.control("enable", 3000, "disable", "stop")
        self.assertRegex(said, r"[12]\d{3} events of BPF programs above --max-rate 1000 dropped")

    def test_tachos_own_globals_cannot_be_set(self):
        for name in ("tacho_follows=1", "tacho_one_in=3", "tacho_filter=1", "tacho_nosuch=1"):
            errors = self.record("-e", f"./asks.bpf.c/{name}/", "--", "true", status=1)
            self.assertIn("are reserved: options set them", errors)
        errors = self.record("-e", "./asks.bpf.c/nosuch=1/", "--", "true", status=1)
        self.assertNotIn("tacho_", errors.replace("tacho-record", ""))


if __name__ == "__main__":
    programs.main()
