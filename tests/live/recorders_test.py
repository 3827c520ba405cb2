#!/usr/bin/env python3
"""The recorders of the catalogue: what they tell of loads of which everything is known, in every view, and by perf."""
import csv
import io
import os
import subprocess
import sys
import unittest
from pathlib import Path

import programs

# What each load does is in its name and numbers.
OPENS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char** argv) {
  for (int i = 0; i < 7; ++i) close(open("/proc/self/status", O_RDONLY));
  for (int i = 0; i < 5; ++i) close(syscall(SYS_openat, AT_FDCWD, "known_file", O_WRONLY | O_CREAT | O_TRUNC, 0640));
  for (int i = 0; i < 3; ++i) open("/nonexistent/known", O_RDWR);
  close(creat("known_other", 0600));
  unsigned long how[3] = {O_RDONLY, 0, 0};
  close(syscall(437, AT_FDCWD, "known_file", how, sizeof how));
  return 0;
}
"""


@programs.needs_root
@programs.needs_btf
class Recorders(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, cls.LOADS)

    LOADS = {}

    def setUp(self):
        super().setUp()
        done = self.run_program(programs.BIN / "tacho-record", "-e", "exec/help/", status=None)
        if done.returncode != 0:
            self.skipTest(done.stderr.decode())

    def record(self, event, *command, options=(), status=0):
        done = self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, *options, "--", *command,
                                status=status)
        return done.stderr.decode()

    def rows(self, *options):
        """A table's rows, as dictionaries by its columns."""
        text = self.tacho("table", "-i", "out.data", "--csv", *options).stdout.decode()
        return list(csv.DictReader(io.StringIO(text)))

    def counts(self, *keys, where=None):
        rows = self.rows("--by", ",".join(keys), "--columns", "count", *(["--where", where] if where else []))
        return {tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]: int(row["count"]) for row in rows}

    def read_everywhere(self, samples, *more):
        """Every view takes the capture, and perf counts as many samples."""
        for command in ("script", "report", *more):
            self.assertTrue(self.tacho(command, "-i", "out.data").stdout, command)
        if programs.shutil.which("perf"):
            done = self.run_program("perf", "script", "-i", "out.data", "-F", "comm,pid,time,event")
            self.assertEqual(len([line for line in done.stdout.splitlines() if line.strip()]), samples)


class Files(Recorders):
    LOADS = {"opens": OPENS}

    def test_open_tells_every_attempt(self):
        said = self.record("open", self.built / "opens", options=["-g"])
        self.assertIn("tacho table --by path,error -i out.data", said)
        known = self.counts("path", "error", "access", where='path ~ "*known*" || path ~ "/proc/self/status"')
        self.assertEqual(known, {("/proc/self/status", "OK", "O_RDONLY"): 7, ("known_file", "OK", "O_WRONLY"): 5,
                                 ("/nonexistent/known", "ENOENT", "O_RDWR"): 3, ("known_other", "OK", "O_WRONLY"): 1,
                                 ("known_file", "OK", "O_RDONLY"): 1})
        text = self.tacho("script", "-i", "out.data", "-F", "+payload", "--where", 'path == "known_file"').stdout.decode()
        self.assertIn("mode=0640", text)
        self.assertIn("flags=0x240", text)  # O_CREAT | O_TRUNC
        self.assertIn("do_syscall_64", text, "the stack that opened it")
        self.assertIn("lat_ns", self.tacho("hist", "-i", "out.data", "--by", "none").stdout.decode())
        self.read_everywhere(sum(self.counts("path").values()), "folded")

    def test_open_leaves_out_in_the_kernel_what_is_not_asked_for(self):
        self.record("open/failed,path='/nonexistent'/", self.built / "opens")
        self.assertEqual(self.counts("path", "error"), {("/nonexistent/known", "ENOENT"): 3})
        self.record("open/path=known,sample=1,comm=opens/", self.built / "opens", options=["-a"])
        self.assertEqual(self.counts("path"), {"known_file": 6, "known_other": 1})
        self.record("open/path=known,comm=nobody/", self.built / "opens", options=["-a"])
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)
        self.record("open/min_us=10000000/", self.built / "opens", options=["-a"])
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)


class Processes(Recorders):
    def test_exec_tells_programs_their_arguments_and_failures(self):
        script = 'for i in 1 2 3 4; do /bin/echo "a word" $i; done; /nonexistent/program x y; exec /bin/true last'
        self.record("exec", "/bin/sh", "-c", script)
        rows = self.counts("path", "args", "error")
        self.assertEqual({key: count for key, count in rows.items() if key[0] != "/bin/sh"},
                         {("/bin/echo", f"/bin/echo a word {i}", "OK"): 1 for i in range(1, 5)} |
                         {("/nonexistent/program", "/nonexistent/program x y", "ENOENT"): 1, ("/bin/true", "/bin/true last", "OK"): 1})
        self.read_everywhere(sum(rows.values()))
        self.record("execsnoop/failed/", "/bin/sh", "-c", script)
        self.assertEqual(self.counts("path", "error"), {("/nonexistent/program", "ENOENT"): 1})

    def test_exec_reads_long_arguments_as_far_as_there_is_room(self):
        self.record("exec", "/bin/true", "x" * 3000, "end")
        [row] = self.rows("--by", "args", "--where", 'path == "/bin/true"')
        self.assertEqual(row["args"], ("/bin/true " + "x" * 3000)[:511])


class Calls(Recorders):
    def test_syscall_counts_what_was_called(self):
        self.record("syscall", programs.BIN / "getppid_load", "1234")
        self.assertEqual(self.counts("call")["getppid"], 1234)
        total = sum(self.counts("call").values())
        self.read_everywhere(total)
        self.record("syscall/call=getppid,sample=10/", "taskset", "-c", "0", programs.BIN / "getppid_load", "1000")
        self.assertEqual(self.counts("call"), {"getppid": 100})
        self.record("syscall/call=getppid,rate=50/", programs.BIN / "getppid_load", "1000")
        self.assertLess(self.counts("call")["getppid"], 1000)
        self.record("syscall/call=getppid,min_us=60000000/", programs.BIN / "getppid_load", "100")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

    def test_options_are_the_objects_own(self):
        text = self.run_program(programs.BIN / "tacho-record", "-e", "syscall/help/").stdout.decode()
        for part in ("call (enum)", "min_us (u64)", "comm (char[16])", "  tp_btf/sys_enter\n  or tracepoint/raw_syscalls/sys_enter", "lat_ns, ret, call"):
            self.assertIn(part, text)
        for wrong, part in (("syscall/cal=read/", "letter 9: cal: there is no such option; there are: call (enum)"),
                            ("syscall/call=opn/", "letter 14: call: there is no 'opn' in its enum"),
                            ("open/min_us=x/", "letter 13: min_us: 'x' is not a number"),
                            ("sycall", "did you mean 'syscall'?")):
            said = self.record(wrong, "true", status=1)
            self.assertEqual(len(said.strip().splitlines()), 1)
            self.assertIn(part, said)
            self.assertNotIn("tacho_", said)

    def test_the_list_names_each_once(self):
        text = self.run_program(programs.BIN / "tacho-record", "--list-events", "recorders").stdout.decode()
        names = [line.split()[0] for line in text.splitlines()]
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertIn("Options", self.run_program(programs.BIN / "tacho-record", "-e", f"{name}/help/").stdout.decode())


if __name__ == "__main__":
    programs.main()
