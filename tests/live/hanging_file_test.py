#!/usr/bin/env python3
"""A process runs a program of a file system that stops answering, as a network's does: recordings begin, go on and end all the same."""
import os
import signal
import subprocess
import sys
import unittest

import programs

SERVER = programs.ROOT / "tests/support/hanging_file.py"


@programs.needs_root
@unittest.skipUnless(os.path.exists("/dev/fuse"), "needs /dev/fuse")
class HangingFile(programs.Scratch):
    def setUp(self):
        super().setUp()
        place = self.folder / "hanging"
        place.mkdir()
        self.server = subprocess.Popen([sys.executable, SERVER, place, programs.BIN / "bare_load"], stdout=subprocess.PIPE)
        self.addCleanup(self.let_go, place)
        if self.server.stdout.readline() != b"ready\n":
            self.skipTest("the kernel mounts no such file system here")
        self.load = subprocess.Popen([place / "file", "forks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.load.stdout.readline()  # it runs, and is in memory
        self.server.send_signal(signal.SIGSTOP)

    def let_go(self, place):
        self.server.send_signal(signal.SIGCONT)
        if hasattr(self, "load"):
            self.load.kill()
            self.load.communicate()
        subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)
        self.server.kill()
        self.server.communicate()

    def test_recordings_begin_and_end(self):
        for stacks in ("fp", "eh"):
            for target in (["-a"], ["-p", self.load.pid]):
                with self.subTest(stacks=stacks, target=target):
                    said = self.run_program(programs.BIN / "tacho", "record", "-o", "x.data", "--no-pack", "-F", "499", "-e", "cpu-clock", "--call-graph",
                                            stacks, *target, "--", programs.BIN / "getppid_load", "1000", "5").stderr.decode()
                    self.assertIn("Captured and wrote", said)
                    self.tacho("header", "-i", "x.data")


if __name__ == "__main__":
    programs.main()
