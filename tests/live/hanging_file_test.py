#!/usr/bin/env python3
"""A process runs a program of a file system that stops answering, as a network's does: recordings begin, go on and end all the same."""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

import programs

# What is recorded: a program whose file is deleted as soon as the recorder, its parent, has it open.
LOAD = r"""
import os, subprocess, sys, time

def is_held(name):
    folder = f"/proc/{os.getppid()}/fd"
    for number in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{number}").endswith(name):
                return True
        except OSError:
            pass
    return False

subprocess.run(["./passing", "100", "2"], check=True)
limit = time.monotonic() + 60
while not is_held("/passing"):
    if time.monotonic() > limit:
        sys.exit("not held open")
    time.sleep(0.02)
os.unlink("passing")
"""
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

    def test_other_files_are_held_open_all_the_same(self):
        shutil.copy(programs.BIN / "getppid_load", self.folder / "passing")
        if os.stat(self.folder).st_dev != os.stat("/").st_dev:
            self.skipTest("files of other mounts than that of / are not held before they are deleted")
        (self.folder / "load.py").write_text(LOAD)
        said = self.run_program(programs.BIN / "tacho-record", "-v", "-a", "-g", "-e", "syscalls:sys_enter_getppid", "-o",
                                "x.data", "--", sys.executable, "load.py").stderr.decode()
        found = re.search(r"files held open while it recorded: (\d+)", said)
        self.assertTrue(found, said)
        self.assertGreaterEqual(int(found.group(1)), 1)
        # They were not in vain: the file is gone, and its names are there.
        self.assertFalse((self.folder / "passing").exists())
        text = self.tacho("script", "-i", "x.data", "-F", "comm,ip,sym,dso").stdout.decode()
        self.assertRegex(text, r"(?m)^\s+[0-9a-f]+ main \(.*/passing\)$")


if __name__ == "__main__":
    programs.main()
