#!/usr/bin/env python3
"""Symbols of files that are deleted before the recording ends: the recorder keeps files open from their first mapping on."""
import os
import platform
import re
import shutil
import unittest

import programs

EVENT = "syscalls:sys_enter_getppid"

# Calls getppid() in a function, and in JIT code if requested; then waits for the end of its input.
PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef LIBRARY
int in_the_library(int (*call)(void));
#else
static int in_the_library(int (*call)(void)) { return call(); }
#endif
__attribute__((noinline)) int call_of_the_vanished(void) { return (int)syscall(SYS_getppid) + 1; }
/* Its list of names: as it should be, older than the process, or of another user. */
static void make_code(const char* list) {
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0x5d, 0xc3};
  void* place = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(place, code, sizeof code);
  char name[64], unfinished[80];
  snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
  snprintf(unfinished, sizeof unfinished, "%s.new", name);
  FILE* map = fopen(unfinished, "w");
  fprintf(map, "%lx %x piece_made_at_run_time\n", (unsigned long)place, (unsigned)sizeof code);
  fclose(map);
  struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
  if (!strcmp(list, "old")) utimensat(AT_FDCWD, unfinished, old, 0);
  if (!strcmp(list, "foreign") && chown(unfinished, 65534, 65534) != 0) return;
  rename(unfinished, name);
  for (int i = 0; i < 5; ++i) ((int (*)(void))place)();
  while (getchar() != EOF) {}
  unlink(name);
}
int main(int count, char** words) {
  for (int i = 0; i < 5; ++i) in_the_library(call_of_the_vanished);
  if (count > 1) make_code(words[1]);
  while (getchar() != EOF) {}
  return 0;
}
"""
LIBRARY = "__attribute__((noinline)) int in_the_library(int (*call)(void)) { return call() + 1; }\n"

# The recorded command: starts each program, waits until the recorder, its parent, has opened the file, and deletes it.
LOAD = r"""
import os, subprocess, sys, time

def is_held(name):
    folder = f"/proc/{os.getppid()}/fd"
    for number in os.listdir(folder):
        try:
            if name in os.readlink(f"{folder}/{number}"):
                return True
        except OSError:
            pass
    return False

def run(words, names, then):
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    limit = time.monotonic() + 60
    while not all(is_held(name.format(process.pid)) for name in names):
        if time.monotonic() > limit:
            sys.exit(f"{words} {names}: not held open")
        time.sleep(0.02)
    then()
    process.stdin.close()
    process.wait()

run(["./deleted"], ["/deleted"], lambda: os.unlink("deleted"))
run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none root && cp -r inside/. root && exec chroot root /program"],
    ["/program", "/libown.so"], lambda: None)
if sys.argv[1] == "code":
    run(["./maker", "code"], ["/tmp/perf-{}.map"], lambda: None)
"""


LIBRARY_OF_REFUSALS = programs.BIN / "refusals.so"
needs_refusals = unittest.skipUnless(LIBRARY_OF_REFUSALS.exists(), "needs the library that refuses calls (build it with tests)")


def refusing(call, number):
    """Command prefix by which the given system call of a program fails."""
    return ["env", f"LD_PRELOAD={LIBRARY_OF_REFUSALS}", f"TACHO_REFUSE={call}:{number}"]


@programs.needs_root
@unittest.skipUnless(shutil.which("cc") and shutil.which("unshare"), "needs a C compiler and unshare")
class HeldFiles(programs.Scratch):
    def compile(self, output, *words):
        self.run_program("cc", "-O1", "-fno-omit-frame-pointer", "-o", output, *words)

    def setUp(self):
        super().setUp()
        if os.stat(self.folder).st_dev != os.stat("/").st_dev:
            self.skipTest("files of other mounts than that of / are not held before they are deleted")
        (self.folder / "program.c").write_text(PROGRAM)
        (self.folder / "library.c").write_text(LIBRARY)
        (self.folder / "load.py").write_text(LOAD)

    def test_deleted_files_have_names(self):
        self.look_for_what_is_gone([])

    @needs_refusals
    def test_on_kernels_without_openat2_too(self):
        self.look_for_what_is_gone(refusing("openat2", 1))

    def look_for_what_is_gone(self, before):
        self.compile("deleted", "-Wl,--build-id", "program.c")
        self.compile("maker", "program.c")
        inside = self.folder / "inside"
        for folder in ["root", "inside/tmp"]:
            (self.folder / folder).mkdir(parents=True)
        self.compile("libown.so", "-shared", "-fPIC", "-Wl,--build-id,-soname,libown.so", "library.c")
        self.compile("inside/program", "-DLIBRARY", "-Wl,--build-id", "program.c", "./libown.so", "-Wl,-rpath,/")
        listed = self.run_program("ldd", "inside/program").stdout.decode()
        for path in re.findall(r"(/lib(?:64)?/\S+) ", listed):
            (inside / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, inside / path[1:])
        shutil.move(self.folder / "libown.so", inside / "libown.so")
        done = self.run_program("chroot", inside, "/program", status=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        has_code = platform.machine() == "x86_64"
        said = self.run_program(*before, programs.BIN / "tacho-record", "-v", "-e", EVENT, "--call-graph", "fp", "-o", "x.data", "--",
                                "env", "-u", "LD_PRELOAD", "python3", "load.py", "code" if has_code else "").stderr.decode()
        self.assertFalse((self.folder / "deleted").exists())
        self.assertFalse((self.folder / "root/program").exists())
        held = re.search(r"files held open while it recorded: (\d+); refused: 0\b", said)
        self.assertTrue(held, said)
        self.assertGreaterEqual(int(held.group(1)), 4 if has_code else 3)
        shutil.rmtree(inside)
        text = self.tacho("script", "-i", "x.data", "-F", "comm,ip,sym,dso").stdout.decode()

        def stacks(comm):
            return [part for part in text.split("\n\n") if part.lstrip().startswith(comm)]

        def with_names(comm, *names):
            return sum(all(name in stack for name in names) for stack in stacks(comm))

        # syscall() has no frame pointer, so its caller would be missing.
        self.assertEqual(with_names("deleted", " main (", "/deleted)"), 5, text)
        self.assertEqual(with_names("program", " in_the_library (/libown.so)", " main (/program)"), 5, text)
        if has_code:
            self.assertEqual(with_names("maker", "piece_made_at_run_time"), 5, text)

    @unittest.skipUnless(platform.machine() == "x86_64", "the code is of x86-64")
    def test_lists_of_names_that_are_not_the_process_own_are_left_alone(self):
        self.compile("maker", "program.c")
        for kind, named in (("code", 5), ("old", 0), ("foreign", 0)):
            with self.subTest(kind=kind):
                # It ends by itself: the test cannot know when the recorder has opened the list.
                self.run_program(programs.BIN / "tacho-record", "-q", "-e", EVENT, "--call-graph", "fp", "-o", "x.data", "--", "sh", "-c",
                                 f"sleep 2 | ./maker {kind}")
                text = self.tacho("script", "-i", "x.data", "-F", "comm,ip,sym,dso").stdout.decode()
                self.assertEqual(text.count("piece_made_at_run_time"), named, text)
                self.assertEqual(text.count(" main (/"), 10, text)

    @needs_refusals
    def test_a_thread_that_cannot_drop_rights_opens_nothing(self):
        said = []
        for number in range(1, 20):
            done = self.run_program(*refusing("capset", number), programs.BIN / "tacho-record", "-e", "cpu-clock", "-o", "x.data", "--",
                                    "true").stderr.decode()
            self.assertIn("samples, 0 lost)", done)
            if "could not be dropped" not in done and "cannot be dropped" not in done:
                break
            said.append(done)
        self.assertTrue(any("files that may vanish are not kept open for their symbols: its rights cannot be dropped: capset" in line for line in said),
                        said)

    def test_files_beyond_the_limit_are_counted(self):
        self.compile("one", "-Wl,--build-id=none", "program.c")
        for number in range(20):
            shutil.copy(self.folder / "one", self.folder / f"copy{number}")
        # A quarter of 100 descriptors is for such files, and half of these for files that may be kept.
        said = self.run_program("prlimit", "--nofile=100:100", programs.BIN / "tacho-record", "-v", "-e", EVENT, "-g", "-o",
                                "x.data", "--", "sh", "-c",
                                "for i in $(seq 0 19); do ./copy$i < /dev/null; done").stderr.decode()
        found = re.search(r"files held open while it recorded: (\d+); refused: (\d+)", said)
        self.assertTrue(found, said)
        held, refused = map(int, found.groups())
        self.assertLessEqual(held, 12)
        self.assertGreaterEqual(refused, 8)
        # They still exist.
        self.assertEqual(self.tacho("script", "-i", "x.data", "-F", "ip,sym").stdout.count(b"call_of_the_vanished"), 100)


if __name__ == "__main__":
    programs.main()
