#!/usr/bin/env python3
"""A capture with hundreds of damaged ELF files among good ones: every view shows every sample and the symbols of
the sound files, and leaves the folder as it was; also when the process that reads the files is killed in between.

TACHO_HOSTILE_FILES: how many (default 300; 5000 take four minutes); TACHO_MUTANTS_SEED: which ones.
"""
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import elf_mutator
import made_capture as made
import programs
from programs import ROOT

COUNT = int(os.environ.get("TACHO_HOSTILE_FILES", programs.scaled(300)))
SEED = int(os.environ.get("TACHO_MUTANTS_SEED", "20"))
SOURCES = ROOT / "tests/golden/symfs/tmp/c"
BASE, ROOM, CODE_AT = 0x10000000, 0x10000, 0x1000
SOUND_EVERY = 10
KILLS = 3
WHOLE, NO_RESULT, INCOMPLETE = 0, 2, 3
VIEWS = [["script", "--inline=all", "-F", "ip,sym,dso,srcline"], ["report", "-s", "dso,sym"], ["folded", "--inline"],
         ["script", "-F", "ip,sym,dso"], ["script", "-F", "ip,sym,dso,insn"]]
# strace's line of a call; of its second half when another thread's call came between: "<... read resumed>"DATA"..., 7) = 7".
CALL = re.compile(r"(?:<\.\.\. )?(\w+)(?:\(| resumed>)")
# How strace's line of a call ends that was refused: "= -1 ENOSYS (Function not implemented)".
REFUSED = ")"
# System calls that change files, communicate, or start processes.
CHANGES = ("^(creat|truncate|ftruncate|rename|unlink|rmdir|mkdir|mknod|link|symlink|chmod|fchmod|chown|fchown|lchown|utime|setxattr|pwrite"
           "|fallocate|copy_file_range|sendfile|splice|socket|connect|bind|send|recv|accept|execve|fork|vfork|ptrace|process_vm|kill|tkill"
           "|memfd|mount|umount|bpf|perf_event_open|io_uring|add_key|keyctl)")


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


class HostileFiles(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.symfs = self.folder / "symfs"
        (self.symfs / "x").mkdir(parents=True)
        files = {name: (SOURCES / name).read_bytes() for name in ("shapes", "order", "names")}
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL)).started()
        modules = []
        for number, (_, _, broken) in enumerate(elf_mutator.mutants(files, COUNT, SEED)):
            modules.append((f"/x/broken{number}", broken))
            if number % SOUND_EVERY == 0:
                modules.append((f"/x/sound{number}", files["shapes"]))
        for number, (path, contents) in enumerate(modules):
            (self.symfs / path[1:]).write_bytes(contents)
            capture.mapped(made.PID, BASE + number * ROOM, CODE_AT, CODE_AT, path)
            for offset in range(0x20, 0x400, 0x60):
                capture.sample(ip=BASE + number * ROOM + offset)
        (self.folder / "perf.data").write_bytes(capture.file())
        self.sound = sum("sound" in path for path, _ in modules)

    def command(self, view):
        return [str(programs.BIN / "tacho-report"), view[0], "-i", "perf.data", *view[1:], "--symfs", str(self.symfs), "--buildid-dir",
                str(self.folder / "none")]

    def start(self, view, *more, **environment):
        return subprocess.Popen([*self.command(view), *more], cwd=self.folder, env=dict(os.environ, LC_ALL="C.UTF-8", **environment),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def show(self, view, *more):
        program = self.start(view, *more)
        text, said = program.communicate(timeout=programs.PATIENCE)
        return program.returncode, text, said

    def contents(self):
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in self.folder.rglob("*")}

    def test_sound_files_keep_their_names_and_nothing_is_written(self):
        before = self.contents()
        for view in VIEWS:
            with self.subTest(view=" ".join(view)):
                status, text, said = self.show(view)
                self.assertIn(status, (WHOLE, INCOMPLETE), said)
                alone = self.show(view, "--no-worker")
                self.assertEqual((status, text, said), alone)
        status, text, said = self.show(VIEWS[0])
        named = {line.split(b"(/x/sound")[1].split(b")")[0] for line in text.splitlines() if b"(/x/sound" in line and b"[unknown]" not in line}
        self.assertEqual(len(named), self.sound)
        self.assertEqual(self.contents(), before)

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_as_the_kernel_sees_it_nothing_is_written_or_connected_to(self):
        """All system calls in the sandbox: files are opened only for reading, and bytes are written only to pipes to the parent."""
        for view in (VIEWS[0], VIEWS[1]):
            with self.subTest(view=view[0]):
                traced = subprocess.run(["strace", "-f", "-qq", "-y", "-o", "calls", *self.command(view)], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
                                        env=dict(os.environ, LC_ALL="C.UTF-8", ASAN_OPTIONS="detect_leaks=0"))
                if b"ptrace" in traced.stderr and not (self.folder / "calls").exists():
                    self.skipTest("strace may trace nothing here")
                calls = (self.folder / "calls").read_text(errors="replace").splitlines()
                self.check_calls([re.match(r"(\d+)\s+(.*)", line).groups() for line in calls])

    def check_calls(self, calls):
        confined, opened = set(), 0
        for thread, call in calls:
            found = CALL.match(call)
            name = found[1] if found else ""  # of signals and ends of processes
            if name == "seccomp" and call.endswith(" = 0"):
                confined.add(thread)
            elif thread not in confined or call.endswith(REFUSED):
                continue
            elif name in ("clone", "clone3"):
                if not call.startswith("<"):
                    self.assertIn("CLONE_THREAD", call)
                confined.update(re.findall(r" = (\d+)$", call))
            elif name.startswith("open"):
                opened += str(self.symfs) in call
                self.assertIsNone(re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", call), call)
            elif name in ("write", "writev"):
                self.assertRegex(call, r"^(writev?\(\d+<pipe:|<\.\.\. )")
            else:
                self.assertNotRegex(name, CHANGES, call)
        self.assertTrue(confined, "no worker was confined")
        self.assertGreaterEqual(opened, self.sound)

    def test_a_process_id_is_no_count_of_bytes(self):
        """The second half of a read of "deregister_tm_clones" is no clone(): the 525 bytes that it got are no thread."""
        trace = [("7", "seccomp(SECCOMP_SET_MODE_FILTER, 0, {len=148, filter=0x55c8}) = 0"),
                 ("7", r'<... pread64 resumed>"\0__abi_tag\0deregister_tm_clones\0"..., 525, 13288) = 525'),
                 ("525", "kill(-7, SIGKILL <unfinished ...>")]
        opened = [("7", f'openat(AT_FDCWD, "{self.symfs}/x/sound0", O_RDONLY) = 5')] * self.sound
        self.check_calls(trace + opened)
        with self.assertRaises(AssertionError):
            self.check_calls([*trace, *opened, ("7", "kill(-525, SIGKILL <unfinished ...>")])

    def test_killed_at_random_it_loses_an_object_at_most(self):
        random_ = random.Random(SEED)
        for view in VIEWS[1:4]:
            _, whole, _ = self.show(view)
            for _ in range(KILLS):
                with self.subTest(view=view[0]):
                    began = time.monotonic()
                    # The search for leaks at the end has a child as well, and waits for it for ever when it is killed.
                    program = self.start(view, ASAN_OPTIONS="detect_leaks=0")
                    for _ in range(random_.randrange(1, 3)):
                        # At any time of its work after its start.
                        while not children_of(program.pid) and program.poll() is None:
                            time.sleep(0.001)
                        time.sleep(random_.random() * 0.05)
                        for child in children_of(program.pid):
                            with contextlib.suppress(ProcessLookupError):  # it exited by itself
                                os.kill(child, signal.SIGKILL)
                    text, said = program.communicate(timeout=programs.PATIENCE)
                    self.assertLess(time.monotonic() - began, programs.PATIENCE)
                    if said.decode() == f"tacho: {self.symfs}: the process that read it died: Killed\n":
                        self.assertEqual(program.returncode, NO_RESULT)  # killed while it looked at --symfs
                        continue
                    self.assertIn(program.returncode, (WHOLE, INCOMPLETE), said)
                    self.check_text(view, text, whole, said)

    def check_text(self, view, text, whole, said):
        if b"the output ends there" in said:
            self.assertTrue(whole.startswith(text) and (text.endswith(b"\n") or not text), said)
            return
        lost = [line for line in said.splitlines() if b"was left out: the process that read it died: Killed" in line]
        if not lost:
            self.assertEqual(text, whole)
            return
        gone = [line.split(b": ")[2].split(b" was")[0] for line in lost]
        self.assertLessEqual(len(gone), 2, said)
        if view[0] != "script":  # rows change their places with their names
            return
        self.assertEqual(len(text.splitlines()), len(whole.splitlines()))
        for ours, other in zip(text.splitlines(), whole.splitlines()):
            if not any(b"(" + path + b")" in other for path in gone):
                self.assertEqual(ours, other)


if __name__ == "__main__":
    programs.main()
