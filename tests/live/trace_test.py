#!/usr/bin/env python3
"""-e trace and argdist: probes with condition, key and value, with a program that prints its arguments."""
import csv
import io
import unittest
from pathlib import Path

import programs

PROGRAM = r"""
#include <stdlib.h>
__attribute__((noinline)) int taken(int kind, long bytes) { return kind + bytes > 0; }
__attribute__((noinline)) int signs(int n, const char *word) { return n + word[0]; }
int main(void) {
  int sum = 0;
  for (int i = 0; i < 100; ++i) sum += taken(i % 4, i < 60 ? 64 : 5000);
  const char *volatile words[] = {"even", "odd"};
  sum += words[0][0] + words[1][0]; /* a probe reads what is in memory */
  for (int n = -5; n < 5; ++n) sum += signs(n, words[n & 1]);
  return sum == 0;
}
"""
PROBE = "uprobe:./program:taken(kind=arg1:s32, bytes=arg2)"
SIGNS = "uprobe:./program:signs(n=arg1:s32, word=arg2:string)"


@programs.needs_root
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
@unittest.skipUnless(Path("/sys/bus/event_source/devices/uprobe/type").exists(), "needs a kernel with uprobes")
class Trace(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, {"program": PROGRAM})

    def setUp(self):
        super().setUp()
        programs.shutil.copy(self.built / "program", self.folder)

    def record(self, event, *options, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, *options, "--", "./program",
                                status=status).stderr.decode()

    def rows(self, *options):
        return list(csv.DictReader(io.StringIO(self.tacho("table", "-i", "out.data", "--csv", *options).stdout.decode())))

    def shown(self, said):
        """Output of the view that the recording suggests."""
        [line] = [line for line in said.splitlines() if ": tacho " in line]
        command = line.split(": tacho ", 1)[1].removesuffix(" ]")
        return self.run_program("sh", "-c", f"{programs.BIN}/tacho {command}").stdout.decode()

    def without_caret(self, said):
        """The lines of a message without the text and caret."""
        return [line for line in said.rstrip().splitlines() if not line.startswith("    ")]

    def test_values_are_shown_and_filtered(self):
        said = self.record(f"trace/probe='{PROBE}'/")
        counts = {(row["kind"], row["bytes"]): int(row["count"]) for row in self.rows("--by", "kind,bytes", "--columns", "count")}
        self.assertEqual(counts, {(str(kind), size): 15 if size == "64" else 10 for kind in range(4) for size in ("64", "5000")})
        self.assertEqual(len(self.shown(said).splitlines()), 101)
        said = self.record(f"trace/probe='{PROBE}',if='bytes > 4096 && kind == 2'/")
        self.assertIn("(10 samples, 0 lost)", said, "the kernel leaves out the others")
        self.assertEqual(len(self.shown(said).splitlines()), 11)
        self.record(f"trace/probe='{PROBE}',comm=nobody/")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

    def test_conditions_on_values_are_tested_in_the_kernel(self):
        for condition, count in (("n < 0", 5), ("n <= -3", 3), ("-3 < n && n < 2", 4), ('word == "odd"', 5), ('word ~ "ev*" && n > 0', 2),
                                 ('word != "odd" || n == 3', 6), ("n & 1", 5), ('n == 3 && comm == "program" && uid == 0', 1), ("n > 100", 0)):
            with self.subTest(condition):
                for event, options in ((f"trace/probe='{SIGNS}',if='{condition}'/", []), (SIGNS, ["--filter", condition])):
                    said = self.record(event, *options)
                    self.assertIn(f"({count} samples, 0 lost)", said)
        # With the unwinder, which runs after it.
        said = self.record(SIGNS, "-g", "--filter", "n < -2")
        self.assertIn("(3 samples, 0 lost)", said)
        self.assertIn("main", self.tacho("folded", "-i", "out.data").stdout.decode())
        for condition, reported in (("n / 2 > 1", "only a value, or bits of it"), ("time > 5", "there is no 'time' that the kernel can test"),
                                ("n > n", "one side of a comparison must be a constant")):
            said = self.record(f"trace/probe='{SIGNS}',if='{condition}'/", status=1)
            self.assertEqual(len(self.without_caret(said)), 1, said)
            self.assertIn(reported, said)

    def test_hits_are_added_up_in_the_kernel(self):
        said = self.record(f"argdist/probe='{PROBE}',value=bytes,key=kind/")
        self.assertIn("(8 samples, 0 lost)", said, "a sample for each kind and power of two")
        rows = {row["kind"]: (int(row["count"]), int(row["sum"])) for row in self.rows("--by", "kind", "--columns", "count,sum")}
        self.assertEqual(rows, {str(kind): (25, 15 * 64 + 10 * 5000) for kind in range(4)})
        said = self.record(f"argdist/probe='{SIGNS}',key=word,if='n < 3'/")
        self.assertIn("(2 samples, 0 lost)", said)
        self.assertEqual({row["word"]: int(row["count"]) for row in self.rows("--by", "word", "--columns", "count")}, {"odd": 4, "even": 4})
        self.record(f"argdist/probe='{SIGNS}',value=n/")
        shown = self.tacho("hist", "-i", "out.data", "--field", "n", "--by", "none").stdout.decode()
        self.assertRegex(shown, r"0 -> 1 +: 7 ", "with those below 0")
        self.assertRegex(shown, r"2 -> 3 +: 2 ")
        self.assertEqual([int(row["sum"]) for row in self.rows("--by", "pid", "--columns", "sum")], [-5])
        said = self.record(f"argdist/probe='{PROBE}',value='bytes / 64'/")
        self.assertIn("each hit is a sample, and nothing is added up in the kernel: the value 'bytes / 64' is an expression", said)
        self.assertIn("a text has no distribution", self.record(f"argdist/probe='{SIGNS}',value=word/", status=1))
        said = self.record(f"argdist/probe='{PROBE}'/", "-C", "0", status=1)
        self.assertIn("counts on all CPUs", said)

    def test_tracepoints_are_added_up(self):
        work = ["sh", "-c", "for i in 1 2 3; do /bin/true; done; exit 3"]
        record = lambda event, status=0: self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, "--", *work,
                                                          status=status).stderr.decode()
        said = record("argdist/probe='sched:sched_process_exec',key=filename/", 3)
        counts = {row["filename"]: int(row["count"]) for row in self.rows("--by", "filename", "--columns", "count")}
        self.assertEqual(counts.get("/bin/true"), 3, said)
        record("argdist/probe='syscalls:sys_enter_exit_group',value=error_code,if='error_code >= 2'/", 3)
        self.assertEqual([(int(row["count"]), int(row["sum"])) for row in self.rows("--by", "pid", "--columns", "count,sum")], [(1, 3)])
        record("argdist/probe='syscalls:sys_enter_exit_group',key='comm,error_code',if='error_code == 0 && comm == \"true\"'/", 3)
        self.assertEqual([(row["comm"], int(row["count"])) for row in self.rows("--by", "comm", "--columns", "count")], [("true", 3)])
        said = record("argdist/probe='raw_syscalls:sys_enter',key=args/", 1)
        self.assertIn("'args' is neither a number nor a text", said)

    def test_distributions_and_counts(self):
        shown = self.shown(self.record(f"argdist/probe='{PROBE}',value=bytes/"))
        self.assertRegex(shown, r"64 -> 127 +: 60 ")
        self.assertRegex(shown, r"4096 -> 8191 +: 40 ")
        shown = self.shown(self.record(f"argdist/probe='{PROBE}',key='comm,kind'/"))
        self.assertRegex(shown, r"(?m)^program +3 +25$")
        shown = self.shown(self.record(f"argdist/probe='{PROBE}',value='bytes / 64',key=kind/"))
        self.assertIn("78.125", shown)
        shown = self.tacho("live", f"argdist/probe='{PROBE}',key=kind/", "--", "./program").stdout.decode()
        self.assertRegex(shown, r"(?m)^ *3 +25$")

    def test_an_unknown_field_is_refused_at_once(self):
        every = "; every sample has comm, pid, tid, cpu, time, period, cgroup, event"
        for event, place, reported in (
                (f"trace/probe='{PROBE}',if='byts > 4096'/", "if: ", f"has no 'byts'; it has kind, bytes{every}; did you mean 'bytes'?"),
                (f"trace/probe='{PROBE}',if='bytes > 1 && uidd == 0'/", "if: ", "has no 'uidd'; it has kind, bytes"),
                (f"argdist/probe='{PROBE}',value='size / 64'/", "value: ", f"has no 'size'; it has kind, bytes{every}"),
                (f"argdist/probe='{PROBE}',value=bytes,key='comm,knd'/", "key: ", "has no 'knd'; it has kind, bytes"),
                ("argdist/probe='uprobe:./program:taken',value=bytes/", "value: ", "it has no fields: a probe has those in its parentheses"),
                ("argdist/probe='syscalls:sys_enter_openat',value=flgs/", "value: ", "did you mean 'flags'?"),
                ("argdist/probe='syscalls:sys_enter_openat',key='dirfd'/", "key: ", "has no 'dirfd'; it has __syscall_nr, dfd, filename, flags, mode")):
            said = self.record(event, status=1)
            self.assertEqual(len(self.without_caret(said)), 1, said)
            self.assertIn("column ", said)
            self.assertIn(place, said)
            self.assertIn(reported, said)
        # Values that every sample has.
        for name in every.rsplit(" has ", 1)[1].split(", "):
            self.shown(self.record(f"argdist/probe='{PROBE}',key='{name},sample.comm'/"))
        self.record("argdist/probe='syscalls:sys_enter_exit_group',value='error_code + period'/")

    def test_tracepoints_as_well(self):
        self.record("trace/probe='syscalls:sys_enter_exit_group'/")
        self.assertEqual(len(self.rows("--by", "comm", "--columns", "count")), 1)


if __name__ == "__main__":
    programs.main()
