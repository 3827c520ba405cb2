#!/usr/bin/env python3
"""-e alloc: outstanding memory of programs with known allocations, in all views."""
import csv
import io
import os
import re
import subprocess
import time
import unittest

import programs

# keeps(): 300 blocks of 1000 bytes, of which 100 are freed, and 20 of 5000; gives(): frees all; others(): one block by each
# allocating function. Outstanding at the end: 200 * 1000 + 20 * 5000, and 1000 + 7000 + 640 + 128 + 320 + 33 bytes.
PROGRAM = r"""
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
static void *kept[4096];
static int n;
__attribute__((noinline)) void keeps(int times, size_t bytes) { for (int i = 0; i < times; ++i) kept[n++] = malloc(bytes); }
__attribute__((noinline)) void gives(int times, size_t bytes) {
  for (int i = 0; i < times; ++i) { void *block = malloc(bytes); memset(block, i, 1); free(block); }
}
__attribute__((noinline)) void others(void) {
  void *block = malloc(50);
  block = realloc(block, 70);
  kept[n++] = realloc(block, 7000);
  kept[n++] = calloc(10, 100);
  if (posix_memalign(&kept[n++], 64, 640)) abort();
  kept[n++] = aligned_alloc(64, 128);
  kept[n++] = memalign(32, 320);
  kept[n++] = realloc(NULL, 33);
  block = malloc(99);
  if (realloc(block, (size_t)-1 / 2)) abort(); /* there is no such room: the block stays */
  kept[n++] = block;
  free(realloc(malloc(98), 0));
}
int main(void) {
  keeps(300, 1000);
  gives(500, 2000);
  keeps(20, 5000);
  others();
  for (int i = 0; i < 100; ++i) free(kept[i]);
  return n == 0;
}
"""
KEPT, OTHERS = 300_000, 1000 + 7000 + 640 + 128 + 320 + 33 + 99
# Blocks are freed by another thread, and a child frees blocks of its parent.
THREADS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *blocks[64];
__attribute__((noinline)) void fills(void) { for (int i = 0; i < 64; ++i) blocks[i] = malloc(700); }
static void *frees(void *unused) { for (int i = 0; i < 48; ++i) free(blocks[i]); return unused; }
int main(void) {
  pthread_t thread;
  fills();
  if (pthread_create(&thread, 0, frees, 0) || pthread_join(thread, 0)) return 1;
  if (fork() == 0) { for (int i = 48; i < 64; ++i) free(blocks[i]); _exit(0); }
  return wait(0) < 0;
}
"""
# Allocates 10 blocks at the start, 5 after a byte on standard input, and exits after another byte.
WAITS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *blocks[64];
__attribute__((noinline)) void first(void) { for (int i = 0; i < 10; ++i) blocks[i] = malloc(900); }
__attribute__((noinline)) void later(void) { for (int i = 10; i < 15; ++i) blocks[i] = malloc(500); }
int main(void) {
  char byte;
  if (read(0, &byte, 1) != 1) return 1;
  first();
  if (write(1, &byte, 1) != 1 || read(0, &byte, 1) != 1) return 1;
  later();
  if (write(1, &byte, 1) != 1) return 1;
  return read(0, &byte, 1) < 0 || !blocks[14];
}
"""

# Opens 500 files and keeps 300 of them open.
OPENS = r"""
#include <fcntl.h>
#include <unistd.h>
static int files[500];
int main(void) {
  char byte;
  if (read(0, &byte, 1) != 1) return 1;
  for (int i = 0; i < 500; ++i) if ((files[i] = open("/dev/null", O_RDONLY)) < 0) return 1;
  if (write(1, &byte, 1) != 1 || read(0, &byte, 1) != 1) return 1;
  for (int i = 0; i < 200; ++i) close(files[i]);
  sleep(1); /* the kernel gives them back a little later */
  if (write(1, &byte, 1) != 1) return 1;
  return read(0, &byte, 1) < 0;
}
"""


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
class Alloc(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, {"known": PROGRAM, "threads": THREADS, "waits": WAITS, "opens": OPENS})

    def setUp(self):
        super().setUp()
        self.need_recorder("alloc")

    def record(self, event, *words, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, *words, status=status).stderr.decode()

    def functions(self, *words):
        """{innermost function of the program: bytes}, from folded stacks."""
        found = {}
        for line in self.tacho("folded", "-i", "out.data", *words).stdout.decode().splitlines():
            stack, weight = line.rsplit(" ", 1)
            leaf = stack.rsplit(";", 1)[-1]
            found[leaf] = found.get(leaf, 0) + int(weight)
        return found

    def sums(self, *keys, where=None):
        text = self.tacho("table", "-i", "out.data", "--csv", "--by", ",".join(keys), "--columns", "count,sum",
                          *(["--where", where] if where else [])).stdout.decode()
        return {row[keys[0]]: (int(row["count"]), int(row["sum"])) for row in csv.DictReader(io.StringIO(text))}

    def test_unfreed_memory_has_its_stack(self):
        said = self.record("alloc", "--", self.built / "known")
        self.assertIn("alloc: tacho report --no-children -i out.data", said)
        self.assertEqual(self.functions(), {"keeps": KEPT, "others": OTHERS})
        self.assertEqual(list(self.sums("comm").values()), [(220 + 7, KEPT + OTHERS)])
        self.assertIn(";main;keeps ", self.tacho("folded", "-i", "out.data").stdout.decode())
        text = self.tacho("script", "-i", "out.data", "-F", "+payload", "--where", "blocks == 200").stdout.decode()
        self.assertRegex(text, r"bytes=200000 blocks=200 made_bytes=300000 made_blocks=300")
        self.assertRegex(self.tacho("report", "-i", "out.data", "--no-children", "-g", "none").stdout.decode(), r"97\.\d\d% +known +known +\[\.\] keeps")
        if programs.shutil.which("perf"):
            text = self.run_program("perf", "script", "-i", "out.data", "-F", "comm,pid,period,ip,sym").stdout.decode()
            self.assertRegex(text, r"known +\d+ +200000 *\n\s+[0-9a-f]+ keeps\n\s+[0-9a-f]+ main\n")

    def test_other_threads_and_processes_give_back(self):
        self.record("memleak", "--", self.built / "threads")
        # The child frees its copy: the parent's block is still outstanding.
        self.assertEqual({name: weight for name, weight in self.functions().items() if name == "fills"}, {"fills": 16 * 700})

    def test_options_choose_blocks(self):
        self.record("alloc/min_bytes=5000/", "--", self.built / "known")
        self.assertEqual(self.functions(), {"keeps": 100_000, "others": 7000})
        self.record("alloc/comm=nobody/", "--", self.built / "known")
        self.assertEqual(self.functions(), {})
        self.record("alloc/min_age_ms=100000/", "--", self.built / "known")
        self.assertEqual(self.functions(), {})
        self.record("alloc/sample=10,min_bytes=2000/", "--", self.built / "known")
        [(count, _)] = self.sums("comm").values()
        self.assertLessEqual(count, 21)  # 20 of the 500 that are freed, and one

    def test_memory_before_execve_does_not_count(self):
        self.record("alloc/min_bytes=500/", "--", "sh", "-c", f"{self.built}/known; exec {self.built}/known")
        self.assertEqual({comm: total for comm, (_, total) in self.sums("comm", where="made_blocks != 1").items()}, {"known": 2 * KEPT})
        self.record("alloc/alive/", "--", "sh", "-c", f"{self.built}/known; sleep 0.1")
        self.assertNotIn("known", self.sums("comm"))

    def start(self, program):
        """A program that is advanced step by step."""
        process = subprocess.Popen([self.built / program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for done in (process.stdin.close, process.stdout.close, process.wait, process.kill):
            self.addCleanup(done)

        def step():
            process.stdin.write(b"x")
            process.stdin.flush()
            process.stdout.read(1)

        return process, step

    def record_meanwhile(self, event, meanwhile, *options):
        for name in ("commands", "answers"):
            if not (self.folder / name).exists():
                os.mkfifo(self.folder / name)
        recorder = subprocess.Popen([programs.BIN / "tacho-record", "-o", "out.data", "-g", "-e", event, *options, "--control",
                                     "fifo:commands,answers"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        for done in (recorder.wait, recorder.kill, recorder.stderr.close):
            self.addCleanup(done)
        said = ""
        while "begun" not in said:
            line = recorder.stderr.readline()
            self.assertTrue(line, said)
            said += line
        meanwhile()
        with open(self.folder / "commands", "w") as commands, open(self.folder / "answers") as answers:
            print("stop", file=commands, flush=True)
            answers.readline()
        said += recorder.stderr.read()
        self.assertEqual(recorder.wait(timeout=programs.PATIENCE), 0, said)
        return said

    def test_one_process_alone_is_probed(self):
        process, step = self.start("waits")

        def meanwhile():
            step()
            subprocess.run([self.built / "known"], check=True)
            time.sleep(1.5)
            step()

        said = self.record_meanwhile(f"alloc/pid={process.pid},min_age_ms=1000/", meanwhile)
        found = self.functions()
        self.assertEqual(found.get("first"), 10 * 900, said)
        # Unless this machine slept for a second, the five of the second step were too young.
        self.assertIn(found.get("later", 0), (0, 5 * 500))
        self.assertNotIn("keeps", found)

    def test_the_kernels_memory_of_open_files(self):
        process, step = self.start("opens")

        def meanwhile():
            step()
            step()

        said = self.record_meanwhile(f"kalloc/pid={process.pid}/", meanwhile)
        lines = self.tacho("table", "-i", "out.data", "--csv", "--by", "pid", "--columns", "count", "--where", "blocks >= 300").stdout.decode()
        stacks = [line.rsplit(" ", 1) for line in self.tacho("folded", "-i", "out.data", "--where", "blocks >= 300").stdout.decode().splitlines()]
        files = [(stack, int(weight)) for stack, weight in stacks if re.search("alloc_(empty_)?file", stack)]
        self.assertTrue(files, (said, lines, stacks))
        # 500 were opened, and 200 of them closed. struct file has some 200 bytes.
        for stack, weight in files:
            self.assertEqual(weight % 300, 0, stack)
        if programs.shutil.which("perf"):
            self.assertIn("alloc", self.run_program("perf", "script", "-i", "out.data", "-F", "ip,sym").stdout.decode())

    def test_a_library_by_name(self):
        try:
            subprocess.run(["cc", "-O1", "-g", "-static", "-o", "alone", self.built / "known.c"], cwd=self.folder, check=True, capture_output=True)
        except subprocess.CalledProcessError:
            self.skipTest("needs a static C library")
        self.record("alloc", "--", "./alone")
        self.assertNotIn("keeps", self.functions())
        self.record("alloc/lib='./alone'/", "--", "./alone")
        self.assertEqual(self.functions()["keeps"], KEPT)

    def test_wrong_use_is_answered(self):
        for event, said in (("alloc/lib='./nosuch.so'/", "./nosuch.so: no such file"), ("alloc/pid=4194303/", "there is no process 4194303"),
                            (f"alloc/pid={os.getpid()},lib=libnosuch.so/", "has no libnosuch.so mapped"), ("alloc/lib='/bin/true'/", "has no function malloc()"),
                            ("alloc/lib=libnosuch.so/", "libnosuch.so: no such library or program"),
                            ("alloc/min_age=3/", "there is no such option")):
            with self.subTest(event):
                done = self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, "--", "true", status=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stderr.decode())


if __name__ == "__main__":
    programs.main()
