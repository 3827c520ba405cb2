#!/usr/bin/env python3
"""tacho list bpf: loaded BPF programs, compared with bpftool, and their costs."""
import json
import re
import shutil
import subprocess
import unittest

import programs

PROGRAM = r"""
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} channel SEC(".maps");
SEC("tracepoint/syscalls/sys_enter_getppid")
int a_program_with_a_rather_long_name(void *context) { return 1; }
SEC("tp_btf/sched_process_exec")
int by_type(void *context) { return 1; }
SEC("raw_tp/sched_process_exit")
int raw(void *context) { return 1; }
char LICENSE[] SEC("license") = "GPL";
"""
LINE = re.compile(r"^ *(\d+)  (\S+) +([0-9a-f]{16}) (\S+) +(\S+) +(\S+) +(?:(\S+) % +)?(.*)$")
ID, TYPE, TAG, NAME, RUNS, TIME, SHARE, PLACE = range(1, 9)


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class Listing(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "program.bpf.c").write_text(PROGRAM)
        environment = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        self.recorder = subprocess.Popen(
            [programs.BIN / "tacho-record", "-a", "-e", "./program.bpf.c", "-o", "out.data"],
            cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.recorder.stderr.close)
        self.addCleanup(self.recorder.wait)
        self.addCleanup(self.recorder.terminate)
        for line in self.recorder.stderr:
            if "Recording has begun" in line:
                break

    def rows(self, *options):
        lines = self.tacho("list", "bpf", *options).stdout.decode().splitlines()
        return {row[NAME]: row for row in map(LINE.match, lines) if row}

    def test_programs_stand_with_their_places_and_holders(self):
        rows = self.rows("-v")
        self.assertEqual(rows["a_program_with_a_rather_long_name"][TYPE], "tracepoint")
        self.assertEqual(rows["a_program_with_a_rather_long_name"][PLACE], "tracepoint sys_enter_getppid")
        self.assertEqual(rows["by_type"][PLACE], "tp_btf sched_process_exec")
        self.assertEqual(rows["raw"][PLACE], "raw_tracepoint sched_process_exit")
        text = self.tacho("list", "bpf", "by_t*", "-v").stdout.decode()
        self.assertIn(f"held by: tacho-record ({self.recorder.pid})", text)
        self.assertNotIn("a_program", text)
        refused = self.tacho("list", "bpf", "nothing_like_it", status=1).stderr.decode()
        self.assertIn("no loaded BPF program matches 'nothing_like_it'", refused)

    def test_cost_counts_runs_and_time(self):
        load = subprocess.Popen([programs.BIN / "getppid_load", "1000000", "1", "500"])
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        row = self.rows("--cost")["a_program_with_a_rather_long_name"]
        self.assertGreater(int(row[RUNS]), 0)
        self.assertGreater(int(row[TIME]), 0)
        self.assertGreaterEqual(float(row[SHARE]), 0)

    @unittest.skipUnless(shutil.which("bpftool"), "needs bpftool")
    def test_bpftool_says_the_same(self):
        theirs = {program["id"]: program for program in json.loads(self.run_program("bpftool", "-j", "prog", "show").stdout)}
        for row in self.rows().values():
            program = theirs.get(int(row[ID]))
            if program is not None:  # it was loaded before
                self.assertEqual((row[TYPE], row[TAG], row[NAME]), (program["type"], program["tag"], program["name"]))
        self.assertTrue(theirs)


if __name__ == "__main__":
    programs.main()
