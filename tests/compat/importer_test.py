#!/usr/bin/env python3
"""A real viewer reads the text of tacho script --importer: every sample, with its process and its functions."""
import re
import shutil
import unittest

import programs
from programs import ROOT

GOLDEN = ROOT / "tests" / "golden"


@unittest.skipUnless(shutil.which("profiler-cli"), "needs Firefox Profiler's profiler-cli (npm, Node 24)")
class Importer(programs.Scratch):
    def client(self, *words):
        return self.run_program("profiler-cli", *words).stdout.decode()

    def test_firefox_profiler_reads_it_whole(self):
        done = self.tacho("script", "--importer", "-i", GOLDEN / "captures" / "comm.data", "--symfs", GOLDEN / "symfs",
                          "--kallsyms", GOLDEN / "captures" / "kallsyms", status=None)
        text = self.folder / "text.txt"
        text.write_bytes(done.stdout)
        starts = re.findall(rb"^\S.* (\d+)/\d+ \[", done.stdout, re.MULTILINE)
        self.assertGreater(len(starts), 100)
        self.addCleanup(self.run_program, "profiler-cli", "stop", "--all", status=None)
        self.client("load", text)
        info = self.client("profile", "info")
        threads = re.search(r"contains (\d+) threads? across (\d+) process", info)
        tids = set(re.findall(rb" \d+/(\d+) \[", done.stdout))
        self.assertEqual(threads.groups(), (str(len(tids)), str(len(set(starts)))), info)
        self.assertIn(f"pid {starts[0].decode()}", info)
        self.assertIn("burn", self.client("thread", "functions"))


if __name__ == "__main__":
    programs.main()
