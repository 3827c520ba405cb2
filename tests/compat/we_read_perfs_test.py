#!/usr/bin/env python3
"""What perf records, tacho prints as perf does."""
import os
from pathlib import Path

import programs
from programs import ROOT

BUSY = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=30000"]


@programs.needs_root
@programs.needs_perf
class WeReadPerfs(programs.Scratch):
    def record_and_compare(self, *words):
        # A copy: beside the kernel's own list perf would find /proc/kcore, and take the kernel's extent from there.
        kallsyms = self.folder / "kallsyms"
        kallsyms.write_bytes(Path("/proc/kallsyms").read_bytes())
        symbols = ["--kallsyms", kallsyms]
        for level in [[], ["-z"]]:
            with self.subTest(level=level):
                capture = self.folder / "capture.data"
                self.perf("record", *level, "-o", capture, *words)
                theirs = self.perf("script", *symbols, "-i", capture).stdout
                self.assertNotEqual(theirs, b"")
                self.assert_same_text(self.tacho("script", "--as-perf", *symbols, "-i", capture).stdout, theirs)
        return theirs

    def test_cpu_clock_with_stacks(self):
        self.record_and_compare("-e", "cpu-clock", "-F", "999", "-g", "--", *BUSY)

    def test_tracepoints_of_all_cpus(self):
        self.record_and_compare("-e", "sched:sched_switch,sched:sched_wakeup", "-a", "--", "sleep", "0.2")

    def test_software_events_of_all_cpus_with_stacks(self):
        self.record_and_compare("-e", "page-faults,context-switches", "-a", "-g", "-c", "1", "--", "ls")

    def test_the_header(self):
        capture = self.folder / "capture.data"
        self.perf("record", "-e", "cpu-clock", "-o", capture, "--", "true")
        theirs = self.perf("script", "--header-only", "-i", capture).stdout
        ours = self.tacho("script", "--header-only", "-i", capture).stdout
        self.assert_same_text(ours, theirs)

    @programs.needs_clang
    def test_bpf_output(self):
        program = self.folder / "openat.bpf.o"
        self.run_program("clang", "-target", "bpf", "-O2", "-g", f"-DPROCESSORS={os.cpu_count()}",
                         "-c", ROOT / "tests/compat/openat.bpf.c", "-o", program, "-I/usr/include/x86_64-linux-gnu")
        attached = self.perf("record", "-e", "bpf-output/no-inherit,name=evt/", "-e", f"{program}/map:channel.event=evt/",
                             "-a", "-o", self.folder / "probe.data", "--", "true", status=None)
        if attached.returncode != 0:
            self.skipTest("this perf attaches no BPF programs (removed in 6.5)")
        text = self.record_and_compare("-e", "bpf-output/no-inherit,name=evt/", "-e",
                                       f"{program}/map:channel.event=evt/", "-a", "-g", "--", "ls")
        self.assertIn(b"BPF output:", text)


if __name__ == "__main__":
    programs.main()
