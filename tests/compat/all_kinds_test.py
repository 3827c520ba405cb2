#!/usr/bin/env python3
"""Every kind of capture that `tacho record` makes, read by perf: `perf script` prints what `tacho script` prints, and
`perf report --stdio` shows as many samples, without complaint.

The perf of this machine always, byte for byte; TACHO_OTHER_PERF=PROGRAM names another one besides. What releases of perf
write differently is named in OTHER_FORMS and comes from comparing perf 6.1 with 7.3, not from looking away: nothing else
may differ."""
import os
import re
import subprocess
import unittest
from pathlib import Path

import programs
from programs import ROOT

DD = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=40"]
SHELL = ["sh", "-c", "ls / | sort >/dev/null; true"]
CLOCK = ["-e", "cpu-clock"]
# name: options, and what is recorded. Where the dynamic loader's stacks are unwound, perf 6.1 takes some of them apart
# wrongly (docs/comparing-with-perf.md); those captures are compared with it without stacks.
KINDS = {
    "clock of a command": (["-F", "999", "-g", *CLOCK], DD),
    "uncompressed": (["-z0", "-F", "999", "-g", *CLOCK], DD),
    "all processors": (["-a", "-F", "499", *CLOCK], SHELL),
    "one processor": (["-C", "0", "-g", *CLOCK], DD),
    "tracepoints": (["-e", "sched:*,syscalls:sys_enter_openat"], SHELL),
    "tracepoints with stacks": (["-a", "-g", "-e", "sched:sched_switch,syscalls:sys_exit_read"], SHELL),
    "a filter": (["-a", "-e", "sched:sched_switch", "--filter", "prev_pid > 1"], SHELL),
    "page faults": (["-e", "page-faults,minor-faults", "-c", "1", "-d", "-g"], ["ls", "/"]),
    "unwound stacks": (["--call-graph", "dwarf,4096", *CLOCK], DD),
    "registers": (["--intr-regs=ip,sp", "--user-regs=ip,sp", *CLOCK], DD),
    "a group": (["-e", "{cpu-clock,page-faults,context-switches}:S"], DD),
    "members that sample": (["-e", "g{page-faults/period=1/,cpu-clock}"], DD),
    "records beside samples": (["-a", "--namespaces", "--all-cgroups", "--switch-events", *CLOCK], SHELL),
    "fields": (["-d", "-W", "-T", "-P", "-s", "--data-page-size", "--code-page-size", "-e",
                "cpu-clock/period=500000,name=ticks/u,page-faults/period=1/k"], DD),
    "each thread": (["--per-thread", "-e", "cpu-clock"], DD),
    "another clock": (["-k", "CLOCK_MONOTONIC_RAW", "-g", *CLOCK], DD),
    "a flight recorder": (["--overwrite", "-g", *CLOCK], DD),
    "a probe": (["-g", "-e", "uprobe:{libc}:exit"], ["ls", "/"]),
    "programs": (["-a", "-g", "-e", str(ROOT / "examples/bigreads.bpf.c")],
                 ["dd", "if=/dev/zero", "of=/dev/null", "bs=2M", "count=3"]),
}
UNWOUND = {"unwound stacks"}
NO_STACKS = ["-F", "comm,pid,tid,time,event,period"]
# Mangled names and no inlined calls: later perfs write the parameters of C++ functions, and
# look for inlined calls at every address of a call chain.
ALIKE = ["--no-inline", "--no-demangle"]
FRAME = re.compile(rb"\t *([0-9a-f]+) (.*)")
KERNEL = b"ffffffff"


def in_one_form(text):
    """A text of `perf script` without parts that depend on perf's version (OTHER_FORMS)."""
    lines = []
    for line in text.split(b"\n"):
        for form in OTHER_FORMS:
            line = form(line)
            if line is None:
                break
        else:
            lines.append(line)
    return lines


def address_of_users_code(line):
    """Call chains of programs: 6.1 has addresses in the file, 7.3 in the process. The offset in the page is the same."""
    frame = FRAME.fullmatch(line)
    if not frame or frame.group(1).startswith(KERNEL):
        return line
    return b"\t...%03x %s" % (int(frame.group(1), 16) & 0xFFF, frame.group(2))


def width_of_columns(line):
    """Process ids have five columns in 6.1, seven in 7.3."""
    return line if line.startswith(b"\t") else re.sub(rb" +", b" ", line).strip()


def name_of_what_ended(line):
    """A thread that has ended keeps its name in 6.1, and has its number for one in 7.3."""
    return re.sub(rb"^(.{1,15}?)(?= \d+(/\d+)? (\[\d+\] )?\d+\.\d+: )", b"NAME", line)


def names_of_stubs(line):
    """Stubs of the procedure linkage table that have no name in 6.1 have the function's in 7.3."""
    return re.sub(rb" \S*@plt\+", b" @plt+", line)


def end_of_unwound_stacks(line):
    """6.1 shows the return address -1 that ends a stack, 7.3 does not."""
    return None if line == b"\tffffffffffffffff [unknown] ([unknown])" else line


OTHER_FORMS = [address_of_users_code, width_of_columns, name_of_what_ended, names_of_stubs, end_of_unwound_stacks]


@programs.needs_root
@programs.needs_perf
class AllKinds(programs.Scratch):
    def setUp(self):
        super().setUp()
        # A copy: with /proc/kallsyms perf would also find /proc/kcore, and take modules for the kernel itself.
        self.kallsyms = self.folder / "kallsyms"
        self.kallsyms.write_bytes(Path("/proc/kallsyms").read_bytes())
        self.other = os.environ.get("TACHO_OTHER_PERF")

    def ours(self, *options):
        return self.run_program(programs.BIN / "tacho-report", "script", "--as-perf", *options, "-i", "one.data").stdout

    def theirs(self, perf, *options):
        done = self.run_program(perf, "script", "--kallsyms", self.kallsyms, *options, "-i", "one.data")
        self.assertEqual(done.stderr, b"", "complaints of perf script")
        return done.stdout

    def compare(self, name):
        text = self.ours(*(NO_STACKS if name in UNWOUND else []))
        self.assertGreater(len(text), 0, "no samples")
        theirs = self.theirs("perf", *(NO_STACKS if name in UNWOUND else []))
        self.assert_same_recorded(text, theirs)
        if self.other:
            ours, theirs = self.ours(*ALIKE), self.theirs(self.other, *ALIKE)
            self.assert_same_recorded(b"\n".join(in_one_form(ours)), b"\n".join(in_one_form(theirs)))
        counts = self.counts(programs.BIN / "tacho-report")
        for perf in filter(None, ["perf", self.other]):
            self.assertEqual(self.counts(perf), counts, perf)

    def counts(self, program):
        """How many samples of each event a report counts. Later perfs leave out members of a group without any."""
        done = self.run_program(program, "report", "--stdio", "-g", "none", "-i", "one.data")
        if program != programs.BIN / "tacho-report":
            self.assertEqual(done.stderr, b"", "complaints of perf report")
        return re.findall(rb"(?m)^# Samples: (\S+ +of events? '[^',}]*)", done.stdout)

    def test_files(self):
        libc = re.search(r"=> (\S*libc\.so\S*)", self.run_program("ldd", "/bin/sh").stdout.decode()).group(1)
        for name, (options, command) in KINDS.items():
            if name == "a probe" and not Path("/sys/bus/event_source/devices/uprobe/type").exists():
                continue
            if name == "programs" and not (Path("/sys/kernel/btf/vmlinux").exists() and programs.has_clang):
                continue
            with self.subTest(kind=name):
                options = [option.replace("{libc}", libc) for option in options]
                self.run_program(programs.BIN / "tacho-record", "-q", *options, "-o", "one.data", "--", *command)
                self.compare(name)

    def test_a_pipe(self):
        with open(self.folder / "one.data", "wb") as out:
            subprocess.run([programs.BIN / "tacho-record", "-q", "-g", *CLOCK, "-o", "-", "--", *DD], stdout=out, check=True,
                           stderr=subprocess.DEVNULL)
        self.compare("a pipe")

    def test_files_of_one_recording(self):
        self.run_program(programs.BIN / "tacho-record", "-q", "-e", "page-faults", "-c", "1", "--switch-output=1M", "-o", "r.data",
                         "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do ls -l /usr/lib > /dev/null; done")
        files = sorted(self.folder.glob("r.data.2*"))
        self.assertTrue(files)
        for file in files[:3]:
            with self.subTest(file=file.name):
                file.rename(self.folder / "one.data")
                self.compare("rotation")


if __name__ == "__main__":
    programs.main()
