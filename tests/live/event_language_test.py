#!/usr/bin/env python3
"""perf's event syntax with events of this machine: perf reads every capture and prints the same as tacho
does; events that cannot be opened are refused with a message."""
import os
import re
import subprocess
import sys
import unittest

import programs

# Writes its own address of a variable, and changes the variable a few times.
WRITER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
long watched;
int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "where") == 0) { printf("%p\n", (void*)&watched); return 0; }
  for (long i = 1; i <= 7; ++i) { watched = i; getppid(); }
  return 0;
}
"""
WORK = ["sh", "-c", "dd if=/dev/zero of=/dev/null bs=1M count=60; /bin/true"]


@programs.needs_root
@programs.needs_perf
class EventLanguage(programs.Scratch):
    def record(self, *options, work=None, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-q", "-o", "ours.data", *options, "--", *(work or WORK),
                                status=status)

    def scripts(self, *options):
        return self.same_scripts("ours.data", *options)

    def attrs(self):
        return self.perf("evlist", "-v", "-i", "ours.data").stdout.decode()

    def test_several_kinds_in_one_capture(self):
        self.record("-e", "cpu-clock/period=500000,name=ticks/u,page-faults/period=1/k,sched:sched_process_*,task-clock:k")
        text = self.scripts()
        self.assertIn("page-faults/period=1/k:", text)
        self.assertIn("sched:sched_process_exec:", text)
        attrs = self.attrs()
        self.assertIn("ticks: ", attrs)
        self.assertRegex(attrs, r"ticks: .*sample_freq \}: 500000, .*exclude_kernel: 1, exclude_hv: 1, .*exclude_guest: 1")

    def test_a_clock_that_the_kernel_does_not_take_is_named(self):
        for clock in ("realtime", "boottime"):
            self.record("-k", clock, "-e", "page-faults")
            said = self.record("-k", clock, "-e", "sched:sched_switch", status=None)
            if said.returncode != 0:  # kernels differ in which events may use it
                self.assertIn(f"the kernel refuses the clock {clock} (-k)", said.stderr.decode())
        said = self.record("-k", "2", "-e", "page-faults", status=None).stderr.decode()  # CLOCK_PROCESS_CPUTIME_ID
        self.assertIn("the kernel refuses the clock 2 (-k)", said)

    def test_rings_that_the_kernel_cannot_have_name_their_option(self):
        said = self.record("-m", "4G", status=2).stderr.decode()
        self.assertEqual(said, "tacho record: -m: there is no memory for rings of 4096 MiB, one for each CPU; "
                               "below 2 GiB each is possible, if ulimit -v allows it\n")
        self.assertFalse((self.folder / "ours.data").exists())

    def test_who_walks_the_stacks_of_a_recorder_that_takes_them_itself(self):
        said = self.run_program(programs.BIN / "tacho-record", "-g", "-e", "kalloc", "-o", "ours.data", "--", "true").stderr.decode()
        self.assertIn("stacks of 'kalloc' are walked by frame pointers, since its recorder takes the kernel's stacks", said)

    def test_terms_choose_stacks_for_one_event(self):
        self.record("-e", "page-faults/period=1,call-graph=dwarf,stack-size=2048/u,cpu-clock/max-stack=3/k,cs/period=1/")
        # Without stacks: perf 6.1 unwinds some stacks of the dynamic loader wrongly if mappings and samples are in different
        # rings, also in captures of perf record -a.
        self.scripts("-F", "comm,pid,tid,time,event,period")
        attrs = self.attrs().splitlines()
        self.assertIn("sample_stack_user: 2048", attrs[0])
        self.assertIn("mmap_data: 1", "".join(attrs))
        self.assertIn("sample_max_stack: 3", attrs[1])
        self.assertNotIn("CALLCHAIN", attrs[2])

    @programs.needs_btf
    def test_off_cpu_records_waits_beside_the_clock(self):
        self.record("--off-cpu", work=["sh", "-c", "sleep 0.2; dd if=/dev/zero of=/dev/null bs=1M count=300"])
        attrs = self.attrs()
        self.assertRegex(attrs, r"(?m)^cpu-clock: ")
        self.assertRegex(attrs, r"(?m)^offcpu: ")
        slept = self.tacho("script", "-i", "ours.data", "-F", "comm,event,period").stdout.decode()
        waits = [int(wait) for wait in re.findall(r"(?m)^ *sleep +(\d+) +offcpu: *$", slept)]
        self.assertTrue(any(200_000_000 <= wait < 30_000_000_000 for wait in waits), slept)

    def test_a_group_that_is_read_with_its_leader(self):
        self.record("-e", "{cpu-clock,page-faults,context-switches}:S")
        attrs = self.attrs().splitlines()
        self.assertIn("READ", attrs[0])
        self.assertIn("GROUP", attrs[0])
        self.assertNotIn("inherit: 1", attrs[0])
        self.assertNotIn("sample_freq", attrs[1], "a member takes no samples of its own: a period of 0 is not shown")
        self.assertEqual(self.perf("evlist", "-g", "-i", "ours.data").stdout.decode().splitlines()[0],
                         "{cpu-clock,page-faults,context-switches}")
        text = self.scripts()
        self.assertIn("page-faults:", text, "a sample of the leader shows the members' counts")
        self.scripts("-F", "comm,tid,time,event,period")

    def test_members_of_a_group_may_sample_too(self):
        self.record("-e", "g{page-faults/period=1/,cpu-clock}")
        self.assertEqual(self.perf("evlist", "-g", "-i", "ours.data").stdout.decode().splitlines()[0],
                         "g{page-faults/period=1/,cpu-clock}")
        self.assertIn("page-faults/period=1/:", self.scripts())

    def test_a_group_of_all_processors(self):
        self.record("-a", "-e", "{cpu-clock:u,page-faults:u}:S")
        self.scripts()

    def test_a_breakpoint_tells_every_write(self):
        source = self.folder / "writer.c"
        source.write_text(WRITER)
        subprocess.run(["cc", "-O0", "-no-pie", "-o", self.folder / "writer", source], check=True)
        address = self.run_program(self.folder / "writer", "where").stdout.decode().strip()
        done = self.record("-e", f"mem:{address}/8:w:u", work=[self.folder / "writer"], status=None)
        if done.returncode != 0 and b"slot" in done.stderr:
            self.skipTest("every breakpoint of this machine is taken")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.scripts()
        self.assertEqual(text.count(f"mem:{address}/8:w:u:"), 7, text)

    def test_counters_that_are_not_there_are_refused_in_words(self):
        if os.path.exists("/sys/bus/event_source/devices/cpu"):
            self.skipTest("this machine has counters")
        for spec in ("cycles", "L1-dcache-load-misses", "r1a8", "{instructions,cpu-clock}"):
            done = self.record("-e", spec, status=2)
            self.assertIn(b"no counter for it (virtual machines often have none); -e cpu-clock samples by time", done.stderr)
        done = self.record("-e", "cpu/event=0x3c/", status=1)
        self.assertIn(b"column 1: there is no PMU 'cpu' here", done.stderr)

    def test_what_can_be_recorded_is_listed(self):
        lines = self.tacho("list").stdout.decode().splitlines()
        for start in ("  page-faults OR faults ", "  sched:sched_switch ", "  mem:ADDRESS"):
            self.assertEqual(sum(line.startswith(start) for line in lines), 1, start)
        if not os.path.exists("/sys/bus/event_source/devices/cpu"):
            self.assertFalse([line for line in lines if "cpu-cycles" in line], "what cannot be opened is not listed")
        # perf's list has the same tracepoints.
        theirs = self.perf("list", "tracepoint").stdout.decode()
        tracepoints = {line.split()[0] for line in lines if line.endswith("[Tracepoint event]")}
        self.assertEqual(tracepoints, {line.split()[0] for line in theirs.splitlines() if "[Tracepoint event]" in line})
        switch = self.tacho("list", "-v", "sched:sched_switch").stdout.decode()
        self.assertIn("      pid_t next_pid\n", switch)
        self.assertNotIn("common_pid", switch)
        def listed(text):
            return {line.split(" [")[0].strip() for line in text.decode().splitlines() if line.endswith("[Software event]")}
        for word in ("sw", "software"):
            done = self.tacho("list", word).stdout
            self.assertEqual(done.count(b"\n"), done.count(b"[Software event]"))
            self.assertEqual(listed(done), listed(self.perf("list", "sw").stdout))
        self.assertEqual({line.split()[0] for line in self.tacho("list", "tracepoint").stdout.decode().splitlines()}, tracepoints)
        self.assertEqual(self.tacho("list", "sw", "switches").stdout.decode().count("\n"), 2)
        both = self.tacho("list", "sw", "tracepoint", "sched:sched_sw").stdout.decode()
        self.assertIn("sched:sched_switch ", both)
        self.assertNotIn("cpu-clock", both)
        self.assertIn(b"leave out 'sw'", self.tacho("list", "sw", "uprobe:/bin/sh:*", status=1).stderr)
        self.assertIn(b"no event of the kind 'pfm' can be recorded here", self.tacho("list", "pfm", status=1).stderr)
        self.assertEqual(self.tacho("list", "sched:sched_switc?").stdout.decode().count("\n"), 1)
        self.assertIn(b"did you mean 'sched:sched_switch'?", self.tacho("list", "sched:sched_swtich", status=1).stderr)

    def test_a_pmu_of_this_machine_is_opened_by_its_own_names(self):
        if not os.path.exists("/sys/bus/event_source/devices/msr/events/tsc"):
            self.skipTest("this machine has no PMU msr")
        done = self.record("-e", "msr/tsc/", status=None)
        # It can only count, not sample: the message names the event.
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"event 'msr/tsc/' on CPU 0: its PMU takes no samples", done.stderr)


if __name__ == "__main__":
    programs.main()
