"""For tests that record with perf: programs, built once, and kallsyms."""
import shutil
import subprocess
import unittest
from pathlib import Path

import programs
from programs import ROOT

PROGRAMS = ROOT / "tests/compat/programs"
BUSY = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000"]
CLOCK = ["-e", "cpu-clock", "-F", "499"]

needs_compilers = unittest.skipUnless(shutil.which("gcc") and shutil.which("g++"), "needs gcc and g++")


class FreshCapture(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.build = Path(subprocess.run(["mktemp", "-d", "/tmp/tacho-fresh.XXXXXX"], capture_output=True, text=True,
                                        check=True).stdout.strip())
        cls.addClassCleanup(shutil.rmtree, cls.build)
        subprocess.run(["g++", "-O2", "-g", "-fomit-frame-pointer", "-o", cls.build / "shapes", PROGRAMS / "shapes.cc"],
                       check=True)
        subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", cls.build / "crew",
                        PROGRAMS / "crew.c"], check=True)
        # A copy: beside the kernel's own list perf would find /proc/kcore, and take the kernel's extent from there.
        (cls.build / "kallsyms").write_bytes(Path("/proc/kallsyms").read_bytes())

    def record(self, *words):
        self.capture = self.folder / "capture.data"
        return self.perf("record", "-o", self.capture, *words).stdout

    def forget_maps(self, printed):
        """Removes the perf maps that the recorded program named on its output, when the test is over."""
        for line in printed.split(b"\n"):
            if line.startswith(b"/tmp/perf-"):
                self.addCleanup(Path(line.decode()).unlink)
