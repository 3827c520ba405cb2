#!/usr/bin/env python3
"""-e bpfstat: costs of BPF programs, with programs of a known number of runs; and user iterators."""
import csv
import io
import unittest

import programs

CALLS = 20_000
# Only the needed kernel types: compiling vmlinux.h takes a minute on an emulated machine.
TYPES = """
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
struct task_struct { int pid; char comm[16]; unsigned long nvcsw; } __attribute__((preserve_access_index));
struct bpf_iter_meta { __u64 session_id, seq_num; } __attribute__((preserve_access_index));
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; } __attribute__((preserve_access_index));
"""
# Runs for every getppid(), whoever calls it.
COUNTED = TYPES + """
#include <tacho/event.h>
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); } asked SEC(".maps");
SUMMARY(asked_for, asked);
SEC("tracepoint/syscalls/sys_enter_getppid")
int counts_getppid(void *context) {
  __u32 first = 0;
  __u64 *count = bpf_map_lookup_elem(&asked, &first);
  if (count) __sync_fetch_and_add(count, 1);
  return 1;
}
char LICENSE[] SEC("license") = "GPL";
"""
# Kernel threads by name, found by an iterator at each reading.
TASKS = TYPES + """
#include <tacho/event.h>
struct task_key { char name[16] ROLE("key"); __u32 tid; };
struct task_value { __u64 switches ROLE("count"); };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8192); __type(key, struct task_key); __type(value, struct task_value); }
    tasks SEC(".maps");
SUMMARY(switches, tasks);
SEC("iter/task")
int each(struct bpf_iter__task *context) {
  struct task_struct *task = context->task;
  struct task_key key = {};
  struct task_value value = {};
  if (!task) return 0;
  key.tid = task->pid;
  __builtin_memcpy(key.name, task->comm, sizeof key.name);
  value.switches = task->nvcsw;
  bpf_map_update_elem(&tasks, &key, &value, BPF_ANY);
  return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""

# An iterator that fills two summaries and counts its runs.
TWICE = TYPES + """
#include <tacho/event.h>
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); } first SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); } second SEC(".maps");
SUMMARY(first_runs, first);
SUMMARY(second_runs, second);
SEC("iter/task")
int each(struct bpf_iter__task *context) {
  __u32 zero = 0;
  __u64 *one = bpf_map_lookup_elem(&first, &zero), *other = bpf_map_lookup_elem(&second, &zero);
  if (context->meta->seq_num != 0 || !context->task || !one || !other) return 0;
  __sync_fetch_and_add(one, 1);
  __sync_fetch_and_add(other, 1);
  return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class Costs(programs.Scratch):
    def record(self, *words, program=COUNTED, status=0):
        (self.folder / "counted.bpf.c").write_text(program)
        done = self.run_program(programs.BIN / "tacho-record", "--no-pack", "-o", "b.data", "-e", "./counted.bpf.c", *words, status=None)
        said = done.stderr.decode()
        if "carries no recorders" in said:
            self.skipTest(said)
        self.assertEqual(done.returncode, status, said)
        return said

    def rows(self, *words):
        done = self.tacho("table", "-i", "b.data", "--csv", *words)
        return list(csv.DictReader(io.StringIO(done.stdout.decode())))

    def test_runs_and_time_of_a_program_that_is_known(self):
        self.record("-e", "bpfstat", "-a", "--", programs.BIN / "getppid_load", str(CALLS))
        rows = {row["program"]: row for row in self.rows("--event", "bpfstat", "--by", "program,type", "--columns", "count,sum,mean")}
        self.assertIn("counts_getppid", rows, rows)
        row = rows["counts_getppid"]
        self.assertTrue(CALLS <= int(row["count"]) <= CALLS + 2000, row)
        # The program's own count; the two are read one after the other.
        own = int(self.rows("--event", "asked_for", "--by", "event", "--columns", "count")[0]["count"])
        self.assertLess(abs(own - int(row["count"])), 2000)
        self.assertEqual(row["type"], "BPF_PROG_TYPE_TRACEPOINT")
        self.assertGreater(int(row["sum"]), CALLS * 2)  # ns

    def test_over_time_and_of_one_program(self):
        self.record("-e", "bpfstat/program='counts_getppid'/", "-a", "--interval", "100ms", "--", programs.BIN / "getppid_load",
                    "400", "1", "1000")
        rows = self.rows("--event", "bpfstat", "--by", "program", "--columns", "count")
        self.assertEqual([row["program"] for row in rows], ["counts_getppid"])
        self.assertTrue(400 <= int(rows[0]["count"]) <= 2400, rows)
        samples = self.tacho("script", "-i", "b.data", "--event", "bpfstat", "-F", "time").stdout.decode().splitlines()
        self.assertGreater(len(samples), 2)

    def test_an_iterator_of_ones_own(self):
        self.record("-a", "--", "sh", "-c", "for i in 1 2 3 4 5; do sleep 0.01; done", program=TASKS)
        rows = {row["name"]: int(row["count"]) for row in self.rows("--event", "switches", "--by", "name", "--columns", "count")}
        self.assertGreater(sum(rows.values()), 5, rows)
        # Switches before the recording, which may be millions, are not counted.
        self.assertLess(sum(rows.values()), 1_000_000)

    def test_an_iterator_runs_once_for_all_summaries_of_its_object(self):
        for words in ((), ("--interval", "100ms")):
            with self.subTest(words):
                self.record("-a", *words, "--", "sleep", "0.35", program=TWICE)
                runs = {row["event"]: int(row["count"]) for row in self.rows("--by", "event", "--columns", "count")}
                self.assertEqual(runs["first_runs"], runs["second_runs"], runs)
                # One sample for each reading, of the one run since the previous one.
                samples = self.tacho("script", "-i", "b.data", "--event", "first_runs", "-F", "time").stdout.decode().splitlines()
                self.assertEqual(runs["first_runs"], len(samples), runs)


if __name__ == "__main__":
    programs.main()
