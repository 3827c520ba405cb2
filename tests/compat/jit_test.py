#!/usr/bin/env python3
"""JIT code in jitdumps has the names that `perf inject --jit` adds to the capture."""
import shutil
import unittest
from pathlib import Path

import programs


@programs.needs_root
@programs.needs_perf
@unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
class Jit(programs.Scratch):
    def record(self, *words):
        program = self.folder / "jitter"
        self.run_program("cc", "-O1", "-o", program, Path(__file__).with_name("jitter.c"))
        dumps = self.folder / "dumps"
        dumps.mkdir(exist_ok=True)
        capture = self.folder / "capture.data"
        self.perf("record", *words, "-F", "499", "-e", "cpu-clock", "-g", "-o", capture, "--", program, dumps)
        return capture, dumps

    def test_names_equal_perf_injects(self):
        capture, dumps = self.record("-k", "mono")
        injected = self.folder / "injected.data"
        self.perf("inject", "--jit", "-i", capture, "-o", injected)
        theirs = self.perf("script", "-i", injected).stdout
        for name in (b"first(int)+0x", b"jit::second+0x", b"third+0x"):
            self.assertIn(name, theirs)
        self.assert_same_text(self.tacho("script", "--as-perf", "-i", injected).stdout, theirs)
        for made in dumps.glob("jitted-*.so"):
            made.unlink()  # tacho needs only the jitdump
        self.assert_same_text(self.tacho("script", "--as-perf", "-i", capture).stdout, theirs)
        moved = dumps.rename(self.folder / "elsewhere")
        done = self.tacho("script", "--as-perf", "-i", capture, "--jitdump-dir", moved)
        self.assert_same_text(done.stdout, theirs)
        self.assertIn(b"jit-", self.tacho("script", "-i", capture).stderr, "a missing jitdump is reported")

    def test_another_clock_is_reported(self):
        capture, _ = self.record()
        done = self.tacho("script", "-i", capture)
        self.assertNotIn(b"third", done.stdout)
        self.assertIn(b"-k mono", done.stderr)


if __name__ == "__main__":
    programs.main()
