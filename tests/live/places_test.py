#!/usr/bin/env python3
"""Special files instead of regular ones: as output, as input of a report, as symbol file, as BPF program.
It is refused in words, or nothing bad comes of it; nobody waits for a FIFO, and what was there is there afterwards."""
import os
import socket
import stat
import subprocess
from pathlib import Path

import programs

NOBODY = 65534
PATIENCE = 20  # seconds: the test is about hanging


class Places(programs.Scratch):
    def make(self, name):
        """Makes a special file at `name`, and returns its path."""
        path = self.folder / name
        kind = name.split(".")[0]
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "device":
            try:
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero: endless when read
            except OSError:
                path = Path("/dev/zero")
        elif kind == "socket":
            server = socket.socket(socket.AF_UNIX)
            self.addCleanup(server.close)
            server.bind(str(path))
        elif kind == "folder":
            path.mkdir()
        elif kind == "link_to_nothing":
            path.symlink_to(self.folder / "nothing-there")
        elif kind == "link":
            (self.folder / "target").write_bytes(b"precious")
            path.symlink_to(self.folder / "target")
        elif kind == "hard_link":
            (self.folder / "target").write_bytes(b"precious")
            os.link(self.folder / "target", path)
        elif kind == "foreign":
            path.write_bytes(b"precious")
            os.chown(path, NOBODY, NOBODY)
        elif kind == "endless_link":
            path.symlink_to(path)
        else:
            raise AssertionError(kind)
        return path

    def run_briefly(self, *words):
        environment = dict(os.environ, HOME=str(self.folder), LC_ALL="C.UTF-8")
        try:
            return subprocess.run([str(word) for word in words], cwd=self.folder, env=environment, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.fail(f"still ran after {PATIENCE} s: {' '.join(map(str, words))}")

    def clear(self):
        for made in self.folder.iterdir():
            if made.is_dir() and not made.is_symlink():
                made.rmdir()
            else:
                made.unlink()

    @programs.needs_root
    def test_as_output(self):
        forms = {"file": [], "rotation": ["--switch-output=60s"], "overwrite": ["--overwrite"]}
        record = [programs.BIN / "tacho-record", "-q", "-e", "cpu-clock"]
        for kind, words in {"fifo": b"not a regular file", "device": b"not a regular file", "socket": b"not a regular file",
                            "folder": b"not a regular file", "foreign": b"belongs to user"}.items():
            for form, more in forms.items():
                with self.subTest(kind=kind, form=form):
                    self.clear()
                    path = self.make(f"{kind}.{form}")
                    before = os.lstat(path)
                    done = self.run_briefly(*record, *more, "-o", path, "--", "touch", "ran")
                    self.assertEqual(done.returncode, 4, done.stderr)
                    self.assertIn(words, done.stderr)
                    self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
                    self.assertEqual((os.lstat(path).st_ino, os.lstat(path).st_mode), (before.st_ino, before.st_mode))
                    self.assertFalse((self.folder / "ran").exists(), "refused before the command runs")
        # Links are renamed, never followed.
        for kind in ("endless_link", "link_to_nothing", "link", "hard_link"):
            for form, more in forms.items():
                with self.subTest(kind=kind, form=form):
                    self.clear()
                    path = self.make(f"{kind}.{form}")
                    done = self.run_briefly(*record, *more, "-o", path, "--", "touch", "ran")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    old = Path(f"{path}.old")
                    self.assertEqual(old.is_symlink(), kind != "hard_link")
                    self.assertFalse((self.folder / "nothing-there").exists())
                    if kind in ("link", "hard_link"):
                        self.assertEqual((self.folder / "target").read_bytes(), b"precious")

    def test_as_input(self):
        for command in (["script", "-i"], ["report", "-i"], ["folded", "-i"], ["hist", "-i"], ["dump", "-i"], ["header", "-i"],
                        ["script", "-i", programs.ROOT / "tests/data/bigreads.data", "--kallsyms"]):
            for kind in ("fifo", "device", "socket", "folder", "link_to_nothing", "endless_link"):
                with self.subTest(command=command[0], option=str(command[-1]), kind=kind):
                    self.clear()
                    path = self.make(f"{kind}.data")
                    done = self.run_briefly(programs.BIN / "tacho-report", *command, path)
                    # Without kallsyms a report continues with a message.
                    self.assertIn(done.returncode, (0, 1, 2) if command[-1] == "--kallsyms" else (1, 2), done.stderr)
                    self.assertIn(path.name.encode(), done.stderr)
                    self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_as_a_program_to_load(self):
        for kind in ("fifo", "device", "socket", "folder", "link_to_nothing", "endless_link"):
            for ending in ("bpf.o", "bpf.c"):
                with self.subTest(kind=kind, ending=ending):
                    self.clear()
                    path = self.make(f"{kind}.{ending}")
                    if path.name == "zero":
                        continue  # where no device may be made, its name ends otherwise
                    done = self.run_briefly(programs.BIN / "tacho-record", "-a", "-e", path, "--", "touch", "ran")
                    self.assertIn(done.returncode, (1, 2), done.stderr)
                    self.assertFalse((self.folder / "ran").exists())

    @programs.needs_root
    def test_as_a_file_with_symbols(self):
        """A file that the capture names is a special file when it is read."""
        program = self.folder / "symbols"
        program.write_bytes(Path("/bin/dd").read_bytes())
        program.chmod(0o755)
        self.run_program(programs.BIN / "tacho-record", "-q", "-g", "-e", "cpu-clock", "-F", "5000", "-o", "one.data", "--", "./symbols",
                         "if=/dev/zero", "of=/dev/null", "bs=512", "count=100000")
        program.unlink()
        whole = self.run_briefly(programs.BIN / "tacho-report", "script", "-i", "one.data").stdout
        self.assertIn(b"/symbols)", whole)
        for kind in ("fifo", "device", "socket", "folder", "endless_link"):
            with self.subTest(kind=kind):
                made = self.make(f"{kind}.made")
                if made.parent != self.folder:
                    continue
                made.rename(program)
                done = self.run_briefly(programs.BIN / "tacho-report", "script", "-i", "one.data")
                self.assertEqual(done.stdout, whole, "as if the file were not there")
                program.rmdir() if program.is_dir() else program.unlink()


if __name__ == "__main__":
    programs.main()
