#!/usr/bin/env python3
"""What tacho records, perf prints as tacho does: the same events, stacks, payloads and fields."""
from pathlib import Path

import programs
from programs import ROOT

DD = ["dd", "if=/dev/zero", "of=/dev/null", "bs=2M", "count=3"]
BUSY = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=30000"]


@programs.needs_root
@programs.needs_perf
class PerfReadsOurs(programs.Scratch):
    def record_and_compare(self, *words):
        """Records with compression and without; returns perf's text of the last."""
        # A copy: beside the kernel's own list perf would find /proc/kcore, and take the kernel's extent from there.
        kallsyms = self.folder / "kallsyms"
        kallsyms.write_bytes(Path("/proc/kallsyms").read_bytes())
        for level in ["-z1", "-z0"]:
            with self.subTest(level=level):
                capture = self.folder / f"capture{level}.data"
                recorded = self.tacho("record", level, "-o", capture, *words)
                self.assertIn(b", 0 lost)", recorded.stderr)
                theirs = self.perf("script", "--kallsyms", kallsyms, "-i", capture)
                ours = self.tacho("script", "--raw-names", "-i", capture)
                self.assertNotEqual(theirs.stdout, b"")
                self.assert_same_text(programs.without_gone_files(ours.stdout), programs.without_gone_files(theirs.stdout))
                self.assertIn(b"# Samples:", self.perf("report", "--stdio", "-i", capture).stdout)
        return theirs.stdout

    @programs.needs_btf
    @programs.needs_clang
    def test_bpf_output_with_stacks(self):
        text = self.record_and_compare("-e", ROOT / "examples/bigreads.bpf.c", "-a", "-g", "--", *DD)
        self.assertEqual(text.count(b"0000: 00 00 20 00 00 00 00 00"), 3)

    def test_cpu_clock_of_a_command(self):
        text = self.record_and_compare("-e", "cpu-clock", "-F", "999", "-g", "--", *BUSY)
        self.assertIn(b"cpu-clock", text)

    def test_cpu_clock_of_all_cpus_without_stacks(self):
        self.record_and_compare("-e", "cpu-clock", "-F", "499", "-a", "--", *BUSY)

    def test_a_tracepoint_with_its_fields(self):
        text = self.record_and_compare("-e", "sched:sched_switch", "-a", "--", "sleep", "0.2")
        self.assertIn(b" ==> next_comm=", text)

    def test_a_tracepoint_with_stacks_and_a_string(self):
        text = self.record_and_compare("-e", "sched:sched_process_exec", "-a", "-g", "--", "sh", "-c", "ls; ls; true")
        self.assertIn(b"filename=", text)

    def test_several_events_in_one_capture(self):
        text = self.record_and_compare("-e", "syscalls:sys_enter_openat", "-e", "context-switches", "-c", "1", "-a", "-g", "--", "ls")
        self.assertIn(b"context-switches: ", text)
        self.assertIn(b"syscalls:sys_enter_openat: ", text)


if __name__ == "__main__":
    programs.main()
