#!/usr/bin/env python3
"""-e fastcalls: the preloaded library neither breaks unusual programs nor loses their calls."""
import json
import shutil
import subprocess
import unittest

import programs

# Two fibers that main enters in turns by TURN. The second half of each runs in another thread.
FIBERS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t home[2], fiber[2];
static int done[2];
#ifdef HIDDEN
static int (*turn)(ucontext_t *, const ucontext_t *);
static void (*make)(ucontext_t *, void (*)(void), int, ...);
#else
#define turn swapcontext
#define make makecontext
#endif
int yields(int which) { turn(&fiber[which], &home[which]); return which + 1; }
int deep(int which, int n) { return n ? deep(which, n - 1) + 1 : yields(which) + yields(which); }
int runs(int which) { return deep(which, 5) + deep(which, 3); }
void begins(int which) { done[which] = runs(which); }
int enters(int which) { turn(&home[which], &fiber[which]); return 0; }
int turns(int times) { int sum = 0; for (int i = 0; i < times; ++i) sum += enters(0) + enters(1); return sum; }
void *elsewhere(void *none) { turns(3); return none; }
int main(void) {
  pthread_t thread;
#ifdef HIDDEN
  turn = dlsym(RTLD_DEFAULT, "swapcontext");
  make = dlsym(RTLD_DEFAULT, "makecontext");
#endif
  for (int i = 0; i < 2; ++i) {
    getcontext(&fiber[i]);
    fiber[i].uc_stack.ss_sp = malloc(1 << 17);
    fiber[i].uc_stack.ss_size = 1 << 17;
    fiber[i].uc_link = &home[i];
    make(&fiber[i], (void (*)(void))begins, 1, i);
  }
  turns(2);
  pthread_create(&thread, 0, elsewhere, 0);
  pthread_join(thread, 0);
  printf("%d %d\n", done[0], done[1]);
  return 0;
}
"""

THROWS = r"""
#include <cstdio>
#include <stdexcept>
struct Counts { int &n; ~Counts() { ++n; } };
static int n;
int inner(int a) { Counts counts{n}; if (a) throw std::runtime_error("no"); return a; }
int outer(int a) { return inner(a) + 1; }
int main(int argc, char **) {
  for (int i = 0; i < 3; ++i) try { outer(argc); } catch (const std::exception &) { ++n; }
  std::printf("%d\n", n);
}
"""

# Threads that exit inside of calls.
ENDS = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_key_t key;
static int gone;
void goes(void *value) { __atomic_add_fetch(&gone, value != 0, __ATOMIC_SEQ_CST); }
int leaves(int n) { if (n) return leaves(n - 1) + 1; pthread_exit(0); }
int waits(int n) { if (n) return waits(n - 1) + 1; for (;;) pause(); }
void *one(void *way) { pthread_setspecific(key, &key); if (way) leaves(5); else waits(5); return 0; }
int main(void) {
  pthread_t threads[2];
  pthread_key_create(&key, goes);
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], 0, one, i ? &key : 0);
  pthread_cancel(threads[0]);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
  printf("%d\n", gone);
  return 0;
}
"""

# A signal handler leaves by longjmp() two hundred times, mostly while leaf() is being reported.
LEAVES = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
static sigjmp_buf place;
static volatile int times;
__attribute__((no_instrument_function)) static void handler(int number) { (void)number; if (++times <= 200) siglongjmp(place, 1); }
void leaf(void) {}
void naps(void) { struct timespec t = {0, 50000000}, rest; while (nanosleep(&t, &rest)) t = rest; }
int main(void) {
  const struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &every, 0);
  sigsetjmp(place, 1);
  while (times < 200) leaf();
  setitimer(ITIMER_REAL, &never, 0);
  naps();
  printf("%d\n", times >= 200);
  return 0;
}
"""

EARLY = r"""
#include <pthread.h>
static pthread_key_t key;
static int own;
int called(void) { return 1; }
__attribute__((constructor, no_instrument_function)) static void early(void) {
  pthread_key_create(&key, 0);
  pthread_setspecific(key, &own);
  called();
}
int is_kept(void) { return pthread_getspecific(key) == &own; }
"""


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
@unittest.skipUnless((programs.BIN / "libtacho-calls.so").exists(), "libtacho-calls.so is not built")
class FastCalls(programs.Scratch):
    def made(self, source, *flags, name="known", compiler="cc"):
        (self.folder / "source.c").write_text(source)
        language = "c++" if compiler == "c++" else "c"
        done = subprocess.run([compiler, "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-g", "-pthread", "-x", language, "source.c",
                               "-x", "none", *flags, "-o", name], cwd=self.folder, capture_output=True, check=False)
        if done.returncode != 0 and ("-static" in flags or compiler == "c++"):
            self.skipTest(done.stderr.decode())
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def record(self, *command, options="", events=None, recorder=programs.BIN / "tacho-record", status=0):
        words = events or ["-e", f"fastcalls/binary='./known'{options}/"]
        done = self.run_program(recorder, "-o", "c.data", *words, "--", *(command or ["./known"]), status=None)
        said = done.stderr.decode()
        if "carries no recorders" in said:
            self.skipTest(said)
        self.assertEqual(done.returncode, status, said)
        return said if status else done.stdout.decode().strip()

    def counts(self):
        found = {}
        for line in self.tacho("calls", "-i", "c.data", "--json").stdout.decode().splitlines():
            name = json.loads(line)["function"]
            found[name] = found.get(name, 0) + 1
        return found

    def test_stacks_may_be_switched(self):
        self.made(FIBERS, "-finstrument-functions")
        self.assertEqual(self.record(), "12 16")
        self.assertEqual(self.counts()["main"], 1)
        self.made(FIBERS, "-pg")
        said = self.record(status=1)
        self.assertRegex(said, r"switches stacks \(\w+\(\)\); compile it with -finstrument-functions")

    def test_unrecognized_stack_switches_return_correctly(self):
        for flags in (["-pg"], ["-pg", "-mfentry"]):
            with self.subTest(flags):
                self.made(FIBERS, "-DHIDDEN", *flags)
                self.assertEqual(self.record(), "12 16")
                self.assertEqual(self.counts()["main"], 1)

    def test_exceptions_fly_through_begins_and_ends_alone(self):
        self.made(THROWS, "-finstrument-functions", compiler="c++")
        self.assertEqual(self.record(), "6")
        self.made(THROWS, "-pg", compiler="c++")
        self.assertIn("handles exceptions, which would terminate it while its calls are recorded; compile it with -finstrument-functions",
                      self.record(status=1))

    def test_threads_end_in_the_midst(self):
        for flag in ("-pg", "-finstrument-functions"):
            with self.subTest(flag):
                self.made(ENDS, flag)
                self.assertEqual(self.record(), "2")

    def test_a_handler_may_leave_while_a_call_is_noted(self):
        for flag in ("-pg", "-finstrument-functions"):
            with self.subTest(flag):
                self.made(LEAVES, flag)
                self.assertEqual(self.record(options=",min_us=45000"), "1")
                self.assertEqual(self.counts().get("naps"), 1)

    def test_libraries_that_begin_before_keep_their_keys(self):
        self.made(EARLY, "-finstrument-functions", "-shared", "-fPIC", "-Wl,-z,initfirst", name="libearly.so")
        self.made("int is_kept(void);\nint main(void) { return !is_kept(); }\n", "-finstrument-functions", "./libearly.so")
        self.record()
        self.assertEqual(self.counts()["main"], 1)

    def test_functions_of_the_binary_alone_have_their_returns_replaced(self):
        """Returns of other libraries are not replaced: they may not support it."""
        self.made("int other(int n) { return n + 1; }\n", "-pg", "-shared", "-fPIC", name="libother.so")
        self.made("int other(int);\nint own(int n) { return other(n); }\nint main(void) { return own(1) != 2; }\n", "-pg", "./libother.so")
        self.record()
        self.assertEqual(self.counts(), {"main": 1, "own": 1})
        self.made("int other(int);\nint main(void) { return other(1) != 2; }\n", "./libother.so", name="plain")
        self.record("./plain")
        self.assertEqual(self.counts(), {})

    def test_it_is_known_how_a_program_was_compiled(self):
        self.made('const char *text = "mcount __cyg_profile_func_enter";\nint main(void) { return text == 0; }\n')
        self.assertIn("compiled neither with -pg nor with -finstrument-functions", self.record(status=1))
        self.made("int main(void) { return 0; }\n", "-pg", "-static")
        self.assertIn("is statically linked, so no library can be preloaded", self.record(status=1))

    def test_it_is_given_once(self):
        self.made("int main(void) { return 0; }\n", "-pg")
        event = ["-e", "fastcalls/binary='./known'/"]
        self.assertIn("give -e fastcalls once", self.record(events=event * 2, status=1))

    def test_the_library_is_in_a_path_that_can_be_preloaded(self):
        self.made("int main(void) { return 0; }\n", "-pg")
        for name in ("with blank", "with:colon"):
            folder = self.folder / name
            folder.mkdir()
            for each in ("tacho-record", "libtacho-calls.so"):
                shutil.copy(programs.BIN / each, folder)
            self.assertIn("a path in LD_PRELOAD must not have a blank", self.record(recorder=folder / "tacho-record", status=1))

    def test_no_time_is_too_long(self):
        self.made("int main(void) { return 0; }\n", "-pg")
        said = self.record("sh", "-c", "echo $TACHO_CALLS_MIN_NS", options=",min_us=18446744073709552")
        self.assertEqual(said, str(2**64 - 1))


if __name__ == "__main__":
    programs.main()
