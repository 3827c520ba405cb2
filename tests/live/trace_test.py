#!/usr/bin/env python3
"""-e trace and argdist: any probe with condition, key and value, of a program that says what it calls with."""
import csv
import io
import unittest
from pathlib import Path

import programs

PROGRAM = r"""
#include <stdlib.h>
__attribute__((noinline)) int taken(int kind, long bytes) { return kind + bytes > 0; }
int main(void) {
  int sum = 0;
  for (int i = 0; i < 100; ++i) sum += taken(i % 4, i < 60 ? 64 : 5000);
  return sum == 0;
}
"""
PROBE = "uprobe:./program:taken(kind=arg1:s32, bytes=arg2)"


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
        """By the command that the recording ends with."""
        [line] = [line for line in said.splitlines() if ": tacho " in line]
        command = line.split(": tacho ", 1)[1].removesuffix(" ]")
        return self.run_program("sh", "-c", f"{programs.BIN}/tacho {command}").stdout.decode()

    def test_values_are_told_and_chosen(self):
        said = self.record(f"trace/probe='{PROBE}'/")
        counts = {(row["kind"], row["bytes"]): int(row["count"]) for row in self.rows("--by", "kind,bytes", "--columns", "count")}
        self.assertEqual(counts, {(str(kind), size): 15 if size == "64" else 10 for kind in range(4) for size in ("64", "5000")})
        self.assertEqual(len(self.shown(said).splitlines()), 101)
        said = self.record(f"trace/probe='{PROBE}',if='bytes > 4096 && kind == 2'/")
        self.assertEqual(len(self.shown(said).splitlines()), 11)
        self.record(f"trace/probe='{PROBE}',comm=nobody/")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

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

    def test_a_field_that_is_not_there_is_told_at_once(self):
        every = "; every sample has comm, pid, tid, cpu, time, period, cgroup, event"
        for event, place, told in (
                (f"trace/probe='{PROBE}',if='byts > 4096'/", "if: ", f"has no 'byts'; it has kind, bytes{every}; did you mean 'bytes'?"),
                (f"trace/probe='{PROBE}',if='bytes > 1 && uid == 0'/", "if: ", "has no 'uid'; it has kind, bytes"),
                (f"argdist/probe='{PROBE}',value='size / 64'/", "value: ", f"has no 'size'; it has kind, bytes{every}"),
                (f"argdist/probe='{PROBE}',value=bytes,key='comm,knd'/", "key: ", "has no 'knd'; it has kind, bytes"),
                ("argdist/probe='uprobe:./program:taken',value=bytes/", "value: ", "it has no fields: a probe has those in its parentheses"),
                ("argdist/probe='syscalls:sys_enter_openat',value=flgs/", "value: ", "did you mean 'flags'?"),
                ("argdist/probe='syscalls:sys_enter_openat',key='dirfd'/", "key: ", "has no 'dirfd'; it has __syscall_nr, dfd, filename, flags, mode")):
            said = self.record(event, status=1)
            self.assertEqual(len(said.strip().splitlines()), 1, said)
            self.assertIn("letter ", said)
            self.assertIn(place, said)
            self.assertIn(told, said)
        # What every sample has, of each of them.
        for name in every.rsplit(" has ", 1)[1].split(", "):
            self.shown(self.record(f"argdist/probe='{PROBE}',key='{name},sample.comm'/"))
        self.record("argdist/probe='syscalls:sys_enter_exit_group',value='error_code + period'/")

    def test_tracepoints_as_well(self):
        self.record("trace/probe='syscalls:sys_enter_exit_group'/")
        self.assertEqual(len(self.rows("--by", "comm", "--columns", "count")), 1)


if __name__ == "__main__":
    programs.main()
