#!/usr/bin/env python3
"""Summaries counted by BPF programs in maps, compared with strace and the known load, in every view and in perf."""
import csv
import io
import itertools
import os
import re
import subprocess
import time
import unittest

import programs

# A user's program: counts every call by number, bucket of bytes and stack.
CALLS = """
#include "vmlinux.h"
#include <tacho/emit.h>
struct call_key {
  __u32 pid;
  __s32 nr;
  __s32 kernel ROLE("stack");
  __s32 user ROLE("stack");
  __u32 slot ROLE("log2") UNIT("bytes");
};
struct call_value {
  __u64 calls ROLE("count");
  __u64 bytes ROLE("sum");
  __u64 largest ROLE("max");
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, ENTRIES);
  __type(key, struct call_key);
  __type(value, struct call_value);
} counted SEC(".maps");
SUMMARY(calls, counted);
struct {
  __uint(type, BPF_MAP_TYPE_STACK_TRACE);
  __uint(key_size, 4);
  __uint(value_size, 127 * 8);
  __uint(max_entries, 65536);
} stacks SEC(".maps");
SEC("tracepoint/raw_syscalls/sys_exit")
int leave(struct trace_event_raw_sys_exit *context) {
  __u64 bytes = context->ret > 0 ? context->ret : 0;
  if (!tacho_wants()) return 1;
  struct call_key key = {
      .pid = bpf_get_current_pid_tgid() >> 32,
      .nr = context->id,
      .kernel = bpf_get_stackid(context, &stacks, 0),
      .user = bpf_get_stackid(context, &stacks, BPF_F_USER_STACK),
      .slot = tacho_log2(bytes),
  };
  struct call_value *value = tacho_entry(counted, &key);
  if (!value) return 1;
  value->calls++;
  value->bytes += bytes;
  if (value->largest < bytes) value->largest = bytes;
  return 1;
}
char LICENSE[] SEC("license") = "GPL";
"""
# A map without SUMMARY(), and a histogram in its value.
PLAIN = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tacho/event.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, __s64); __type(value, __u64); } plain SEC(".maps");
SUMMARY(written, plain);
struct slots { __u32 slots[8] ROLE("linear:1000") UNIT("bytes"); };
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 2); __type(key, __u32); __type(value, struct slots); }
    spread SEC(".maps");
SUMMARY(written_spread, spread);
SEC("tracepoint/syscalls/sys_exit_pwrite64")
int leave(struct trace_event_raw_sys_exit *context) {
  __u64 one = 1, *count;
  __s64 bytes = context->ret;
  __u32 first = 0, slot = (__u64)bytes / 1000;
  if (bytes < 0 || bpf_get_current_pid_tgid() >> 32 != PID) return 1;
  count = bpf_map_lookup_elem(&plain, &bytes);
  if (count) __sync_fetch_and_add(count, 1); else bpf_map_update_elem(&plain, &bytes, &one, BPF_ANY);
  struct slots *slots = bpf_map_lookup_elem(&spread, &first);
  if (slots && slot < 8) slots->slots[slot]++;
  return 1;
}
char LICENSE[] SEC("license") = "GPL";
"""
# 300 writes of 100 bytes, 20 of 5000.
WRITES = r"""
#include <fcntl.h>
#include <unistd.h>
static char bytes[5000];
__attribute__((noinline)) static int writes(int file, int times, int size) {
  for (int i = 0; i < times; ++i) if (pwrite(file, bytes, size, 0) != size) return 1;
  return 0;
}
int main(void) {
  int file = open("known_file", O_RDWR | O_CREAT | O_TRUNC, 0600);
  return writes(file, 300, 100) + writes(file, 20, 5000);
}
"""
PWRITE = 18


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class Summaries(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, {"writes": WRITES})

    def record(self, *options, program=None, status=0):
        if program:
            (self.folder / "program.bpf.c").write_text(program)
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", "./program.bpf.c", *options,
                                status=status).stderr.decode()

    def rows(self, *options):
        return list(csv.DictReader(io.StringIO(self.tacho("table", "-i", "out.data", "--csv", *options).stdout.decode())))

    def test_each_call_is_counted_with_its_stack(self):
        said = self.record("--", self.built / "writes", program=CALLS.replace("ENTRIES", "4096"))
        rows = self.rows("--event", "calls", "--by", "value", "--where", f"nr == {PWRITE}", "--columns", "count,sum,min,max,p50")
        self.assertEqual([list(row.values()) for row in sorted(rows, key=lambda row: int(row["value"]))],
                         [["64", "300", "30000", "64", "127", "127"], ["4096", "20", "100000", "4096", "8191", "8191"]])
        shown = self.tacho("hist", "-i", "out.data", "--by", "none", "--where", f"nr == {PWRITE}").stdout.decode()
        self.assertIn("320 values", shown)
        self.assertRegex(shown, r"64 -> 127 +: 300 ")
        self.assertRegex(shown, r"4096 -> 8191 +: 20 ")
        folded = self.tacho("folded", "-i", "out.data").stdout.decode()
        weights = [int(line.rsplit(" ", 1)[1]) for line in folded.splitlines() if "pwrite" in line]
        # If two stacks collide in their map one is lost, which the recorder reports.
        lacks = [line for line in said.splitlines() if "have no stack" in line]
        self.assertEqual(sum(weights), 130000, f"{folded}\n{lacks}")
        self.assertRegex(folded, r"writes;.*main;\w*pwrite")
        text = self.tacho("script", "-i", "out.data", "-F", "+payload", "--where", f"nr == {PWRITE}").stdout.decode()
        self.assertRegex(text, r"(?s)writes +\d+ .*calls=300 bytes=30000 largest=100")
        self.assertIn("writes", self.tacho("report", "-i", "out.data").stdout.decode())
        if programs.shutil.which("strace"):
            subprocess.run(["strace", "-f", "-c", "-o", "calls", self.built / "writes"], cwd=self.folder, check=True)
            lines = [line.split() for line in (self.folder / "calls").read_text().splitlines()]
            self.assertEqual([line[3] for line in lines if line and line[-1] == "pwrite64"], ["320"])
        if programs.shutil.which("perf"):
            done = self.run_program("perf", "script", "-i", "out.data", "-F", "comm,pid,period,ip,sym")
            self.assertRegex(done.stdout.decode(), r"(?s)writes +\d+ +30000 .*pwrite")

    def test_readings_in_between_add_up(self):
        self.record("--interval", "20ms", "--", "sh", "-c", f"{self.built}/writes; sleep 0.2; {self.built}/writes",
                    program=CALLS.replace("ENTRIES", "4096"))
        [row] = self.rows("--by", "nr", "--where", f"nr == {PWRITE}", "--columns", "count,sum")
        self.assertEqual([row["count"], row["sum"]], ["640", "260000"])
        text = self.tacho("script", "-i", "out.data", "--ns", "-F", "time").stdout.decode()
        times = sorted({int(seconds) * 10**9 + int(part) for seconds, part in re.findall(r"(\d+)\.(\d{9}):", text)})
        self.assertGreater(len(times), 1)
        # Times of readings are multiples of --interval apart, even if the recorder was late; the last one is at the end.
        self.assertEqual({(time - times[0]) % 20_000_000 for time in times[:-1]}, {0}, times)

    def test_an_interval_without_anything_to_read_gives_a_line(self):
        line = b"--interval has no effect: none of the events is counted in the kernel"
        done = self.tacho("record", "-e", "cpu-clock", "--interval", "20ms", "-o", "none.data", "--", "true")
        self.assertIn(line, done.stderr)
        done = self.tacho("live", "--view", "table --by comm", "--interval", "50ms", "cpu-clock", "--", "true")
        self.assertNotIn(b"--interval", done.stderr)
        said = self.record("--interval", "20ms", "--", self.built / "writes", program=CALLS.replace("ENTRIES", "4096"))
        self.assertNotIn(line.decode(), said)

    def test_what_comes_while_events_are_off_is_left_out(self):
        """Programs count always: only counts made while events were enabled are recorded."""
        for name in ("commands", "answers"):
            os.mkfifo(self.folder / name)
        file = os.open(self.folder / "known_file", os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, file)

        def write(times, size):
            for _ in range(times):
                os.pwrite(file, bytes(size), 0)

        plain = (PLAIN.replace("PID", str(os.getpid())), ("--event", "written", "--by", "value", "--columns", "count"), {"200": 50, "400": 5})
        asks = (CALLS.replace("ENTRIES", "65536"),
                ("--by", "nr", "--where", f"nr == {PWRITE} && pid == {os.getpid()}", "--columns", "count,sum"), {str(PWRITE): 55})
        for (program, words, counts), interval in itertools.product((plain, asks), ((), ("--interval", "20ms"))):
            with self.subTest(words=words, interval=interval):
                (self.folder / "program.bpf.c").write_text(program)
                recorder = subprocess.Popen(
                    [programs.BIN / "tacho-record", "-o", "out.data", "-a", "-e", "./program.bpf.c", "-D", "-1", *interval,
                     "--control", "fifo:commands,answers"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
                self.addCleanup(recorder.stderr.close)
                self.addCleanup(recorder.wait)
                self.addCleanup(recorder.kill)
                said = ""
                while "Ready" not in said:
                    line = recorder.stderr.readline()
                    self.assertTrue(line, said)
                    said += line
                with open(self.folder / "commands", "w") as commands, open(self.folder / "answers") as answers:
                    for wanted, times, size in (("", 7, 100), ("enable", 30, 200), ("disable", 50, 300), ("enable", 20, 200), ("ping", 5, 400),
                                                ("disable", 9, 500)):
                        if wanted:
                            print(wanted, file=commands, flush=True)
                            answers.readline()
                        write(times, size)
                        if interval:
                            time.sleep(0.06)  # with or without intermediate readings the sums are equal
                    print("stop", file=commands, flush=True)
                    answers.readline()
                said += recorder.stderr.read()
                self.assertEqual(recorder.wait(timeout=programs.PATIENCE), 0, said)
                rows = self.rows(*words)
                self.assertEqual({row.get("value") or row["nr"]: int(row["count"]) for row in rows}, counts, said)
                self.assertTrue(all(row.get("sum", "12000") == "12000" for row in rows), rows)

    def test_a_full_map_is_reported(self):
        said = self.record("--", self.built / "writes", program=CALLS.replace("ENTRIES", "2"))
        self.assertIn("warning: summary 'calls': its map 'counted' is full (2 entries)", said)
        self.assertNotIn(" 0 lost", said)

    def test_maps_without_tags(self):
        waiting = subprocess.Popen(["sh", "-c", f"read x; exec {self.built}/writes"], stdin=subprocess.PIPE, cwd=self.folder)
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        self.addCleanup(waiting.stdin.close)
        program = PLAIN.replace("PID", str(waiting.pid))
        refused = self.record("--", "true", program=program, status=1)
        self.assertIn("the summary 'plain' counts all threads: record it with -a", refused)
        self.record("-a", "--", "sh", "-c", f"echo > /proc/{waiting.pid}/fd/0; "
                    f"until grep -q ^State:.Z /proc/{waiting.pid}/status; do sleep 0.05; done", program=program)
        rows = sorted(self.rows("--event", "written", "--by", "value"), key=lambda row: int(row["value"]))
        self.assertEqual([(row["value"], row["count"]) for row in rows], [("100", "300"), ("5000", "20")])
        # They belong to no thread; the name shown is the same here and in perf.
        for program in [self.tacho] + [self.perf] * bool(programs.shutil.which("perf")):
            names = program("script", "-i", "out.data", "-F", "comm,event").stdout.decode()
            self.assertRegex(names, r"(?m)^ *\[no thread\] +written: ")
            self.assertNotIn(":-1", names)
        shown = self.tacho("hist", "-i", "out.data", "--event", "written_spread").stdout.decode()
        self.assertRegex(shown, r"0 -> 999 +: 300 ")
        self.assertRegex(shown, r"5000 -> 5999 +: 20 ")

    def test_impossible_summaries_are_refused(self):
        (self.folder / "program.bpf.c").write_text(CALLS.replace("ENTRIES", "64"))
        for options, said in ((["--overwrite", "-a"], "is read at the end"), (["-C", "0", "-a"], "counts on all CPUs"),
                              (["--interval", "soon", "-a"], "--interval")):
            with self.subTest(options):
                self.assertIn(said, self.record(*options, "--", "true", status=1))
        odd = CALLS.replace("ENTRIES", "64").replace("char LICENSE", "SUMMARY(odd, stacks);\nchar LICENSE")
        self.assertIn("SUMMARY(odd, stacks): the map must be an array or a hash",
                      self.record("-a", "--", "true", status=2, program=odd))


if __name__ == "__main__":
    programs.main()
