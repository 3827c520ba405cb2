#!/usr/bin/env python3
"""Input that cannot be read: one clear line and the right status, whatever the command. Needs neither root nor perf."""
import os
import struct
import unittest

import programs
from programs import ROOT

COMMANDS = [["script"], ["report", "--stdio"], ["hist"], ["folded"], ["header"]]
UNREADABLE, INCOMPLETE = 2, 3
KEPT = ROOT / "tests/data/bigreads.data"
DATA_START, DATA_SIZE = struct.unpack("<QQ", KEPT.read_bytes()[40:56])
DATA_END = DATA_START + DATA_SIZE


class BadInput(programs.Scratch):
    def each(self, path, status, said):
        """Checks that every command exits with `status` and prints one line with the file and `said`, and nothing on stdout."""
        for command in COMMANDS:
            with self.subTest(command=command[0]):
                done = self.tacho(*command, "-i", path, status=status)
                self.assert_one_line(done.stderr, path, said)
                self.assertEqual(done.stdout, b"")

    def assert_one_line(self, stderr, path, said):
        lines = stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, stderr)
        self.assertTrue(lines[0].startswith("tacho"), lines[0])
        self.assertIn(str(path), lines[0])
        self.assertIn(said, lines[0])

    def test_no_such_file(self):
        self.each(self.folder / "absent.data", UNREADABLE, "No such file or directory")

    def test_the_default_file_is_absent(self):
        done = self.tacho("script", status=UNREADABLE)
        self.assert_one_line(done.stderr, "perf.data", "No such file or directory")

    def test_a_folder(self):
        self.each(self.folder, UNREADABLE, "directory")

    def test_not_a_capture(self):
        for name, content in [("text", b"samples, but in words\n" * 100), ("program", (programs.BIN / "tacho").read_bytes()),
                              ("zeros", bytes(4096)), ("short", b"PERF")]:
            (self.folder / name).write_bytes(content)
            with self.subTest(content=name):
                self.each(self.folder / name, UNREADABLE, "perf.data")

    def test_an_empty_file(self):
        (self.folder / "empty.data").touch()
        self.each(self.folder / "empty.data", UNREADABLE, "empty")
        os.mkfifo(self.folder / "fifo")
        self.each(self.folder / "fifo", UNREADABLE, "is a FIFO that no process writes to")

    def test_nothing_in_the_pipe(self):
        for command in COMMANDS:
            done = self.tacho(*command, "-i", "-", status=UNREADABLE)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody without the right")
    def test_no_permission(self):
        path = self.folder / "mine.data"
        path.write_bytes(KEPT.read_bytes())
        path.chmod(0o600)
        self.folder.chmod(0o755)
        for command in COMMANDS:
            with self.subTest(command=command[0]):
                done = self.run_program("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--",
                                        programs.BIN / "tacho-report", *command, "-i", path, status=UNREADABLE)
                self.assert_one_line(done.stderr, path, "Permission denied")


class CutShort(programs.Scratch):
    def cut(self, size):
        path = self.folder / f"cut-{size}.data"
        path.write_bytes(KEPT.read_bytes()[:size])
        return path

    def test_within_the_header(self):
        for size in [1, 8, 64, 103]:
            for command in COMMANDS:
                with self.subTest(size=size, command=command[0]):
                    done = self.tacho(*command, "-i", self.cut(size), status=UNREADABLE)
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_cut_in_the_data_or_before_it_is_reported(self):
        for size in [300, DATA_START, DATA_START + 1, (DATA_START + DATA_END) // 2, DATA_END - 1]:
            for command in COMMANDS:
                with self.subTest(size=size, command=command[0]):
                    path = self.cut(size)
                    done = self.tacho(*command, "-i", path, status=None)
                    self.assertIn(done.returncode, [UNREADABLE, INCOMPLETE], done.stderr)
                    self.assertIn(f"{path}: ", done.stderr.decode())
                    self.assertIn("cut short", done.stderr.decode())

    def test_a_cut_behind_the_data_is_reported(self):
        for size in [DATA_END, DATA_END + 100, KEPT.stat().st_size - 1]:
            for command in COMMANDS:
                with self.subTest(size=size, command=command[0]):
                    self.tacho(*command, "-i", self.cut(size), status=INCOMPLETE)

    def test_samples_before_the_cut_are_kept(self):
        whole = self.tacho("script", "-i", KEPT, status=None).stdout
        done = self.tacho("script", "-i", self.cut(DATA_END), status=None)
        self.assertEqual(done.stdout, whole)


if __name__ == "__main__":
    programs.main()
