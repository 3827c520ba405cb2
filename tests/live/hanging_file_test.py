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
# A process with a file of the silent file system: mapped code that a thread reads, a thread's stack, a file that execve closes.
TARGET = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void* touch(void* place) { return (void*)(long)*(volatile char*)place; }
static void* pause_on_it(void* place) {
#ifdef __x86_64__
  __asm__ volatile("mov %0, %%rsp\n1: mov $34, %%eax\nsyscall\njmp 1b" : : "r"((char*)place + 4096));
#endif
  return place;
}
int main(int count, char** words) {
  const int file = open(words[2], O_RDONLY | O_CLOEXEC);
  void* const place = mmap(0, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  pthread_t thread;
  if (count < 3 || place == MAP_FAILED) return 1;
  puts("ready");
  fflush(stdout);
  (void)getchar();
  if (!strcmp(words[1], "exec")) execl("/bin/sleep", "sleep", "100", (char*)0);
  if (!strcmp(words[1], "code")) pthread_create(&thread, 0, touch, place);
  if (!strcmp(words[1], "stack")) pthread_create(&thread, 0, pause_on_it, place);
  puts("done");
  fflush(stdout);
  (void)getchar();
  (void)getchar();
  return 0;
}
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

    def view(self, *words, until=None):
        """Its status, standard output and errors, and how long it took. `until`: a function that is called while it runs."""
        process = subprocess.Popen([programs.BIN / "tacho", *words, "-p", str(self.load.pid)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        began = time.monotonic()
        if until:
            until(process)
        try:
            shown, said = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"{words} does not end")
        return process.returncode, shown, said, time.monotonic() - began

    def test_a_view_of_now_goes_on_without_the_silent_file(self):
        self.record_and_hang()
        for words in (["top", "-g", "-d", "0.5", "--duration", "3"], ["live", "--view", "script", "cpu-clock", "-g", "--duration", "3"]):
            with self.subTest(words=words):
                status, shown, said, _ = self.view(*words)
                self.assertEqual(status, 3, said)
                self.assertIn("hanging/file was left out: its file system does not answer", said)
                self.assertEqual(said.count("was left out"), 1, said)
                self.assertRegex(shown, r"hanging/file\)|\bfile +\[\.\] 0x")  # its module and addresses are there
                self.assertRegex(shown, r"read_zero|vfs_read|do_syscall_64")  # and the kernel's names

    def test_a_view_that_died_ends_the_recording(self):
        def kill(process):
            """Ends the view. Something else keeps its pipe, as a child of the view does that cannot be ended."""
            time.sleep(1.5)
            view = subprocess.run(["pgrep", "-P", str(process.pid), "tacho-report"], capture_output=True, text=True, check=True).stdout.split()[0]
            self.addCleanup(os.close, os.open(f"/proc/{view}/fd/0", os.O_RDONLY))
            os.kill(int(view), signal.SIGKILL)

        for words in (["top", "-d", "0.5"], ["live", "--view", "script", "cpu-clock", "-g", "-F", "5000"]):
            with self.subTest(words=words):
                status, _, said, seconds = self.view(*words, until=kill)
                self.assertEqual((status, said.count("the view ended: Killed")), (128 + signal.SIGKILL, 1), said)
                self.assertLess(seconds, 5)

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


@programs.needs_root
@unittest.skipUnless(os.path.exists("/dev/fuse") and shutil.which("cc"), "needs /dev/fuse and a C compiler")
class SilentProcess(programs.Scratch):
    """Processes that use files of a file system that never answers: a recorder that read there itself could not be ended."""
    LIMIT = 60  # seconds for a recording; one that hangs takes for ever

    def setUp(self):
        super().setUp()
        (self.folder / "target.c").write_text(TARGET)
        self.run_program("cc", "-O1", "-pthread", "-o", "target", "target.c")

    def silent_process(self, how, silent=None, go=True):
        """Starts a process, and silences its file system (`silent`: only for these operations)."""
        place = self.folder / f"mount{len(os.listdir(self.folder))}"
        place.mkdir()
        server = subprocess.Popen([sys.executable, SERVER, place, self.folder / "target", *([silent] if silent else [])], stdout=subprocess.PIPE)

        def end():
            server.kill()
            server.communicate()
            subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)

        self.addCleanup(end)
        if server.stdout.readline() != b"ready\n":
            self.skipTest("the kernel mounts no such file system here")
        process = subprocess.Popen([self.folder / "target", how, place / "file"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        server.send_signal(signal.SIGUSR1)
        subprocess.run("echo 1 > /proc/sys/vm/drop_caches", shell=True, check=True)
        if go:
            process.stdin.write(b"\n")
            process.stdin.flush()
            time.sleep(0.2)
        return process.pid, place / "file"

    def start(self, *words):
        # Its pipe: a child that cannot be ended must not hold it.
        return subprocess.Popen([programs.BIN / "tacho", *map(str, words)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def end_of(self, process, status=0):
        try:
            said = process.communicate(timeout=self.LIMIT)[0].decode()
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"{process.args} does not end")
        self.assertEqual(process.returncode, status, said)
        return said

    def test_whatever_operation_is_silent_recordings_end_and_name_the_file(self):
        targets = {silent: self.silent_process("code", silent, go=silent is None) for silent in (None, "READ", "OPEN", "LOOKUP", "FLUSH")}
        running = {silent: self.start("record", "-o", f"{silent}.data", "-g", "--duration", "0.5", "-p", pid) for silent, (pid, _) in targets.items()}
        for silent, process in running.items():
            with self.subTest(silent=silent):
                said = self.end_of(process)
                self.assertIn("Captured and wrote", said)
                if silent != "LOOKUP":  # it has the file by its mapping
                    self.assertIn(f"names and stacks are missing of what does not answer (a file system that hangs?): {targets[silent][1]}", said)

    def test_a_signal_during_the_start_ends_it(self):
        pid, _ = self.silent_process("code")
        for delay in (0.3, 0.6, 0.9):
            process = self.start("record", "-o", f"{delay}.data", "-e", "offcpu", "-p", pid)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=self.LIMIT)[0].decode()
            if "Recording has begun" in said:
                self.assertEqual(process.returncode, 0, said)
            else:
                self.assertEqual(process.returncode, 130, said)
                self.assertIn("ended by signal 2 before recording began", said)
                self.assertFalse((self.folder / f"{delay}.data").exists())

    def test_copied_stacks_are_unwound_without_the_silent_file(self):
        _, file = self.silent_process("code")
        said = self.end_of(self.start("record", "-o", "x.data", "--call-graph", "dwarf", "-a", "--duration", "0.5"))
        self.assertIn(f"does not answer (a file system that hangs?): {file}", said)
        # As record does for -g without BPF.
        self.end_of(self.start("convert", "--unwind", "--skip-file", file, "-i", "x.data", "-o", "plain.data"))
        self.assertNotIn("STACK_USER", self.tacho("header", "-i", "plain.data").stdout.decode())

    def test_no_probe_is_asked_for_in_a_silent_file(self):
        """The kernel reads the probed code while fork() waits: the host would stand still."""
        for silent in ("READ", "OPEN"):
            pid, file = self.silent_process("code", silent, go=False)
            event = f"uprobe:{file}:main"
            for words in (["stat", "-e", event, "-p", pid, "--timeout", "300"], ["stat", "-e", event, "--", "true"],
                          ["record", "-o", "x.data", "-e", event, "-p", pid, "--duration", "0.3"],
                          ["record", "-o", "x.data", "-e", f"calls/binary='{file}',functions='*'/", "-p", pid, "--duration", "0.3"],
                          ["list", event], ["stat", "--", file]):
                with self.subTest(silent=silent, words=words):
                    self.assertIn("its file system does not answer", self.end_of(self.start(*words), 2))
        pid, _ = self.silent_process("exec", "FLUSH")
        said = self.end_of(self.start("stat", "-p", pid, "--timeout", "300"), 2)
        self.assertIn("is in an execve that waits for a file system", said)

    def test_a_recording_of_all_with_bpf_is_ended_by_a_signal(self):
        self.silent_process("code")
        process = self.start("record", "-o", "x.data", "-e", "syscall", "-a")
        while b"begun" not in (line := process.stdout.readline()):
            self.assertTrue(line, "it ended")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        self.assertIn("Captured and wrote", self.end_of(process))

    @unittest.skipUnless(os.uname().machine == "x86_64", "its assembler is of x86-64")
    def test_stacks_gives_up_the_thread_and_shows_the_others(self):
        pid, _ = self.silent_process("stack")
        for words in ([], ["--stop"]):
            with self.subTest(words=words):
                said = self.end_of(self.start("stacks", *words, "-p", pid), status=3)
                self.assertIn("1 thread without the user's part of the stack", said)
                self.assertIn("does not answer", said)
                self.assertIn("main", said)

    def test_an_execve_that_hangs_holds_up_nobody(self):
        pid, _ = self.silent_process("exec", "FLUSH")
        running = [(self.start("stacks", "-p", pid), 3), (self.start("stacks", "--stop", "-p", pid), 2),
                   (self.start("record", "-o", "x.data", "-a", "-g", "--duration", "0.5"), 0)]
        for process, status in running:
            with self.subTest(words=process.args):
                said = self.end_of(process, status)
                if status == 2:
                    self.assertIn("does not answer", said)


if __name__ == "__main__":
    programs.main()
