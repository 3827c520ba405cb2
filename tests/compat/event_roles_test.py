#!/usr/bin/env python3
"""Roles of bpf/include/tacho/event.h in a recording: a stack taken by the program, addresses by
name, a weight and a key."""
import json
import platform
import unittest

import programs
from programs import ROOT

READS, SIZE = 6, 2 << 20
CALLS = 2 * READS  # dd reads and writes


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
@unittest.skipUnless(platform.machine() == "x86_64", "the program knows x86-64's system calls")
class EventRoles(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.tacho("record", "-e", ROOT / "tests/compat/large_calls.bpf.c", "-a", "-o", "perf.data", "--", "dd",
                   "if=/dev/zero", "of=/dev/null", f"bs={SIZE}", f"count={READS}")

    def samples(self):
        out = self.tacho("script", "--json", status=None).stdout
        return [sample for sample in map(json.loads, out.splitlines()) if sample["comm"] == "dd"]

    def test_the_payloads_stack_is_the_samples_with_names(self):
        samples = self.samples()
        self.assertEqual(len(samples), CALLS)
        for sample in samples:
            names = [frame.get("symbol", "") for frame in sample["stack"]]
            self.assertIn("do_syscall_64", names)
            own = [frame["ip"] for frame in sample["stack"]]  # without functions of the tracepoint (script --as-perf has them)
            self.assertEqual(own, sample["fields"]["stack"][-len(own):])
            self.assertEqual([frame.get("symbol") for frame in sample["symbols"]["stack"][-len(own):]],
                             [name or None for name in names])
            self.assertRegex(names[-1], "^entry_")
            self.assertEqual(sample["symbols"]["caller"]["symbol"], names[-1])

    def test_text_names_the_addresses(self):
        out = self.tacho("script", "-F", "comm,payload,ip,sym", status=None).stdout.decode()
        line = next(line for line in out.splitlines() if 'comm="dd"' in line)
        self.assertRegex(line, r"bytes=2097152 caller=0x[0-9a-f]{16}\([\w.]+\+0x[0-9a-f]+\) stack=\[0x")
        self.assertRegex(line, r"0x[0-9a-f]{16}\(do_syscall_64\+0x[0-9a-f]+\)")
        self.assertRegex(out, r"\n\t *[0-9a-f]+ do_syscall_64")

    def test_perfs_own_text_is_as_perf_has_it(self):
        out = self.tacho("script", "--as-perf", "-F", "comm,ip,sym", status=None).stdout.decode()
        self.assertNotIn("\n\t", out)

    def test_folded_weighs_that_stack_by_bytes(self):
        done = self.tacho("folded", status=None)
        lines = [line for line in done.stdout.decode().splitlines() if line.startswith("dd;")]
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines), CALLS * SIZE)
        self.assertTrue(all("do_syscall_64" in line for line in lines), lines)
        self.assertIn(b"weighted by bytes", done.stderr)

    def test_hist_groups_by_the_key(self):
        out = self.tacho("hist", "--field", "bytes").stdout.decode()
        self.assertIn("large_call: bytes in bytes, is_huge 1, ", out)
        out = self.tacho("hist", "--field", "comm", "--by", "none").stdout.decode()
        self.assertRegex(out, r"\n +\d+ +[0-9.]+%  dd\n")


if __name__ == "__main__":
    programs.main()
