#!/usr/bin/env python3
"""A recorded process runs a program from a file system that stops answering, as a network file system may: recordings start, continue and end normally."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import programs

# The recorded program: its file is deleted as soon as the recorder, its parent, has opened it.
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
TIME = "10"  # time limit for all files; one may take two fifths of it
SERVER = programs.ROOT / "tests/support/hanging_file.py"


class OnHangingFile(programs.Scratch):
    """A process that runs a program from such a file system."""
    PROGRAM, WORDS = programs.BIN / "bare_load", ["forks"]

    def setUp(self):
        super().setUp()
        place = self.folder / "hanging"
        place.mkdir()
        self.server = subprocess.Popen([sys.executable, SERVER, place, self.PROGRAM], stdout=subprocess.PIPE)
        self.addCleanup(self.let_go, place)
        if self.server.stdout.readline() != b"ready\n":
            self.skipTest("the kernel mounts no such file system here")
        self.load = subprocess.Popen([place / "file", *self.WORDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def let_go(self, place):
        # The server first: with it ends every wait for its files (state D), also that of a program whose pages
        # the kernel dropped, which no signal ends.
        self.server.kill()
        self.server.communicate()
        if hasattr(self, "load"):
            self.load.kill()
            self.load.communicate()
        subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)


@programs.needs_root
@unittest.skipUnless(os.path.exists("/dev/fuse"), "needs /dev/fuse")
class HangingFile(OnHangingFile):
    def setUp(self):
        super().setUp()
        self.load.stdout.readline()  # it runs, and its pages are in memory
        self.server.send_signal(signal.SIGSTOP)

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
        # The deleted file's symbols are in the capture.
        self.assertFalse((self.folder / "passing").exists())
        text = self.tacho("script", "-i", "x.data", "-F", "comm,ip,sym,dso").stdout.decode()
        self.assertRegex(text, r"(?m)^\s+[0-9a-f]+ main \(.*/passing\)$")


@programs.needs_root
@unittest.skipUnless(os.path.exists("/dev/fuse"), "needs /dev/fuse")
class SilentFile(OnHangingFile):
    """A file on a file system that never answers: a process that accesses it hangs in state D."""
    PROGRAM, WORDS = shutil.which("dd"), ["if=/dev/zero", "of=/dev/null", "bs=64k"]

    def record_and_hang(self):
        """A capture with samples in the program; afterwards its file system never answers."""
        self.tacho("record", "-o", "x.data", "--no-pack", "-F", "499", "-e", "cpu-clock", "-g", "-p", self.load.pid, "--", "sleep", "0.3")
        self.tacho("script", "-i", "x.data", "-F", "ip,sym")  # its file can be read
        self.fall_silent()

    def fall_silent(self):
        self.server.send_signal(signal.SIGUSR1)
        place = self.folder / "hanging"
        subprocess.run(["sh", "-c", f"echo 1 > /proc/sys/vm/drop_caches; timeout -s KILL 0.2 cat {place}/file > /dev/null & sleep 0.4"], check=True)

    def test_a_hanging_file_is_left_out(self):
        self.record_and_hang()
        began = time.monotonic()
        said = self.tacho("report", "--stdio", "-i", "x.data", "--max-file-time", TIME, status=3).stderr.decode()
        self.assertIn(f"{self.folder}/hanging/file was left out", said)
        self.assertIn("its file system does not answer, and the process cannot be ended", said)
        self.assertLess(time.monotonic() - began, 60)

    def test_packing_goes_on_without_it(self):
        self.record_and_hang()
        done = self.tacho("pack", "x.data", "-o", "packed.data", "--max-file-time", TIME, status=3)
        self.assertIn(f"{self.folder}/hanging/file: its names are missing", done.stderr.decode())
        # The kernel's symbols are in the capture.
        self.assertRegex(self.tacho("header", "-i", "packed.data").stdout.decode(), r"packed symbols : names of \d\d")

    def test_an_unattended_recording_ends(self):
        process = subprocess.Popen([programs.BIN / "tacho-record", "-o", "x.data", "-F", "499", "-e", "cpu-clock", "--call-graph", "fp", "--max-pack-time",
                                    TIME, "-p", str(self.load.pid)], cwd=self.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertIn(b"begun", process.stderr.readline())
        time.sleep(0.3)
        self.fall_silent()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1].decode()
        self.assertIn("Captured and wrote", said)
        self.assertIn("hanging/file: its names are missing", said)


if __name__ == "__main__":
    programs.main()
