#!/usr/bin/env python3
"""All recorders with known loads: their events in every view and in perf."""
import collections
import csv
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import programs
from recorder_loads import ASKS, CROWD, DEADLOCK, NAPS, NET, OPENS, PAIR, READS, WAITS, killed_for_memory, loop_disk

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
        self.need_recorder()

    def record(self, event, *command, options=(), status=0):
        done = self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, *options, "--", *command,
                                status=status)
        return done.stderr.decode()

    def rows(self, *options):
        """A table's rows as dictionaries."""
        text = self.tacho("table", "-i", "out.data", "--csv", *options).stdout.decode()
        return list(csv.DictReader(io.StringIO(text)))

    def counts(self, *keys, where=None, event=None):
        rows = self.rows("--by", ",".join(keys), "--columns", "count", *(["--where", where] if where else []),
                         *(["--event", event] if event else []))
        return {tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]: int(row["count"]) for row in rows}

    def read_everywhere(self, samples, *more):
        """Every view reads the capture, and perf counts the same number of samples."""
        for command in ("script", "report", *more):
            self.assertTrue(self.tacho(command, "-i", "out.data").stdout, command)
        if programs.shutil.which("perf"):
            done = self.run_program("perf", "script", "-i", "out.data", "-F", "comm,pid,time,event")
            self.assertEqual(len([line for line in done.stdout.splitlines() if line.strip()]), samples)


class Files(Recorders):
    LOADS = {"opens": OPENS}

    def test_with_p_a_command_only_says_how_long(self):
        sleeper = subprocess.Popen(["sleep", "60"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        self.record("open", self.built / "opens", options=["-p", str(sleeper.pid)])
        self.assertEqual(self.tacho("script", "-i", "out.data").stdout, b"")

    def test_hints_run_as_they_are_printed(self):
        said = self.record("open,syscall,tcplife,offcpu", "sleep", "0.1")
        hints = re.findall(r"^\[ tacho record: \w+: tacho (.*) \]$", said, re.M)
        self.assertEqual(len(hints), 4, said)
        for hint in hints:
            shown = self.tacho(*shlex.split(hint)).stdout
            self.assertTrue(shown or "tcp" in hint, hint)

    def test_open_tells_every_attempt(self):
        said = self.record("open", self.built / "opens", options=["-g"])
        self.assertIn("tacho table --by path,error -i out.data", said)
        known = self.counts("path", "error", "access", where='path ~ "*known*" || path ~ "/proc/self/status"')
        self.assertEqual(known, {("/proc/self/status", "OK", "O_RDONLY"): 7, ("known_file", "OK", "O_WRONLY"): 5,
                                 ("/nonexistent/known", "ENOENT", "O_RDWR"): 3, ("known_other", "OK", "O_WRONLY"): 1,
                                 ("known_file", "OK", "O_RDONLY"): 1})
        self.assertEqual(self.counts("dirfd"), {"AT_FDCWD": sum(self.counts("path").values())})
        text = self.tacho("script", "-i", "out.data", "-F", "+payload", "--where", 'path == "known_file"').stdout.decode()
        self.assertIn("mode=0640", text)
        self.assertIn("flags=0x240", text)  # O_CREAT | O_TRUNC
        self.assertIn("libc.so.6", text, "the stack that opened it: before Linux 6.2 without the kernel's part")
        self.assertIn("lat_ns", self.tacho("hist", "-i", "out.data", "--by", "none").stdout.decode())
        self.read_everywhere(sum(self.counts("path").values()), "folded")

    def test_open_of_the_system_leaves_out_what_reads_for_the_recorder(self):
        # In a pid namespace, so that other recorders of this host have no pid.
        self.run_program("unshare", "--pid", "--mount", "--fork", "--mount-proc", programs.BIN / "tacho-record", "-o", "out.data",
                         "-e", "open", "-a", "--", "sh", "-c", "cat /dev/null; sleep 1")
        names = set(self.counts("comm", where="pid != 0"))
        self.assertLessEqual({"cat", "sleep"}, names)
        self.assertFalse([name for name in names if name.startswith("tacho")], names)

    def test_open_filters_in_the_kernel(self):
        self.record("open/failed,path='/nonexistent'/", self.built / "opens")
        self.assertEqual(self.counts("path", "error"), {("/nonexistent/known", "ENOENT"): 3})
        self.record("open/path=known,sample=1,comm=opens/", self.built / "opens", options=["-a"])
        self.assertEqual(self.counts("path"), {"known_file": 6, "known_other": 1})
        self.record("open/path=known,comm=nobody/", self.built / "opens", options=["-a"])
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)
        self.record("open/min_us=10000000/", self.built / "opens", options=["-a"])
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)


class Contents(Recorders):
    LOADS = {"reads": READS}

    def test_vfsio_tells_what_was_read_and_written(self):
        self.record("vfsio", self.built / "reads", options=["-g"])
        known = self.counts("op", "bytes", "error", where='name == "known_file" && (error == OK || op == read)')
        known.pop(("read", "0", "EBADF"), None)  # without the fallback to system calls, since the system call itself fails
        self.assertEqual(known, {("write", "65536", "OK"): 16, ("sync", "0", "OK"): 1, ("read", "65536", "OK"): 32,
                                 ("read", "1048576", "OK"): 1})
        [row] = self.rows("--by", "fs,inode", "--columns", "count", "--where", 'name == "known_file" && op == write')
        self.assertEqual(int(row["inode"]), (self.folder / "known_file").stat().st_ino)
        self.read_everywhere(sum(self.counts("op").values()), "folded")
        self.record("bigreads", self.built / "reads")
        self.assertEqual(self.counts("op", "bytes", "name"), {("read", "1048576", "known_file"): 1})
        self.record("vfsio/fs=nfs/", self.built / "reads")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

    def test_pagecache_counts_pages(self):
        file = self.folder / "known_file"
        file.touch()
        self.record(f"pagecache/inode={file.stat().st_ino}/", self.built / "reads", options=["-g"])
        pages = {row["what"]: float(row["sum"]) for row in self.rows("--by", "what", "--columns", "sum")}
        system = self.run_program("stat", "-f", "-c", "%T", self.folder).stdout.decode().strip()
        if "missed" not in pages and ("dirtied" in pages or system in ("tmpfs", "overlayfs", "ramfs", "v9fs")):
            self.skipTest("files are kept in memory here")
        whole = (1 << 20) // os.sysconf("SC_PAGESIZE")
        self.assertEqual(pages["missed"], 2 * whole, "as they are written, and read again")
        if "asked" in pages:  # a tracepoint of newer kernels
            self.assertEqual(pages["asked"], 3 * whole)
        self.read_everywhere(sum(self.counts("what").values()), "folded")


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
        said = self.record("exec", "/bin/true", "x" * 3000, "end")
        rows = self.rows("--by", "args", "--where", 'path == "/bin/true"')
        self.assertEqual([row["args"] for row in rows], [("/bin/true " + "x" * 3000)[:511]],
                         (said, self.tacho("script", "-i", "out.data").stdout))


class Waits(Recorders):
    LOADS = {"waits": WAITS, "crowd": CROWD, "naps": NAPS}

    def test_offcpu_tells_waits_with_the_stack_that_went_to_sleep(self):
        said = self.record("offcpu", self.built / "waits")
        text = self.tacho("script", "-i", "out.data", "-F", "comm,pid,event,ip,sym,payload").stdout.decode()
        samples = text.split("\n\n")
        naps = [sample for sample in samples if "hrtimer_nanosleep" in sample]
        # On a busy machine a thread may be preempted just before it sleeps, for all of the time, and never sleep.
        self.assertIn(len(naps), range(30, 36))
        self.assertTrue(all("state=S" in nap and "clock_nanosleep" in nap for nap in naps), naps)
        # In any thread that was interrupted; unknown if the kernel skipped the program that notes the waker.
        skipped = re.search(r"the kernel skipped (\d+) runs? of BPF programs", said)
        by_timer = [nap for nap in naps if 'waker_tid=0 waker="[timer]"' in nap]
        unknown = [nap for nap in naps if 'waker_tid=0 waker=""' in nap]
        self.assertEqual(len(by_timer) + len(unknown), len(naps), naps)
        self.assertLessEqual(len(unknown), int(skipped[1]) if skipped else 0, said)
        reads = [sample for sample in samples if "pipe_read" in sample and 'waker="waits"' in sample]
        self.assertIn(len(reads), range(8, 11))
        [row] = self.rows("--by", "state", "--columns", "sum,count", "--where", "state == S && comm == 'waits' && off_ns > 2ms")
        self.assertGreaterEqual(float(row["sum"]), 25 * 3e6 + 10 * 5e6 * 0.9)
        total = self.tacho("folded", "-i", "out.data").stdout.decode().splitlines()
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in total),
                         sum(int(row["sum"]) for row in self.rows("--by", "comm", "--columns", "sum")))
        self.read_everywhere(sum(self.counts("state").values()), "folded")
        if programs.shutil.which("perf"):
            ours = self.tacho("report", "-i", "out.data", "--no-children", "-g", "none", "-s", "comm,sym").stdout
            theirs = self.perf("report", "-i", "out.data", "--stdio", "--no-children", "-g", "none", "-s", "comm,sym").stdout
            self.assertIn(b"sched", theirs)  # any kernel function that sleeps
            rows = [[line.rstrip() for line in text.splitlines() if line and not line.startswith(b"#")] for text in (ours, theirs)]
            self.assertEqual(*rows)

    def test_offcpu_counts_waits_without_an_end_as_lost(self):
        """Some kernels do not trace the end of each wait."""
        sleeps = 1000
        said = self.record("offcpu", programs.BIN / "getppid_load", str(sleeps), "0", "100")
        samples, lost = map(int, re.search(r"\((\d+) samples, (\d+) lost\)", said).groups())
        self.assertGreaterEqual(samples + lost, sleeps, said)
        self.assertEqual("did not trace the end" in said, lost != 0, said)

    def test_at_a_rate_waits_stand_for_those_without_events(self):
        self.run_program(programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e", "offcpu/rate=400/,waking/rate=400/", "--", "sh", "-c",
                         f"{self.built / 'naps'} > naps.text")
        rounds, shorts, longers = map(int, (self.folder / "naps.text").read_text().split())
        function = lambda row: next((name for name in ("short_nap", "longer_nap", "long_nap") if f";{name};" in row), "")
        sums = collections.Counter()
        for line in self.tacho("folded", "-i", "out.data", "--event", "offcpu", "--comm", "naps").stdout.decode().splitlines():
            stack, weight = line.rsplit(" ", 1)
            sums[function(stack)] += int(weight)
        rows = self.rows("--event", "offcpu", "--by", "skipped,skipped_ns,off_ns,weight_ns", "--columns", "count", "--where", "comm == 'naps'")
        numbers = [{name: int(row[name]) for name in row} for row in rows]
        events, skipped = sum(row["count"] for row in numbers), sum(row["skipped"] * row["count"] for row in numbers)
        self.assertLess(events, 400 * 4)
        self.assertGreater(skipped, events, "the rate is lower than that of the naps")
        # The waits that are left out are counted: all but the few between the last event and the exit, and preemptions.
        self.assertAlmostEqual(events + skipped, 5 * rounds + 3, delta=0.05 * 5 * rounds)
        total = sum((row["skipped_ns"] + row["off_ns"]) * row["count"] for row in numbers)
        self.assertAlmostEqual(total / 1e9, (shorts + longers) / 1e9 + 0.3, delta=0.35)
        # Chance: some 100 longer naps have events.
        self.assertAlmostEqual(sums["short_nap"] / shorts, 1, delta=0.5)
        self.assertAlmostEqual(sums["longer_nap"] / longers, 1, delta=0.5)
        long = [row for row in numbers if row["off_ns"] >= 99e6]
        self.assertEqual(sum(row["count"] for row in long), 3, "each long one has an event")
        self.assertTrue(all(row["weight_ns"] == row["off_ns"] for row in long), long)
        weights = {row["weight_ns"] // row["off_ns"] for row in numbers}
        self.assertTrue(all(weight & (weight - 1) == 0 for weight in weights) and max(weights) > 1, weights)
        # Most waits with an event have one of their waker.
        wakers = sum(map(int, (row["count"] for row in self.rows("--event", "waking", "--by", "woken", "--columns", "count", "--where", "woken == 'naps'"))))
        self.assertAlmostEqual(wakers, events, delta=0.5 * events)

    def test_offcpu_leaves_short_waits_out(self):
        self.record("offcpu/min_us=4000/", self.built / "waits")
        [row] = self.rows("--by", "state", "--columns", "min,count")
        self.assertGreaterEqual(float(row["min"]), 4e6)
        self.record("offcpu/uninterruptible,min_us=4000/", self.built / "waits")
        self.assertNotIn("S", self.counts("state"))

    def test_offcputime_adds_up_what_offcpu_tells(self):
        """Both record the same run in one capture: equal numbers and sums of waits by thread and stack."""
        self.record("offcpu/preempted/,offcputime", self.built / "waits")
        one_by_one, added_up = {}, {}
        for sample in self.tacho("script", "-i", "out.data", "-F", "tid,event,period,ip,payload").stdout.decode().split("\n\n"):
            if not sample.strip():
                continue
            head, *stack = sample.splitlines()
            tid, period, event = head.split()[:3]
            reported, waits = (added_up, int(re.search(r" waits=(\d+) ", head)[1])) if event == "offcputime:" else (one_by_one, 1)
            place = tid, *(line.strip() for line in stack)
            before = reported.get(place, (0, 0))
            reported[place] = (before[0] + waits, before[1] + int(period))
        self.assertGreaterEqual(sum(count for count, _ in added_up.values()), 40)
        self.assertEqual({place: count for place, (count, _) in added_up.items()},
                         {place: count for place, (count, _) in one_by_one.items()})
        # Each reads the clock itself, before or after the other walks the stack.
        for place, (count, time) in added_up.items():
            self.assertAlmostEqual(time, one_by_one[place][1], delta=count * 100e3)

    def test_offcputime_tells_what_is_known_in_every_view(self):
        self.record("offcputime/preempted=false/", self.built / "waits")
        [row] = self.rows("--by", "comm", "--columns", "sum,count", "--where", "comm == 'waits' && off_ns > 2ms")
        self.assertGreaterEqual(float(row["sum"]), 25 * 3e6 + 10 * 5e6 * 0.9)
        folded = [line.rsplit(" ", 1) for line in self.tacho("folded", "-i", "out.data").stdout.decode().splitlines()]
        naps = sum(int(time) for stack, time in folded if "clock_nanosleep" in stack and "hrtimer_nanosleep" in stack)
        # A thread that is preempted between arming its timer and sleeping waits less.
        self.assertGreaterEqual(naps, (25 * 3e6 + 10 * 5e6) * 0.9)
        self.assertLess(naps, 1e9)
        rows = self.rows("--by", "comm", "--columns", "sum,count")
        self.assertEqual(sum(int(time) for _, time in folded), sum(int(row["sum"]) for row in rows))
        shown = self.tacho("hist", "-i", "out.data", "--by", "none").stdout.decode()
        self.assertIn(f" {sum(int(row['count']) for row in rows)} values", shown)
        samples = self.tacho("script", "-i", "out.data", "-F", "event", "-G").stdout.decode().split()
        self.read_everywhere(len(samples), "folded")
        if programs.shutil.which("perf"):
            sums = self.perf("report", "-i", "out.data", "--stdio", "--no-children", "-g", "none", "-s", "comm").stdout.decode()
            self.assertIn(f"# Event count (approx.): {sum(int(time) for _, time in folded)}", sums)

    def test_offcputime_filters_by_its_options(self):
        self.record("offcputime/preempted=false,min_us=4000/", self.built / "waits")
        text = self.tacho("script", "-i", "out.data", "-F", "payload", "-G").stdout.decode()
        means = [int(total) / int(waits) for waits, total in re.findall(r" waits=(\d+) total_ns=(\d+) ", text)]
        self.assertGreaterEqual(min(means), 4e6)
        self.record("offcputime/preempted=false,uninterruptible,min_us=2500/", self.built / "waits")
        self.assertNotIn("nanosleep", self.tacho("folded", "-i", "out.data").stdout.decode())
        self.record("offcputime/comm=nobody/", self.built / "waits")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

    def test_offcputime_at_intervals_tells_each_wait_once(self):
        self.record("offcputime/preempted=false,min_us=2000/", self.built / "waits", options=["--interval", "0.05"])
        times = self.tacho("script", "-i", "out.data", "-F", "time", "-G").stdout.split()
        self.assertGreater(len(set(times)), 2)
        [row] = self.rows("--by", "comm", "--columns", "count,sum", "--where", "comm == 'waits'")
        self.assertIn(int(row["count"]), range(43, 48))
        self.assertGreaterEqual(float(row["sum"]), 25 * 3e6 + 10 * 5e6 * 0.9)

    def test_runqlat_sums_up_to_what_the_kernel_counts(self):
        done = self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", "runqlat", "--", self.built / "crowd")
        truth = int(done.stdout)
        rows = self.rows("--by", "pid,why", "--columns", "sum,count")
        first = min(int(row["pid"]) for row in rows)
        reported = sum(float(row["sum"]) for row in rows if int(row["pid"]) == first)
        self.assertGreater(truth, 0)
        self.assertAlmostEqual(reported / truth, 1, delta=0.25)
        self.assertIn("preempted", {row["why"] for row in rows})
        self.read_everywhere(sum(int(row["count"]) for row in rows))


# One thread writes memory without pages to a pipe, and holds the pipe's lock during the page fault; another one reads.
LOCKED = """
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static int ends[2];
static char* page;
static void* writes(void* none) { return (void*)write(ends[1], page, 100); }
static void* reads(void* none) { static char to[100]; return (void*)read(ends[0], to, sizeof to); }
int main(void) {
  char one;
  pthread_t writer, reader;
  int faults = (int)syscall(SYS_userfaultfd, 0);
  struct uffdio_api api = {.api = UFFD_API};
  page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_register range = {.range = {(unsigned long)page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &range) || pipe(ends)) return 77;
  if (write(1, "r", 1) != 1 || read(0, &one, 1) != 1) return 1;
  pthread_create(&writer, 0, writes, 0);
  usleep(50000);
  pthread_create(&reader, 0, reads, 0);
  for (;;) pause();
}
"""


class UnfinishedWaits(Recorders):
    """A wait that is unfinished when the recording ends is an event with its stack."""
    LOADS = {"deadlock": DEADLOCK, "pair": PAIR, "locked": LOCKED}

    def record_for(self, seconds, event, program):
        """Records a program that starts its load after the recording has started, and does not end."""
        watched = subprocess.Popen([self.built / program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(watched.wait)
        self.addCleanup(watched.kill)
        self.addCleanup(watched.stdin.close)
        recorder = subprocess.Popen([programs.BIN / "tacho-record", "-o", "out.data", "-e", event, "-p", str(watched.pid), "--duration",
                                     str(seconds)], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        said = ""
        while "has begun" not in said:
            line = recorder.stderr.readline()
            self.assertTrue(line, said)
            said += line
        watched.stdin.write(b"!")
        watched.stdin.flush()
        said += recorder.communicate(timeout=60)[1]
        self.assertEqual(recorder.returncode, 0, said)
        return said

    def test_each_recorder_of_waits_shows_a_deadlock(self):
        self.record_for(0.5, "lock,offcpu,offcputime", "deadlock")
        for event in ("lock", "offcpu", "offcputime"):
            rows = {(row["tid"], row["unfinished"]): row for row in
                    self.rows("--event", event, "--by", "tid,unfinished", "--columns", "count,max", "--where", "comm == 'deadlock'")}
            waiting = {key: row for key, row in rows.items() if key[1] == "1"}
            self.assertEqual([row["count"] for row in waiting.values()], ["1"] * 3, f"{event}: {rows}")  # main joins
            for row in waiting.values():
                self.assertIn(float(row["max"]) // 1e6, range(50, 5000), event)
            stacks = self.tacho("folded", "-i", "out.data", "--event", event, "--where", "unfinished == 1").stdout.decode()
            for thread in ("there", "back"):
                self.assertRegex(stacks, rf"(?m)^deadlock;.*;{thread};takes_two;takes;", event)
        addresses = self.counts("lock", event="lock", where="unfinished == 1")
        self.assertEqual(sorted(addresses.values()), [1, 1, 1])

    def test_system_calls_that_have_not_returned(self):
        self.record_for(0.5, "syscall,syscount", "deadlock")
        rows = self.rows("--event", "syscall", "--by", "tid,call", "--columns", "count,max", "--where", "unfinished == 1")
        self.assertEqual([(row["count"], row["call"]) for row in rows], [("1", "futex")] * 3, rows)
        for row in rows:
            self.assertIn(float(row["max"]) // 1e6, range(50, 5000))
        self.assertFalse(self.rows("--event", "syscall", "--by", "call", "--columns", "count", "--where", "unfinished == 1 && lat_ns < 1e6"))
        rows = self.rows("--event", "syscount", "--by", "comm,call,unfinished", "--columns", "count", "--where", "unfinished == 1")
        self.assertEqual([(row["comm"], row["call"], row["count"]) for row in rows], [("deadlock", "futex", "3")])
        # perf reads samples made by the recorder together with those of the kernel.
        self.read_everywhere(len(self.tacho("script", "-i", "out.data", "-G", "-F", "tid").stdout.splitlines()))

    def test_conditions_leave_open_calls_out(self):
        for option in ("syscall/min_us=60000000/", "syscall/failed/,syscount/failed/", "syscount/min_us=60000000/"):
            self.record_for(0.2, option, "deadlock")
            self.assertNotIn(b"unfinished=1", self.tacho("script", "-i", "out.data").stdout, option)

    def test_stacks_do_not_change_open_calls(self):
        for method in ("fp", "dwarf"):
            with self.subTest(method=method):
                watched = self.hang("deadlock", b"")
                recorder = subprocess.Popen([programs.BIN / "tacho-record", "-o", "out.data", "-e", "syscall", "--call-graph", method, "-p",
                                             str(watched.pid)], cwd=self.folder, stderr=subprocess.PIPE)
                self.assertIn(b"begun", recorder.stderr.readline())
                watched.stdin.write(b"!")
                watched.stdin.flush()
                time.sleep(0.5)
                recorder.send_signal(signal.SIGINT)
                said = recorder.communicate(timeout=60)[1].decode()
                self.assertEqual(recorder.returncode, 0, said)
                rows = self.rows("--by", "call", "--columns", "count", "--where", "unfinished == 1")
                self.assertLessEqual({row["call"] for row in rows}, {"futex", "read"})
                self.assertTrue(rows)

    def test_a_read_that_has_not_returned(self):
        self.record_for(0.5, "vfsio", shutil.which("cat"))
        [row] = self.rows("--by", "op,fs,ret,unfinished", "--columns", "count,max", "--where", "unfinished == 1")
        self.assertEqual((row["op"], row["fs"], row["ret"], row["count"]), ("read", "pipe", "0", "1"))
        self.assertIn(float(row["max"]) // 1e6, range(50, 5000))
        self.assertTrue(self.rows("--by", "op", "--columns", "count", "--where", "unfinished == 0 && op == 'write'"))

    def test_a_lock_of_the_kernel_that_is_not_taken(self):
        watched = subprocess.run([self.built / "locked"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        if watched.returncode == 77:
            self.skipTest("needs userfaultfd")
        self.record_for(0.5, "klock", "locked")
        rows = self.rows("--by", "tid,kind", "--columns", "count,max", "--where", "unfinished == 1 && comm == 'locked'")
        self.assertEqual([(row["kind"], row["count"]) for row in rows], [("mutex", "1")], rows)
        self.assertIn(float(rows[0]["max"]) // 1e6, range(20, 5000))

    def test_disks_have_done_all_that_they_were_given(self):
        self.run_program(programs.BIN / "tacho-record", "-q", "-a", "-o", "out.data", "-e", "bio", "--", "sh", "-c",
                         "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=x bs=4k count=64 conv=fsync 2>/dev/null; done; sync; sleep 0.3")
        rows = self.rows("--by", "unfinished", "--columns", "count")
        if not rows:
            self.skipTest("no disk")
        old = self.rows("--by", "flags", "--columns", "count,max", "--where", "unfinished == 1 && lat_ns > 250e6")
        self.assertFalse(old)  # other writes may be in flight at the end, but cannot have started before this thread slept

    def hang(self, program, word=b"!"):
        """Starts a program whose load is before the recording."""
        watched = subprocess.Popen([self.built / program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(watched.wait)
        self.addCleanup(watched.kill)
        self.addCleanup(watched.stdin.close)
        watched.stdin.write(word)
        watched.stdin.flush()
        time.sleep(0.3)
        return watched

    def test_waits_that_span_the_whole_recording(self):
        # More processes than a batch of the unwinder, all started before.
        for _ in range(80):
            other = subprocess.Popen(["sleep", "1000"])
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
        watched = self.hang("deadlock")
        for target in (["-p", str(watched.pid)], ["-a"]):
            with self.subTest(target=target):
                self.run_program(programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e", "lock,offcpu,offcputime", *target, "--duration", "0.5")
                for event in ("lock", "offcpu", "offcputime"):
                    rows = self.rows("--event", event, "--by", "tid,unfinished,began_before", "--columns", "count,max", "--where",
                                     "comm == 'deadlock'")
                    self.assertEqual([(row["count"], row["unfinished"], row["began_before"]) for row in rows], [("1", "1", "1")] * 3, event)
                    for row in rows:  # offcputime's slots are powers of two
                        self.assertIn(float(row["max"]) // 1e6, range(240, 1100), event)
                    stacks = self.tacho("folded", "-i", "out.data", "--event", event, "--comm", "deadlock").stdout.decode()
                    for thread in ("there", "back"):
                        self.assertRegex(stacks, rf"(?m)^deadlock;.*;{thread};takes_two;takes;", event)

    def test_waits_that_began_before_and_end(self):
        watched = subprocess.Popen(["sleep", "3"])
        self.addCleanup(watched.wait)
        time.sleep(0.3)
        self.run_program(programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e", "offcpu", "-p", str(watched.pid), "--duration", "4")
        rows = self.rows("--by", "state,unfinished,began_before", "--columns", "count,max", "--where", "began_before == 1")
        [row] = rows
        self.assertEqual((row["count"], row["state"], row["unfinished"]), ("1", "S", "0"))
        self.assertIn(float(row["max"]) // 1e6, range(10, 2701))  # the rest of the three seconds, without the start of the recorder
        self.assertRegex(self.tacho("folded", "-i", "out.data").stdout.decode(), r"(?m)^sleep;.*nanosleep")

    def test_a_command_waits_for_nothing_before(self):
        shutil.copy(shutil.which("sleep"), self.folder / "asleep")
        self.run_program(programs.BIN / "tacho-record", "-q", "-a", "-o", "out.data", "-e", "offcpu", "--", "./asleep", "0.2")
        rows = self.rows("--by", "comm,began_before", "--columns", "count,max", "--where", "began_before == 1")
        self.assertFalse({"asleep"} & {row["comm"] for row in rows}, rows)
        self.assertTrue(rows)
        self.run_program(programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e", "offcpu", "--", "sleep", "0.2")
        self.assertFalse(self.rows("--by", "comm", "--columns", "count", "--where", "began_before == 1"))

    def test_who_waits_for_a_processor_when_it_begins(self):
        # A thread of lowest priority on a busy CPU hardly ever runs.
        cpu = str(min(os.sched_getaffinity(0)))
        for _ in range(2):
            other = subprocess.Popen(["taskset", "-c", cpu, self.built / "pair"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
            self.addCleanup(other.stdin.close)
            other.stdin.write(b"!")
            other.stdin.flush()
        idle = subprocess.Popen(["taskset", "-c", cpu, "chrt", "-i", "0", "sh", "-c", "while :; do :; done"])
        self.addCleanup(idle.wait)
        self.addCleanup(idle.kill)
        time.sleep(0.5)
        self.run_program(programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e", "runqlat", "-p", str(idle.pid), "--duration", "0.3")
        rows = self.rows("--by", "why,began_before", "--columns", "count,max")
        before = [row for row in rows if row["began_before"] == "1"]
        self.assertEqual([(row["count"], row["why"]) for row in before], [("1", "unknown")], rows)
        self.assertGreater(float(before[0]["max"]), 1e6)

    def test_short_waits_are_left_out_as_others_are(self):
        self.record_for(0.2, "lock/min_us=60000000/,offcpu/min_us=60000000/", "deadlock")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

    def test_threads_that_wait_for_a_processor_at_the_end(self):
        # Of two threads on one CPU at least one waits when the recording ends. The kernel's table of waits is read while they
        # take turns, so a turn at that time can hide the wait: then the recording is repeated.
        for _ in range(3):
            self.record_for(0.15, "runqlat", "pair")
            counts = self.counts("comm", "unfinished", event="runqlat")
            if ("pair", "1") in counts:
                break
        self.assertIn(counts.get(("pair", "1")), (1, 2), counts)
        self.assertGreater(counts.get(("pair", "0"), 0), 1)

    def test_samples_without_an_address_are_no_frames(self):
        self.record_for(0.15, "runqlat", "pair")
        reported = self.tacho("doctor", "-i", "out.data", status=None).stdout.decode()  # a busy machine loses events
        self.assertRegex(reported, r"(?m)^100\.0 % of 0 frames")
        report = self.tacho("report", "-i", "out.data").stdout.decode()
        self.assertIn("(no address)", report)
        self.assertNotIn("0000000000000000", report)
        self.assertIn("[H] 0000000000000000", self.tacho("report", "-i", "out.data", "--as-perf").stdout.decode())


TIMERS = """
#include <time.h>
#include <unistd.h>
int main(void) { struct timespec t = {0, 20000}; alarm(30); for (;;) nanosleep(&t, 0); }
"""
TURNS = """
#include <pthread.h>
#include <unistd.h>
static int there[2], back[2];
static void *answers(void *n) { char c; for (int i = 0; i < 2000; ++i) { read(there[0], &c, 1); write(back[1], &c, 1); } return n; }
int main(void) {
  char c = 1;
  pthread_t other;
  if (pipe(there) || pipe(back) || pthread_create(&other, 0, answers, 0)) return 1;
  for (int i = 0; i < 2000; ++i) { write(there[1], &c, 1); read(back[0], &c, 1); }
  return pthread_join(other, 0);
}
"""


class Wakers(Recorders):
    LOADS = {"timers": TIMERS, "turns": TURNS}

    def test_a_recording_that_begins_in_a_timer_does_not_take_all_wakers_for_it(self):
        for cpu in range(2):
            timers = subprocess.Popen(["taskset", "-c", str(cpu % os.cpu_count()), self.built / "timers"])
            self.addCleanup(timers.wait)
            self.addCleanup(timers.kill)
        for turn in range(programs.scaled(100, 10)):
            self.record("waking", "taskset", "-c", str(turn % os.cpu_count()), self.built / "turns")
            counts = self.counts("waker", where='woken == "turns"')
            self.assertGreater(counts.get("turns", 0), 500 + 20 * counts.get("[timer]", 0), counts)


class Network(Recorders):
    def test_tcp_tells_connections_from_begin_to_end(self):
        done = self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", "tcp", "--", sys.executable, "-c", NET)
        here = {"127.0.0.1": 1} if b"no IPv6" in done.stdout else {"127.0.0.1": 4, "::1": 1}
        counts = self.counts("what", "local")
        for address, times in here.items():
            self.assertEqual([counts.get((what, address)) for what in ("connect", "accept", "close")],
                             [times, times, 2 * times], counts)
        self.assertEqual(counts["refused", "127.0.0.1"], 1)
        # FIN counts as a byte, and SYN as a sent byte.
        sent = self.counts("rx_bytes", where='what == close && local == "127.0.0.1"')
        self.assertEqual(sum(sent.values()), 8)
        self.assertLessEqual(set(map(int, sent)), {10, 11, 5000, 5001})
        self.read_everywhere(sum(counts.values()))
        self.record("tcp/port=1/", sys.executable, "-c", NET)
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

    def test_tcpretrans_tells_who_knocks_again(self):
        # accept() is never called: when the queue is full, SYNs are dropped and sent again after one and three seconds.
        work = ("import socket\nlistening = socket.socket(); listening.bind(('127.0.0.1', 0)); listening.listen(0)\n"
                "print(listening.getsockname()[1], flush=True)\nknocking = [socket.socket() for _ in range(4)]\n"
                "for one in knocking: one.setblocking(False); one.connect_ex(listening.getsockname())\n"
                "import time; time.sleep(3.3)")
        done = self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", "tcpretrans", "-a", "--", sys.executable,
                                "-c", work)
        port = done.stdout.decode().strip()
        counts = self.counts("state", "remote", "local", where=f"remote_port == {port}")
        self.assertEqual(list(counts), [("SYN_SENT", "127.0.0.1", "127.0.0.1")])
        self.assertIn(counts.popitem()[1], range(1, 17))

    def test_dns_records_the_names_that_are_looked_up(self):
        work = ("import socket\nfor _ in range(5): socket.getaddrinfo('127.0.0.1', 80)\n"
                "for _ in range(3): socket.getaddrinfo('localhost', None)")
        self.record("dns", sys.executable, "-c", work, options=["-g"])
        self.assertEqual(self.counts("host", "ret"), {("127.0.0.1", "0"): 5, ("localhost", "0"): 3})
        self.read_everywhere(8, "folded")


class Questions(Recorders):
    LOADS = {"asks": ASKS}

    def test_signals(self):
        self.record("signals/sig=USR1/", self.built / "asks", options=["-g"])
        self.assertEqual(self.counts("comm", "sig", "result", "code", "target"), {("asks", "USR1", "ignored", "user", "asks"): 9})
        self.read_everywhere(9, "folded")
        self.record("signals/sig=KILL/", self.built / "asks")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

    def test_capabilities(self):
        self.record("cap/only=SYS_ADMIN,comm=asks/", self.built / "asks", options=["-g"])
        counts = self.counts("cap", "error")
        self.assertEqual(counts["SYS_ADMIN", "EPERM"], 3)
        self.assertGreaterEqual(counts["SYS_ADMIN", "OK"], 5)  # the kernel checks it in other functions too
        self.read_everywhere(sum(counts.values()), "folded")
        self.record("cap/only=SYS_ADMIN,failed/", self.built / "asks")
        self.assertEqual(self.counts("cap", "error"), {("SYS_ADMIN", "EPERM"): 3})

    def test_waits_for_locks(self):
        self.record("lock", self.built / "asks", options=["-g"])
        [row] = self.rows("--by", "lock,op,error", "--columns", "count,min")
        self.assertEqual((row["op"], row["error"], row["count"]), ("WAIT", "ETIMEDOUT", "10"))
        self.assertGreaterEqual(float(row["min"]), 2e6)
        self.read_everywhere(10, "folded")

    def test_who_is_killed_for_memory(self):
        self.record("oom", *killed_for_memory(self), options=["-a"], status=None)
        [row] = self.rows("--by", "victim_pid,pid", "--columns", "count")
        self.assertEqual((row["victim_pid"], row["count"]), (row["pid"], "1"))


@unittest.skipUnless(Path("/sys/bus/event_source/devices/kprobe").exists(), "this kernel has no kprobes")
class Functions(Recorders):
    LOADS = {"reads": READS, "asks": ASKS}

    def test_functions_of_the_kernel(self):
        """One recording for all, since machines with kprobes may be emulated and slow."""
        work = f"{self.built / 'reads'}; {self.built / 'asks'}"
        said = self.record("vfsio/comm=reads/,cap/only=SYS_ADMIN,failed/", "sh", "-c", work, options=["-v"])
        self.assertRegex(said, r"(?m)\((fentry|kprobe)/vfs_read\): attached")
        known = self.counts("op", "bytes", where='name == "known_file" && error == OK && op != sync', event="vfsio")
        self.assertEqual(known, {("write", "65536"): 16, ("read", "65536"): 32, ("read", "1048576"): 1})
        self.assertEqual(self.counts("cap", "error", event="cap"), {("SYS_ADMIN", "EPERM"): 3})


class Disks(Recorders):
    LOADS = {"reads": READS}

    def setUp(self):
        super().setUp()
        self.disk, self.dev = loop_disk(self, 16 << 20)

    def test_bio_tells_every_request(self):
        work = (f"dd if=/dev/zero of={self.disk} bs=64k count=32 oflag=direct; "
                f"dd if={self.disk} of=/dev/null bs=4k count=50 iflag=direct")
        self.record(f"bio/dev={self.dev}/", "sh", "-c", work)
        self.assertEqual(self.counts("comm", "op", "bytes", "error"),
                         {("dd", "write", "65536", "OK"): 32, ("dd", "read", "4096", "OK"): 50})
        for row in self.rows("--by", "op", "--value", "lat_ns - queue_ns - service_ns", "--columns", "min,max"):
            self.assertEqual((float(row["min"]), float(row["max"])), (0, 0))
        folded = self.tacho("folded", "-i", "out.data").stdout.decode()
        self.assertIn("vfs_write", folded)
        self.assertIn("vfs_read", folded)
        self.assertIn("65536 -> 131071", self.tacho("hist", "-i", "out.data", "--field", "bytes", "--by", "op").stdout.decode())
        self.read_everywhere(82, "folded")
        self.assertEqual(self.counts("disk"), {self.disk.rsplit("/", 1)[1]: 82})
        self.record(f"bio/dev={self.dev},min_bytes=8192/", "sh", "-c", work)
        self.assertEqual(self.counts("op"), {"write": 32})
        said = self.record(f"bio/disk={self.disk.rsplit('/', 1)[1]}x/", "true", status=1)
        self.assertIn("there is no disk", said)

    def test_bio_tells_flushes(self):
        """The same number of flushes as in the kernel's statistics."""
        def flushes():
            return int(Path(f"/sys/block/{self.disk.rsplit('/', 1)[1]}/stat").read_text().split()[15])
        work = ("import os, sys\nfile = os.open(sys.argv[1], os.O_RDWR)\n"
                "for i in range(10): os.pwrite(file, b'x' * 4096, i * 4096); os.fsync(file)\n")
        before = flushes()
        self.record(f"bio/dev={self.dev}/", sys.executable, "-c", work, self.disk, options=["-a"])
        self.assertEqual(flushes() - before, 10)
        counts = self.counts("op", "bytes", "sector", where="op == flush")
        self.assertEqual(counts, {("flush", "0", "0"): 10})
        self.assertGreaterEqual(self.counts("op")["write"], 10)
        [row] = self.rows("--by", "op", "--columns", "min", "--where", "op == flush")
        self.assertGreater(float(row["min"]), 0)
        folded = self.tacho("folded", "-i", "out.data", "--where", "op == flush").stdout.decode()
        self.assertNotIn("bpf_", folded, "the stack begins where the kernel asks")
        self.assertIn("blk_", folded)

    def test_the_slowest_request_comes_last_with_its_stack(self):
        work = f"dd if=/dev/zero of={self.disk} bs=64k count=64 oflag=direct"
        self.record(f"bio,bio/max,disk={self.disk.rsplit('/', 1)[1]}/", "sh", "-c", work)
        slowest = max(float(row["max"]) for row in self.rows("--by", "op", "--columns", "max", "--event", "bio"))
        text = self.tacho("script", "-i", "out.data", "--event", "bio.2", "--columns", "lat_ns").stdout.decode()
        times = [int(line) for line in text.split()[1:]]
        self.assertEqual(times, sorted(times))
        self.assertGreater(len(times), 0)
        # Each recorder reads the clock itself.
        self.assertAlmostEqual(times[-1] / slowest, 1, delta=0.5)
        self.assertIn("vfs_write", self.tacho("folded", "-i", "out.data", "--event-filter", "bio.2").stdout.decode())

    def test_a_file_on_a_disk_from_the_call_to_the_request(self):
        """The same reads and writes in events of the file system, the page cache and the disk."""
        place = self.folder / "mounted"
        place.mkdir()
        if self.run_program("mkfs.ext4", "-q", self.disk, status=None).returncode != 0:
            self.skipTest("needs mkfs.ext4")
        done = self.run_program("mount", self.disk, place, status=None)
        if done.returncode != 0:
            self.skipTest("no ext4: " + done.stderr.decode())
        self.addCleanup(self.run_program, "umount", place, status=None)
        work = ["sh", "-c", f"cd mounted; exec {self.built / 'reads'}"]
        self.record("ext4dist", *work, options=["-e", f"bio/dev={self.dev}/", "-e", "pagecache"])
        known = self.counts("op", "bytes", where='name == "known_file" && error == OK', event="vfsio")
        self.assertEqual(known, {("write", "65536"): 16, ("sync", "0"): 1, ("read", "65536"): 32, ("read", "1048576"): 1})
        self.assertEqual(set(self.counts("fs", event="vfsio")), {"ext4"})
        size, page = 1 << 20, os.sysconf("SC_PAGESIZE")
        inode = (place / "known_file").stat().st_ino
        pages = {row["what"]: int(float(row["sum"])) for row in self.rows("--event", "pagecache", "--by", "what", "--columns", "sum",
                                                                          "--where", f"inode == {inode}")}
        self.assertEqual(pages["missed"], 2 * size // page, "as they are written, and read again")
        self.assertEqual(pages.get("asked", 3 * size // page), 3 * size // page)
        asked = {row["op"]: int(float(row["sum"])) for row in self.rows("--event", "bio", "--value", "bytes", "--by", "op", "--columns", "sum",
                                                                         "--where", 'comm == "reads"')}
        # Once, since the second read is from the cache; plus a few blocks of metadata.
        self.assertTrue(size <= asked["read"] <= size + 16 * page, asked)
        self.assertGreaterEqual(asked["write"], size)
        self.record("xfsdist", *work)
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)


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

    def test_syscount_adds_up_in_the_kernel(self):
        for event in ("syscount", "syscount/count/"):
            said = self.record(event, programs.BIN / "getppid_load", "1234")
            self.assertEqual(self.counts("call")["getppid"], 1234)
            self.assertLess(int(re.search(r"\((\d+) samples, 0 lost\)", said)[1]), 200, "no event a call")
        self.record("syscount/failed/", "cat", "/nonexistent/known", status=1)
        errors = self.counts("call", "error")
        self.assertIn(("openat", "ENOENT"), errors)
        self.assertNotIn("OK", {error for _, error in errors})
        self.record("syscount/call=getppid,min_us=60000000/", programs.BIN / "getppid_load", "100")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)

    def test_stackcount_adds_up_in_the_kernel(self):
        load = programs.BIN / "getppid_load"
        for event in ("stackcount/tracepoint='syscalls:sys_enter_getppid'/", f"stackcount/name='{load}:call_at_depth'/"):
            said = self.record(event, load, "300")
            lines = self.tacho("folded", "-i", "out.data").stdout.decode().splitlines()
            total = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
            self.assertEqual(total % 300, 0, lines)
            self.assertGreater(total, 0, said)
            self.assertTrue(all("call_at_depth" in line and "main" in line for line in lines), lines)
            self.assertLess(int(re.search(r"\((\d+) samples, 0 lost\)", said)[1]), 20)
        self.record("stackcount/tracepoint='syscalls:sys_enter_getppid',comm=nobody/", load, "10")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)
        for event, reported in (("stackcount", "functions are missing: name="), ("stackcount/tracepoint='sched:sched_swich'/", "sched_switch"),
                            (f"stackcount/name='{load}:main',tracepoint='sched:sched_switch'/", "not both")):
            self.assertIn(reported, self.record(event, "true", status=1))

    def test_options_are_the_objects_own(self):
        text = self.run_program(programs.BIN / "tacho-record", "-e", "syscall/help/").stdout.decode()
        for part in ("call (enum)", "min_us (u64)", "comm (char[16])", "  tp_btf/sys_enter\n  or tracepoint/raw_syscalls/sys_enter", "lat_ns, ret, call"):
            self.assertIn(part, text)
        for wrong, part in (("syscall/cal=read/", "column 9: cal: there is no such option; there are: call (enum)"),
                            ("syscall/call=opn/", "column 14: call: there is no 'opn' in its enum"),
                            ("open/min_us=x/", "column 13: min_us: 'x' is not a number"),
                            ("sycall", "did you mean 'syscall'?")):
            said = self.record(wrong, "true", status=1)
            self.assertRegex(said, r"\A[^\n]*\n    \S[^\n]*\n +\^\n\Z", "one line, and a caret below the text")
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
