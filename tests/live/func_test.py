#!/usr/bin/env python3
"""-e func: function calls counted and timed in the kernel, with a program whose calls are all known."""
import csv
import io
import os
import re
import subprocess
import unittest

import programs

# 5 threads call leaf() 1000 times each, deep(3) calls itself down to 0, naps() takes 20 ms 3 times, hands_over() ends in a tail call.
PROGRAM = r"""
#include <pthread.h>
#include <time.h>
static volatile long sum;
__attribute__((noinline)) void leaf(long n) { sum += n; }
__attribute__((noinline, optimize("no-optimize-sibling-calls"))) long deep(long n) { sum += n; return n == 0 ? 0 : 1 + deep(n - 1) * 2; }
__attribute__((noinline)) void naps(void) { struct timespec t = {0, 20000000}; nanosleep(&t, 0); }
__attribute__((noinline)) long jumped(long n) { sum += n; return n * 3; }
__attribute__((noinline)) long hands_over(long n) { sum -= n; __attribute__((musttail_if_any)) return jumped(n + 1); }
static void *works(void *unused) { for (int i = 0; i < 1000; ++i) leaf(i); return unused; }
int main(void) {
  pthread_t threads[5];
  for (int i = 0; i < 5; ++i) if (pthread_create(&threads[i], 0, works, 0)) return 1;
  for (int i = 0; i < 5; ++i) if (pthread_join(threads[i], 0)) return 1;
  for (int i = 0; i < 7; ++i) sum += deep(3);
  for (int i = 0; i < 3; ++i) naps();
  for (int i = 0; i < 4; ++i) sum += hands_over(i);
  return 0;
}
"""
CALLS = {"main": 1, "works": 5, "leaf": 5000, "deep": 28, "naps": 3, "hands_over": 4, "jumped": 4}


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
class Func(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, {"base": "int main(void) { return 0; }"})
        source = PROGRAM.replace("__attribute__((musttail_if_any)) ", "")
        (cls.built / "known.c").write_text(source)
        # The compiler makes a tail call at the end of hands_over().
        subprocess.run(["cc", "-O1", "-fno-inline", "-foptimize-sibling-calls", "-pthread", "-o", cls.built / "known", cls.built / "known.c"], check=True)

    def setUp(self):
        super().setUp()
        self.need_recorder("func")
        (self.folder / "known").symlink_to(self.built / "known")

    def record(self, event, *command, options=(), status=0):
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, *options, "--", *(command or ["./known"]),
                                status=status).stderr.decode()

    def table(self, *columns, where=None):
        text = self.tacho("table", "-i", "out.data", "--csv", "--by", "function", "--columns", ",".join(columns),
                          *(["--where", where] if where else [])).stdout.decode()
        return {row["function"]: row for row in csv.DictReader(io.StringIO(text))}

    def counts(self):
        return {name: int(row["count"]) for name, row in self.table("count").items()}

    def test_every_call_is_counted(self):
        self.record("funccount/name='./known:*'/")
        counts = self.counts()
        self.assertEqual({name: counts.get(name) for name in CALLS}, CALLS)
        # Without times.
        fields = self.tacho("script", "-i", "out.data", "-F", "+payload").stdout.decode()
        self.assertRegex(fields, r"calls=5000\b")
        self.assertNotIn("ns=", fields)
        said = self.record("func/count,name='./known:*'/")
        view = re.search(r"func: (tacho .*) -i", said).group(1)
        self.assertRegex(self.tacho(*view.split()[1:], "-i", "out.data").stdout.decode(), r"(?m)^leaf +5000$")
        self.record("func/name='./known:[dhjlnmw]*'/")
        counts = self.counts()
        if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 6):  # does not report which function returns
            counts["hands_over"] = CALLS["hands_over"]
        self.assertEqual(counts, CALLS)
        self.assertIn("known", self.tacho("script", "-i", "out.data").stdout.decode())
        if programs.shutil.which("perf"):
            self.assertIn("known", self.run_program("perf", "script", "-i", "out.data", "-F", "comm,pid,event").stdout.decode())

    def test_calls_are_timed(self):
        said = self.record("funclatency/name='./known:*'/")
        self.assertIn("funclatency: tacho hist --by function -i out.data", said)
        rows = self.table("count", "sum", where="calls > 0")
        self.assertGreaterEqual(int(rows["naps"]["sum"]), 3 * 20_000_000)
        self.assertGreaterEqual(int(rows["main"]["sum"]), int(rows["naps"]["sum"]))
        shown = self.tacho("hist", "-i", "out.data", "--by", "function").stdout.decode()
        self.assertRegex(shown, r"function naps, 3 values")
        self.assertRegex(shown, r"function leaf, 5000 values")
        self.record("func/name='./known:*',min_us=15000/")
        counts = self.counts()
        # Other calls may wait so long for a CPU, but not all.
        self.assertEqual((counts["main"], counts["naps"]), (1, 3))
        self.assertLess(counts.get("leaf", 0), 1000)
        self.record("func/name='./known:leaf',sample=10/")
        self.assertIn(self.counts()["leaf"], range(450, 551))

    def test_functions_of_a_library(self):
        self.record("func/name='libc.so.6:nanosleep'/", options=["-g"])
        [(name, count)] = self.counts().items()
        self.assertEqual((name.strip("_"), count), ("nanosleep", 3))  # the library has two symbols for it

    def test_each_call_by_its_time(self):
        self.record("funcslower/binary='./known',functions='*',min_us=15000/")
        text = self.tacho("script", "-i", "out.data", "--columns", "function,dur_ns").stdout.decode()
        self.assertEqual(sorted(re.findall(r"\b(main|naps)\b", text)), ["main", "naps", "naps", "naps"], text)

    def test_wrong_use_is_answered(self):
        for event, said in (("func", "functions are missing: name="), ("func/name='./nosuch:*'/", "./nosuch: no such file"),
                            ("func/name='./known:zzz*'/", "has no function that matches 'zzz*'"),
                            ("func/name='libc.so.6:strlen'/", "is an IFUNC: calls go to one of several functions"),
                            ("func/name='no_such_function_*'/", "")):  # on a kernel with kprobes
            with self.subTest(event):
                done = self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, "--", "true", status=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stderr.decode())
                self.assertIn("func", done.stderr.decode())

    @unittest.skipUnless(os.path.exists("/sys/bus/event_source/devices/kprobe"), "needs a kernel with kprobes (tests/vm boots one)")
    def test_functions_of_the_kernel(self):
        said = self.record("func/name='__do_sys_getppid'/", programs.BIN / "getppid_load", "1234", status=None)
        if "no function that matches" in said or "CONFIG_DYNAMIC_FTRACE" in said:
            self.skipTest(said)
        [(name, row)] = self.table("count", "sum").items()  # by any of the function's symbols
        self.assertIn("sys_getppid", name)
        self.assertEqual(int(row["count"]), 1234, said)
        self.assertGreater(int(row["sum"]), 0)
        self.record("funccount/name='__do_sys_getppi*'/", programs.BIN / "getppid_load", "77")
        self.assertEqual(list(self.counts().values()), [77])


if __name__ == "__main__":
    programs.main()
