#!/usr/bin/env python3
"""tacho stat counts what perf stat counts."""
import json
import os
import re
import signal
import subprocess
import time

import programs

LOAD = programs.BIN / "getppid_load"
CALLS = "syscalls:sys_enter_getppid"
CHILDREN = f"""
import os, threading
def call():
    for i in range(100): os.getppid()
threads = [threading.Thread(target=call) for i in range(3)]
for one in threads: one.start()
for one in threads: one.join()
for i in range(4):
    if os.fork() == 0:
        call(); os._exit(0)
for i in range(4): os.wait()
"""


class Stat(programs.Scratch):
    def stat(self, *words, status=0):
        return self.tacho("stat", *words, status=status).stderr.decode()

    def counts(self, *words):
        document = json.loads(self.stat("--json", *words))
        return {one["event"]: one["count"] for one in document["counts"]}, document

    def test_threads_and_children_are_counted(self):
        counts, document = self.counts("-e", f"{CALLS},task-clock", "--", "python3", "-c", CHILDREN)
        self.assertEqual(counts[CALLS], 700)
        self.assertGreater(counts["task-clock"], 1_000_000)
        self.assertGreater(document["elapsed_seconds"], 0)
        self.assertGreater(document["user_seconds"] + document["system_seconds"], 0)
        alone, _ = self.counts("-i", "-e", CALLS, "--", "python3", "-c", CHILDREN)
        self.assertLess(alone[CALLS], 700)

    def test_without_events_it_has_perfs_rows(self):
        said = self.stat("--", LOAD, "100")
        for name in ("task-clock", "context-switches", "cpu-migrations", "page-faults", "cycles", "instructions",
                     "branches", "branch-misses"):
            self.assertRegex(said, rf"\n +[\d,.]+ (msec|    ) {name} |\n +<not (supported|counted)>      {name} ")
        self.assertRegex(said, r"\n +[\d.]+ msec task-clock +# +[\d.]+ CPUs utilized +\n")
        self.assertRegex(said, r"\n +[\d.]+ seconds time elapsed\n\n +[\d.]+ seconds user\n +[\d.]+ seconds sys\n")

    def test_csv_has_perfs_columns(self):
        line = self.stat("-x,", "-e", CALLS, "--", LOAD, "250").splitlines()[-1]
        self.assertRegex(line, rf"^250,,{CALLS},\d+,100.00,,$")

    def test_processes_threads_and_intervals(self):
        with subprocess.Popen([LOAD, "100000000", "0", "1000"]) as load:
            try:
                counts, _ = self.counts("-e", CALLS, "-p", load.pid, "--", "sleep", "0.3")
                self.assertGreater(counts[CALLS], 20)
                rows = self.stat("-x,", "-I", "100", "--interval-count", "3", "-e", CALLS, "-t", load.pid).splitlines()
                self.assertEqual(len(rows), 3, rows)
                times = [float(row.split(",")[0]) for row in rows]
                self.assertEqual(times, sorted(times))
                self.assertGreater(sum(int(row.split(",")[1]) for row in rows), 10)
                self.assertRegex(self.stat("--per-thread", "-e", CALLS, "-p", load.pid, "--timeout", "100"),
                                 rf"\n +getppid_load-{load.pid} +[\d,]+ +{CALLS} ")
            finally:
                load.kill()

    def test_the_whole_system(self):
        document = json.loads(self.stat("--json", "-a", "-A", "-e", "cpu-clock", "--", "sleep", "0.2"))
        self.assertEqual(len(document["counts"]), os.cpu_count())
        for one in document["counts"]:
            self.assertGreater(one["count"], 0.15e9)

    def test_runs_are_averaged(self):
        said = self.stat("-r", "3", "-e", CALLS, "--", LOAD, "50")
        self.assertIn(f"getppid_load 50' (3 runs):\n\n                50      {CALLS}", said)
        self.assertRegex(said, r"[\d.]+ \+- [\d.]+ seconds time elapsed")

    def test_a_signal_ends_it_with_the_counts(self):
        run = subprocess.Popen([programs.BIN / "tacho", "stat", "-a", "-e", "cpu-clock"], stderr=subprocess.PIPE)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=30)[1].decode()
        self.assertEqual(run.returncode, 0)
        self.assertRegex(said, r"msec cpu-clock ")

    def test_statuses_and_refusals(self):
        self.assertIn("seconds time elapsed", self.stat("-n", "--", "sh", "-c", "exit 7", status=7))
        self.stat("-n", "--", "sh", "-c", "kill -9 $$", status=137)
        for words, said in ((["-e", "offcpu"], "counts events of the kernel"), (["-A", "true"], "-a or -C"),
                            (["-r", "2"], "no COMMAND"), (["--metric-only", "true"], "-j"),
                            (["-e", "nosuch", "true"], "nosuch"), (["-x", "", "true"], "separator"), (["./no"], "no such command")):
            self.assertIn(said, self.stat(*words, status=1), words)
        self.stat("-o", "counts", "-e", CALLS, "--", LOAD, "10")
        text = (self.folder / "counts").read_text()
        self.assertRegex(text, rf"^# started on .*\n\n\n Performance counter stats for '.*getppid_load 10':\n\n +10      {CALLS} ")

    def test_return_probes_in_a_program_that_throws_are_warned_of(self):
        (self.folder / "throw.cc").write_text('extern "C" __attribute__((noinline)) int inner(int x) { if (x > 100) throw 1; return x; }\n'
                                              "int main(int n, char **) { try { return inner(n) - n; } catch (...) { return 2; } }\n")
        self.run_program("g++", "-O1", "-o", "throw", "throw.cc")
        warning = "throws exceptions: an exception through a probed function would terminate its process"
        self.assertIn(warning, self.stat("-e", "uretprobe:./throw:inner", "--", "./throw"))
        for probe, is_warned in (("uretprobe", True), ("uprobe", False)):
            done = self.run_program(programs.BIN / "tacho-record", "-o", "x.data", "-e", f"{probe}:./throw:inner", "--", "./throw")
            self.assertEqual(warning in done.stderr.decode(), is_warned)


if __name__ == "__main__":
    programs.main()
