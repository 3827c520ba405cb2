#!/usr/bin/env python3
"""-e calls and tacho calls, with a program whose calls are all known, in all views."""
import json
import re
import subprocess
import time
import unittest

import programs

# main calls outer 3 times; outer calls twice(n), which calls itself down to 0, and leaf twice; jumps is left by longjmp.
PROGRAM = r"""
#include <setjmp.h>
#include <stdio.h>
#include <time.h>
static jmp_buf place;
__attribute__((noinline)) long leaf(long *object) { return *object += 1; }
__attribute__((noinline)) long again(long n) { return n == 0 ? 0 : 1 + again(n - 1) * 2; }
__attribute__((noinline)) void jumps(void) { longjmp(place, 1); }
__attribute__((noinline)) void naps(void) { struct timespec t = {0, 20000000}; nanosleep(&t, 0); }
__attribute__((noinline)) long outer(long *object) {
  leaf(object);
  if (!setjmp(place)) jumps();
  return again(3) + leaf(object);
}
int main(void) {
  static long object;
  long sum = 0;
  printf("%p\n", (void *)&object);
  for (int i = 0; i < 3; ++i) sum += outer(&object);
  naps();
  return sum == 0;
}
"""

TYPED = r"""
#include <stdbool.h>
enum kind { PLAIN, BOLD = 4 };
enum flags { READ = 1, WRITE = 2, SYNC = 8 };
int length(const char *text) { int n = 0; while (text[n]) ++n; return n; }
int signs(int a, unsigned short b, char c, bool is) { return is && b && c ? a : 0; }
enum kind kind_of(enum kind kind, enum flags flags) { return kind == BOLD && flags ? PLAIN : BOLD; }
double mixed(double x, int n, void *p) { return p ? x : x + n; }
const char *name_of(int n) { return n == 1 ? "one" : n == 2 ? "two" : 0; }
long seven(long a, long b, long c, long d, long e, long f, long g) { return a + b + c + d + e + f + g; }
/* What the argument points to is something else when it returns. */
int shout(char *text, char *out) { int n = 0; for (; text[n]; ++n) (out ? out : text)[n] = text[n] - 32; return n; }
int main(int argc, char **argv) {
  static char quiet[] = "quiet";
  volatile long sum = length("a \"b\"") + signs(-5, -5, 'x', true) + kind_of(BOLD, READ | SYNC) + (long)mixed(1.5, 7, 0);
  sum += name_of(2) != 0;
  sum += name_of(9) != 0;
  sum += seven(1, 2, 3, 4, 5, 6, 7) + shout(quiet, 0);
  return sum == 0;
}
"""


DEEP = r"""
#include <stdlib.h>
volatile int s;
__attribute__((noinline)) int rec(int n) { if (n <= 0) return s; int r = rec(n - 1); s += r; return r + 1; }
int main(int c, char **v) { for (int i = 0; i < atoi(v[2]); ++i) rec(atoi(v[1])); return 0; }
"""


def made(name, source, folder, *flags):
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-g", *flags, "-o", folder / name, folder / f"{name}.c"], check=True)


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
class Calls(programs.Scratch):
    def setUp(self):
        super().setUp()
        made("known", PROGRAM, self.folder)

    def record(self, options="", *words):
        done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", f"calls/binary='./known'{options}/", *words,
                                "--", "./known", status=None)
        said = done.stderr.decode()
        if "carries no recorders" in said:
            self.skipTest(said)
        self.assertEqual(done.returncode, 0, said)
        return done.stdout.decode().strip()

    def calls(self, *words, status=0):
        return self.tacho("calls", "-i", "c.data", *words, status=status).stdout.decode()

    def rows(self, *words):
        return [json.loads(line) for line in self.calls("--json", *words).splitlines()]

    def counts(self, *words):
        found = {}
        for row in self.rows(*words):
            found[row["function"]] = found.get(row["function"], 0) + 1
        return found

    def test_every_call_that_returns_is_there(self):
        self.record()
        self.assertEqual(self.counts(), {"main": 1, "outer": 3, "leaf": 6, "again": 12, "naps": 1})
        rows = self.rows()
        depths = {name: sorted({row["depth"] for row in rows if row["function"] == name}) for name in ("main", "outer", "leaf", "again")}
        self.assertEqual(depths, {"main": [1], "outer": [2], "leaf": [3], "again": [3, 4, 5, 6]})
        self.assertEqual(sorted(row["ret"] for row in rows if row["function"] == "leaf"), [f"{n:#x}" for n in range(1, 7)])
        nap = next(row for row in rows if row["function"] == "naps")
        self.assertGreaterEqual(nap["duration"], 20_000_000)
        main = next(row for row in rows if row["function"] == "main")
        for row in rows:
            self.assertTrue(main["begin"] <= row["begin"] and row["begin"] + row["duration"] <= main["begin"] + main["duration"])

    def test_calls_that_the_kernel_cannot_watch_are_lost_and_counted(self):
        """The kernel allows 64 uretprobes in flight in a thread: main and 63 calls of rec."""
        made("deep", DEEP, self.folder)
        for event in ("calls/binary='./deep'/", "func/name='./deep:*'/"):
            with self.subTest(event):
                said = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", event, "--", "./deep", "1000", "3").stderr.decode()
                self.assertRegex(said, r"samples, 2814 lost\)")
                self.assertIn("2814 calls lost, nested deeper than the 64 calls", said)
                self.assertIn("; the calls around them are recorded: rec 2814\n", said)
                self.assertNotIn("the rings were full", said)
                table = self.tacho("table", "-i", "c.data", "--csv", "--by", "function", "--columns", "count").stdout.decode()
                self.assertEqual(sorted(table.split()[1:]), ["main,1", "rec,189"])
        self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", "calls/binary='./deep'/", "--", "./deep", "1000", "3")
        self.assertIn("2814", self.tacho("calls", "-i", "c.data", "--report").stderr.decode())
        self.assertEqual({row["depth"] for row in self.rows_of_deep()}, set(range(1, 65)))
        # Calls below the given depth do not count as lost.
        said = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", "calls/binary='./deep',depth=10/", "--", "./deep", "1000", "3")
        self.assertRegex(said.stderr.decode(), r"\(28 samples, 0 lost\)")

    def rows_of_deep(self):
        return [json.loads(line) for line in self.calls("--json").splitlines()]

    def test_the_replay_shows_who_called_whom(self):
        self.record()
        names = [re.sub(r"^.*?\d+  (?=\S| )", "", line) for line in self.calls("--no-values").splitlines()[1:]]
        outer = ["  outer() {", "    leaf();", "    again() {", "      again() {", "        again() {", "          again();",
                 "        } /* again */", "      } /* again */", "    } /* again */", "    leaf();", "  } /* outer */"]
        self.assertEqual(names, ["main() {", *outer * 3, "  naps();", "} /* main */"])

    def test_arguments_and_return_values_are_shown_by_their_types(self):
        made("known", TYPED, self.folder)
        self.record()
        lines = [line.split("  ", 2)[-1].strip() for line in self.calls().splitlines()[1:]]
        calls = [re.sub(r"^\d+ +", "", line) for line in lines]
        for wanted in ('length(text="a \\"b\\"") = 5;', "signs(a=-5, b=65531, c='x', is=true) = -5;", "kind_of(kind=BOLD, flags=READ|SYNC) = PLAIN;",
                       "mixed(x=?, n=7, p=NULL);", 'name_of(n=2) = "two";', "name_of(n=9) = NULL;", "shout(text=\"quiet\", out=NULL) = 5;"):
            self.assertIn(wanted, calls)
        self.assertTrue(any(re.fullmatch(r"seven\(a=1, b=2, c=3, d=4, e=5, f=6, g=\?\) = 28;", call) for call in calls), calls)
        self.assertTrue(any(call.startswith("main(argc=1, argv=0x") for call in calls), calls)
        # The names are in the capture: the program was deleted.
        (self.folder / "known").unlink()
        self.assertIn("signs(a=-5, b=65531, c='x', is=true) = -5;", self.calls())
        rows = [row for row in self.rows() if row["function"] == "signs"]
        self.assertEqual(rows[0]["arguments"][0], {"name": "a", "type": "int", "value": -5})
        # Without debugging information there are only names.
        made("known", TYPED, self.folder)
        subprocess.run(["strip", "-g", "known"], cwd=self.folder, check=True)
        self.record()
        self.assertIn("  signs();", self.calls())

    def test_functions_are_chosen_by_name_when_it_is_read(self):
        self.record()
        self.assertEqual(self.counts("--where", 'function == "leaf"'), {"leaf": 6})
        self.assertEqual(self.counts("--where", 'function ~ "*a*" && function != "naps"'), {"main": 1, "leaf": 6, "again": 12})
        table = self.tacho("table", "-i", "c.data", "--by", "function", "--columns", "count", "--where", 'function == "again"').stdout.decode()
        self.assertRegex(table, r"(?m)^again +12$")

    def test_graph_and_report_add_up(self):
        self.record()
        graph = [line.rsplit("  ", 1) for line in self.calls("--graph").splitlines()[1:]]
        counts = [(line[0].split()[-1], line[-1].strip()) for line in graph]
        self.assertEqual(counts[0], ("1", "main"))
        self.assertEqual(sorted(counts[1:]), sorted([("3", "outer"), ("6", "leaf"), ("3", "again"), ("3", "again"), ("3", "again"),
                                                     ("3", "again"), ("1", "naps")]))
        report = {line.split()[-1]: line.split() for line in self.calls("--report").splitlines()[1:]}
        self.assertEqual({name: int(row[-2]) for name, row in report.items()},
                         {"main": 1, "outer": 3, "leaf": 6, "again": 12, "naps": 1})
        rows = self.rows()
        main = next(row["duration"] for row in rows if row["function"] == "main")
        below = sum(row["duration"] for row in rows if row["depth"] == 2)
        number = {"us": 1e3, "ms": 1e6, "s": 1e9}
        self.assertAlmostEqual(float(report["main"][0]) * number[report["main"][1]], main, delta=main / 500)
        self.assertAlmostEqual(float(report["main"][2]) * number[report["main"][3]], main - below, delta=(main - below) / 500 + 1)

    def test_chrome_reads_it(self):
        self.record()
        events = json.loads(self.calls("--chrome"))["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        self.assertEqual(len(spans), 23)
        self.assertEqual([event["args"]["name"] for event in events if event["ph"] == "M"], ["known"])
        self.assertTrue(all(event["dur"] >= 0 and event["pid"] == event["tid"] for event in spans))

    def test_the_life_of_one_object(self):
        address = self.record()
        # Registers are shown unchanged: without arguments they may have earlier values.
        counts = self.counts("--object", address)
        self.assertEqual((counts["outer"], counts["leaf"]), (3, 6))
        self.assertNotIn("again", counts)

    def test_options_choose_calls(self):
        self.record(",depth=2")
        self.assertEqual(self.counts(), {"main": 1, "outer": 3, "naps": 1})
        self.record(",min_us=15000")
        counts = self.counts()  # other calls may wait so long for a CPU, but not many
        self.assertEqual((counts["main"], counts["naps"]), (1, 1))
        self.assertLess(sum(counts.values()), 12, counts)
        self.record(",functions='[ol]*'")
        self.assertEqual(self.counts(), {"outer": 3, "leaf": 6})
        self.assertEqual({row["depth"] for row in self.rows() if row["function"] == "outer"}, {1})

    def test_probes_stand_where_they_cost_least(self):
        """Probes are after endbr64; function and arguments are the same."""
        try:
            made("known", TYPED, self.folder, "-fcf-protection=full", "-O0")
        except subprocess.CalledProcessError:
            self.skipTest("needs a compiler that knows -fcf-protection")
        done = self.run_program(programs.BIN / "tacho-record", "-v", "-o", "c.data", "-e", "calls/binary='./known'/", "--", "./known")
        self.assertRegex(done.stderr.decode(), r"\b([89]|\d\d) probes are placed after the endbr64")
        shown = self.calls()
        for wanted in ("length(text=", "signs(a=-5, b=65531, c='x', is=true) = -5;", 'name_of(n=2) = "two";'):
            self.assertIn(wanted, shown)
        self.assertEqual({row["function"] for row in self.rows()},
                         {"main", "length", "signs", "kind_of", "mixed", "name_of", "seven", "shout"})
        self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", "func/name='./known:name_of'/", "--", "./known")
        self.assertRegex(self.tacho("table", "-i", "c.data", "--by", "function").stdout.decode(), r"(?m)^name_of +2 ")

    def test_functions_have_names_in_every_view(self):
        self.record()
        rows = self.tacho("report", "-i", "c.data", "--sort", "function", "-g", "none", "--no-children").stdout.decode()
        self.assertRegex(rows, r"(?m)% +leaf$")
        self.assertNotRegex(rows, r"(?m)% +0x")
        for form in (("script", "--columns", "function"), ("table", "--by", "function", "--columns", "count")):
            self.assertRegex(self.tacho(form[0], "-i", "c.data", *form[1:]).stdout.decode(), r"(?m)^ *leaf\b")

    def test_three_hundred_probes_are_gone_soon(self):
        source = "".join(f"__attribute__((noinline)) int f{i}(int n) {{ return n + {i}; }}\n" for i in range(300))
        source += "int main(int n, char **v) { int s = 0;" + "".join(f" s += f{i}(n);" for i in range(300)) + " return s == 0; }\n"
        made("known", source, self.folder)

        def took(options=""):
            begun = time.monotonic()
            self.record(options)
            return time.monotonic() - begun

        # Attaching, running and detaching: detaching probes one by one waits for an RCU grace period each time. The time of a
        # recording of three functions is the reference for the load of the machine.
        rounds = []
        for _ in range(3):
            rounds.append((took(",functions='f[012]'"), took()))
            self.assertEqual(len(self.counts()), 301)
            few, many = rounds[-1]
            if many < max(2, 20 * few):
                return
        self.fail(f"seconds for 3 and for 301 functions: {rounds}")

    def test_functions_that_keep_their_return_address_are_left_out(self):
        # Statically linked, so that functions of the C library, which longjmp() passes, are traced too.
        try:
            made("known", PROGRAM, self.folder, "-static")
        except subprocess.CalledProcessError:
            self.skipTest("needs a static C library")
        self.record(",functions='*jmp*'")
        self.record(",functions='*jump*'")
        self.assertEqual(self.counts(), {}, "jumps() never returns")
        done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", "calls/binary='./known',functions='*setjmp'/",
                                "--", "true", status=1)
        self.assertIn("no function that matches '*setjmp'", done.stderr.decode())

    def fast(self, flags, options=""):
        made("known", PROGRAM, self.folder, *flags)
        done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", f"fastcalls/binary='./known'{options}/", "--", "./known",
                                status=None)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode().strip()

    def test_programs_that_tell_their_calls(self):
        """The calls of test_every_call_that_returns_is_there, without breakpoints in the program."""
        if not (programs.BIN / "libtacho-calls.so").exists():
            self.skipTest("libtacho-calls.so is not built")
        for flags in (["-pg"], ["-pg", "-mfentry"], ["-pg", "-fcf-protection=full"], ["-finstrument-functions"]):
            with self.subTest(flags):
                address = self.fast(flags)
                self.assertEqual(self.counts(), {"main": 1, "outer": 3, "leaf": 6, "again": 12, "naps": 1})
                rows = self.rows()
                self.assertEqual({name: sorted({row["depth"] for row in rows if row["function"] == name}) for name in ("main", "outer", "again")},
                                 {"main": [1], "outer": [2], "again": [3, 4, 5, 6]})
                nap = next(row for row in rows if row["function"] == "naps")
                self.assertGreaterEqual(nap["duration"], 20_000_000)
                self.assertFalse((self.folder / "gmon.out").exists())
                if flags[0] == "-pg":
                    shown = self.calls()
                    self.assertIn(f"leaf(object={address}) = 6;", shown)
                    self.assertIn("again(n=0) = 0;", shown)
                else:
                    self.assertNotIn("ret", nap)
                self.assertEqual(self.rows("--object", address) != [], flags[0] == "-pg")
        self.fast(["-finstrument-functions"], ",depth=2")
        self.assertEqual(self.counts(), {"main": 1, "outer": 3, "naps": 1})
        self.fast(["-pg"], ",min_us=15000")
        counts = self.counts()
        self.assertEqual((counts["main"], counts["naps"]), (1, 1))
        self.assertLess(sum(counts.values()), 12, counts)

    def test_programs_that_fastcalls_cannot_trace_are_refused(self):
        for words, said in ((["--", "./known"], "compiled neither with -pg nor with -finstrument-functions"), (["-a", "--duration", "1"], "compiled neither")):
            done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", "fastcalls/binary='./known'/", *words, status=1)
            self.assertIn(said, done.stderr.decode())
        made("known", PROGRAM, self.folder, "-pg")
        done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", "fastcalls/binary='./known'/", "-a", "--duration", "1", status=1)
        self.assertIn("record a COMMAND", done.stderr.decode())

    def test_calls_as_they_come(self):
        done = self.tacho("live", "calls/binary='./known'/", "--", "./known")
        self.assertRegex(done.stdout.decode(), r"(?m)^again +12 ")

    def test_templates_are_called_as_in_their_source(self):
        if not programs.shutil.which("c++"):
            self.skipTest("needs c++")
        (self.folder / "t.cc").write_text("namespace ns { struct C { template <class T> __attribute__((noinline)) T get(T n) { return n + 1; } };\n"
                                          "template <class T> struct D { T n; __attribute__((noinline)) T put(T m) { n = m; return n; } }; }\n"
                                          "int main(int n, char **) { ns::C c; ns::D<long> d{}; return c.get(n) + c.get(2L) + d.put(3) == 0; }\n")
        self.run_program("c++", "-O1", "-fno-inline", "-o", "known", "t.cc")
        self.record(",functions='ns::C::*'")
        self.assertEqual(sorted(self.counts().values()), [1, 1])
        self.record(",functions='ns::D::put'")
        self.assertEqual(list(self.counts().values()), [1])
        # As it is printed, too.
        [printed] = self.counts()
        self.assertIn("<", printed)
        for name in (printed, "ns::D<int>::*"):
            done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", f"calls/binary='./known',functions='{name}'/", "--", "./known")
            self.assertEqual(list(self.counts().values()), [1])
            self.assertIn("template arguments are not compared: all instances of 'ns::D::", done.stderr.decode())
        self.record()
        self.assertEqual(list(self.counts("--where", f'function == "{printed}"').values()), [1])
        self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", f"func/name='./known:{printed}'/", "--", "./known")
        self.assertIn("ns::D", self.tacho("table", "-i", "c.data", "--by", "function", "--columns", "count").stdout.decode())

    def test_programs_that_throw_give_a_warning(self):
        words = ("-o", "c.data", "-e", "calls/binary='./known',functions='leaf'/", "--", "./known")
        self.assertNotIn("throws", self.run_program(programs.BIN / "tacho-record", *words).stderr.decode())
        made("known", "extern int _Unwind_RaiseException(void *); __attribute__((noinline)) int leaf(int n) { return n; }\n"
             "int main(int n, char **v) { return n > 5 ? _Unwind_RaiseException(0) : leaf(n) != 1; }\n", self.folder)
        self.assertIn("./known throws exceptions", self.run_program(programs.BIN / "tacho-record", *words).stderr.decode())

    def test_wrong_use_is_answered(self):
        for words, said in [("calls", "the program is missing: binary="), ("calls/binary='./nosuch'/", "No such file"),
                            ("calls/binary='./known',functions='x*'/", "no function that matches 'x*'")]:
            done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", words, "--", "true", status=1)
            self.assertIn(said, done.stderr.decode())
        subprocess.run(["strip", "known"], cwd=self.folder, check=True)
        done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-e", "calls/binary='./known'/", "--", "true", status=1)
        self.assertIn("has no symbols", done.stderr.decode())


if __name__ == "__main__":
    programs.main()
