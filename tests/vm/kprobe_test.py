#!/usr/bin/env python3
"""bigreads in a kernel with kprobes: the return probe of vfs_read wins over the tracepoint.

TACHO_KERNEL_VM names a program that runs a command under such a kernel: $TACHO_KERNEL_VM -- COMMAND. The current folder
is the same inside.
"""
import os
import unittest

import programs
from programs import BIN, ROOT

KERNEL_VM = os.environ.get("TACHO_KERNEL_VM")


@unittest.skipUnless(KERNEL_VM, "needs TACHO_KERNEL_VM, a program that runs a command in a kernel with kprobes")
class Kprobe(programs.Scratch):
    def test_big_reads_are_seen_by_the_return_probe(self):
        recorded = self.run_program(
            KERNEL_VM, "--", BIN / "tacho", "record", "-v", "-e", ROOT / "examples/bigreads.bpf.c", "-a", "-g",
            "-o", self.folder / "b.data", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=2M", "count=3")
        self.assertIn(b"(3 samples, 0 lost)", recorded.stderr)
        self.assertRegex(recorded.stderr, rb"kretprobe/vfs_read\)?: attached", "-v says which program won")
        text = self.tacho("script", "-i", self.folder / "b.data", "-F", "+payload", status=None).stdout
        self.assertEqual(text.count(b"bytes=2097152"), 3)
        self.assertRegex(text, rb"\tffffffff[0-9a-f]+ \S+\+0x[0-9a-f]+ \(\[kernel\.kallsyms\]\)")
        rows = [row for row in self.tacho("hist", "-i", self.folder / "b.data", status=None).stdout.split(b"\n") if b"->" in row]
        self.assertEqual([row.split(b":")[1].split()[0] for row in rows if b"*" in row], [b"3"])

    def test_functions_of_the_kernel_are_probed_by_name(self):
        self.run_program(
            KERNEL_VM, "--", BIN / "tacho", "record", "-q", "-g", "-e", "kprobe:vfs_read,kretprobe:vfs_read/name=back/",
            "-o", self.folder / "k.data", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=2M", "count=3")
        text = self.tacho("script", "-i", self.folder / "k.data", status=None).stdout
        calls, returns = text.count(b" kprobe:vfs_read:"), text.count(b" back:")
        self.assertGreaterEqual(calls, 3)
        self.assertEqual(calls, returns)
        self.assertIn(b" vfs_read+0x", text)


if __name__ == "__main__":
    programs.main()
