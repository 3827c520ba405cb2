#!/usr/bin/env python3
"""User BPF objects: values of their globals, and their events."""
import re
import subprocess
import unittest
from pathlib import Path

import programs

GLOBALS = r"""
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tacho/event.h>

enum mode { QUIET, LOUD = 7 };
struct limits { __s32 low; __u32 few : 3; __u32 many : 5; };

const volatile __u8 tiny = 1;
const volatile __s16 below;
const volatile __u64 large = 5;
const volatile bool on;
const volatile char word[8] = "unset";
const volatile enum mode mode = QUIET;
const volatile struct limits limits;
const volatile __u16 ports[3] = {1, 2, 3};
static const volatile __s64 own = -9;
const __u32 fixed = 3;
__u32 counted;

struct values {
  __u64 large;
  __s64 own;
  __s32 low;
  __u32 mode;
  __u16 ports[4];
  __s16 below;
  __u8 tiny, on, few, many;
  char word[10];
};
EVENT(values, struct values);

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} channel SEC(".maps") EVENT_CHANNEL(values);

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  struct values event = {.large = large, .own = own, .low = limits.low, .mode = mode, .below = below, .tiny = tiny,
                         .on = on, .few = limits.few, .many = limits.many};
  for (int i = 0; i < 3; ++i) event.ports[i] = ports[i];
  for (int i = 0; i < 8; ++i) event.word[i] = word[i];
  __sync_fetch_and_add(&counted, fixed);
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""
ALL = ("large (u64)", "own (s64)", "tiny (u8)", "below (s16)", "on (bool)", "word (char[8])", "mode (enum)",
       "limits.low (s32), limits.few (u3), limits.many (u5)", "ports (u16[3])")


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class Globals(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "globals.bpf.c").write_text(GLOBALS)

    def record(self, event, *options, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e", event, *options, "--",
                                programs.BIN / "getppid_load", "2", status=status)

    def payloads(self):
        text = self.tacho("script", "-i", "out.data", "-F", "event,payload").stdout.decode()
        return [line.split("values:", 1)[1].strip() for line in text.splitlines() if "values:" in line]

    def test_values_reach_the_program_by_name_and_type(self):
        self.record("./globals.bpf.c")
        before = self.payloads()
        self.assertEqual(len(before), 2)
        for part in ("large=5", "own=-9", "low=0", "mode=0", "ports=[1,2,3,0]", "tiny=1", "on=0", 'word="unset"'):
            self.assertIn(part, before[0])
        self.record("./globals.bpf.c/large=18446744073709551615,own=0x10,limits.low=-3,mode=LOUD,below=-32768,"
                    "tiny=255,on,limits.few=7,limits.many=17,ports=80:443,ports[2]=65535,word='a,/b'/")
        after = self.payloads()
        self.assertEqual(len(after), 2)
        for part in ("large=18446744073709551615", "own=16", "low=-3", "mode=7", "ports=[80,443,65535,0]",
                     "below=-32768", "tiny=255", "on=1", "few=7", "many=17", 'word="a,/b"'):
            self.assertIn(part, after[0])

    def compile(self):
        self.record("./globals.bpf.c")  # makes vmlinux.h
        cache = next((self.folder / ".cache" / "tacho").glob("vmlinux-*"))
        subprocess.run(["clang", "-target", "bpf", "-O2", "-g", "-I", cache, "-I", programs.ROOT / "bpf" / "include",
                        "-c", "globals.bpf.c", "-o", "globals.bpf.o"], cwd=self.folder, check=True)

    def refusal(self, terms):
        done = self.record(f"./globals.bpf.o/{terms}/", status=1)
        lines = done.stderr.decode().strip().splitlines()
        self.assertRegex("\n".join(lines[1:]), r"\A(    \S.*\n +\^)?\Z", "one line, and one with a caret below the text")
        return lines[0]

    def test_a_wrong_one_of_an_object_file_is_one_line_that_names_the_column(self):
        self.compile()
        self.record("./globals.bpf.o/large=42,word=x/")
        self.assertIn("large=42", self.payloads()[0])
        unknown = self.refusal("large=1,larg=2")
        self.assertIn("column 25: larg: there is no `const volatile` global 'larg'; there are: ", unknown)
        for part in ALL:
            self.assertIn(part, unknown)
        for hidden in ("fixed", "counted", "LICENSE"):
            self.assertNotIn(hidden, unknown)
        self.assertIn("column 22: tiny: 256 is out of range: u8 takes 0 to 255", self.refusal("tiny=256"))
        self.assertIn("column 22: mode: there is no 'SILENT' in its enum, which has QUIET LOUD", self.refusal("mode=SILENT"))
        self.assertIn("column 26: ports: 'x' is not a number", self.refusal("ports=80:x"))
        self.assertIn("it is too long: char[8] takes 7 letters", self.refusal("word=12345678"))
        self.assertIn("fixed is not declared `const volatile`", self.refusal("fixed=1"))
        self.assertIn("counted is not declared `const volatile`", self.refusal("counted=1"))
        self.assertIn("a value is missing", self.refusal("large"))
        self.assertIn("ports has the elements 0 to 2", self.refusal("ports[3]=1"))

# Calls of getppid(2): 7 in the first thread; 10 in each of three threads of the program, of its child, of an orphaned
# grandchild, and of what that one executes from another thread than its first.
FAMILY = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void calls(int count) { while (count-- > 0) syscall(SYS_getppid); }
static void *work(void *none) { calls(10); return none; }
static void *execute(void *self) { execl(self, self, "executed", NULL); exit(1); }
static void threads(void) {
  pthread_t all[3];
  for (int i = 0; i < 3; ++i) if (pthread_create(&all[i], NULL, work, NULL) != 0) exit(1);
  for (int i = 0; i < 3; ++i) pthread_join(all[i], NULL);
}
static void grandchild(char *self) {
  pthread_t thread;
  usleep(20000);
  threads();
  pthread_create(&thread, NULL, execute, self);
  pause();
}
int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  int ends[2];
  char byte;
  if (strcmp(mode, "executed") == 0) { threads(); return 0; }
  while (strcmp(mode, "forever") == 0) { calls(1); usleep(200); }
  if (strcmp(mode, "wait") == 0 && read(0, &byte, 1) != 1) return 1;
  calls(7);
  threads();
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    threads();
    if (fork() == 0) grandchild(argv[0]);
    return 0;
  }
  close(ends[1]);
  waitpid(child, NULL, 0);
  while (read(ends[0], &byte, 1) > 0) {}  // until the last of them has ended
  return 0;
}
"""
OWN, ALL_CALLS = 7, 7 + 4 * 30
CALLS = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <tacho/emit.h>
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} calls SEC(".maps");
SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  __u64 payload = 1;
  if (ASK && !tacho_wants()) return 1;
  bpf_perf_event_output(context, &calls, BPF_F_CURRENT_CPU, &payload, sizeof payload);
  return 1;
}
char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class Family(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "family.c").write_text(FAMILY)
        subprocess.run(["cc", "-O1", "-pthread", "-o", "family", "family.c"], cwd=self.folder, check=True)
        (self.folder / "asks.bpf.c").write_text(CALLS.replace("ASK", "1"))
        (self.folder / "tells.bpf.c").write_text(CALLS.replace("ASK", "0"))
        self.start("forever")  # somebody else

    def start(self, mode):
        process = subprocess.Popen([self.folder / "family", mode], stdin=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        return process

    def samples(self):
        text = self.tacho("script", "-i", "out.data", "-F", "event").stdout.decode()
        return text.split().count("calls:")

    def dropped(self, errors):
        found = re.search(r"(\d+) events? of other threads dropped", errors)
        return int(found[1]) if found else 0

    def record(self, *words):
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", *words).stderr.decode()

    def record_waiting(self, event, target, *options):
        """Records a process family that starts after the recording."""
        family = self.start("wait")
        environment = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        recorder = subprocess.Popen(
            [programs.BIN / "tacho-record", "-o", "out.data", "-e", event, *options, target, str(family.pid)],
            cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        errors = ""
        for line in recorder.stderr:
            errors += line
            if "Recording has begun" in line:
                family.stdin.write(b"x")
                family.stdin.flush()
        self.assertEqual(recorder.wait(timeout=60), 0, errors)
        return errors

    def test_a_command_is_followed_with_all_its_threads_and_descendants(self):
        errors = self.record("-e", "./asks.bpf.c", "--", "./family")
        self.assertEqual(self.samples(), ALL_CALLS, errors)
        self.assertEqual(self.dropped(errors), 0, errors)
        errors = self.record("-e", "./tells.bpf.c", "--", "./family")
        self.assertEqual(self.samples(), ALL_CALLS, errors)
        self.assertGreater(self.dropped(errors), 0, errors)

    def test_without_its_children(self):
        errors = self.record("-i", "-e", "./asks.bpf.c", "--", "./family")
        self.assertEqual(self.samples(), OWN, errors)

    def test_a_process_is_followed_until_it_ends(self):
        for program, are_dropped in (("asks", False), ("tells", True)):
            errors = self.record_waiting(f"./{program}.bpf.c", "-p")
            self.assertEqual(self.samples(), ALL_CALLS, errors)
            self.assertEqual(self.dropped(errors) > 0, are_dropped, errors)

    def test_a_thread_alone(self):
        errors = self.record_waiting("./asks.bpf.c", "-t")
        self.assertEqual(self.samples(), OWN, errors)

    def test_beside_other_events_and_in_memory(self):
        errors = self.record("-e", "./tells.bpf.c,cs", "-g", "--", "./family")
        self.assertEqual(self.samples(), ALL_CALLS, errors)
        errors = self.record("--overwrite", "-e", "./tells.bpf.c", "--", "./family")
        self.assertEqual(self.samples(), ALL_CALLS, errors)

    def test_everybody(self):
        self.record("-a", "-e", "./asks.bpf.c", "--", "./family")
        self.assertGreater(self.samples(), ALL_CALLS)

    def test_every_nth_and_a_ceiling(self):
        for program in ("asks", "tells"):
            event = f"./{program}.bpf.c"
            # On one CPU the sampling is exact; events of a program that does not call tacho_wants() are sampled when they are read.
            self.record("-e", event, "--sample-rate", "1/10", "--", "taskset", "-c", "0", programs.BIN / "getppid_load", "1000")
            self.assertEqual(self.samples(), 100, program)
            errors = self.record("-e", event, "--max-rate", "50", "--", programs.BIN / "getppid_load", "10000")
            over = int(re.search(r"(\d+) events of BPF programs above --max-rate 50 dropped", errors)[1])
            self.assertEqual(self.samples() + over, 10000, errors)
            self.assertGreaterEqual(self.samples(), 50)
            self.assertLess(self.samples(), 2000, errors)
        refused = self.run_program(programs.BIN / "tacho-record", "--max-rate", "5", "--", "true", status=1)
        self.assertIn("are for events of BPF objects", refused.stderr.decode())

RING = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <tacho/emit.h>
struct call { __u64 time_ns; __u32 thread, cpu; };
EVENT(calls, struct call);
RING_CHANNEL(ring, calls, BYTES);
SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  struct call *call = tacho_reserve(ring, struct call);
  if (!call) return 1;
  call->time_ns = bpf_ktime_get_ns();
  call->thread = (__u32)bpf_get_current_pid_tgid();
  call->cpu = bpf_get_smp_processor_id();
  tacho_submit(ring, call);
  return 1;
}
char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""
PLAIN_RING = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
} plain SEC(".maps");
SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  __u64 *number = bpf_ringbuf_reserve(&plain, sizeof *number, 0);
  if (!number) return 1;
  *number = 7;
  bpf_ringbuf_submit(number, 0);
  return 1;
}
char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""


@programs.needs_perf
class Rings(Family):
    """The tests of Family with ring buffers, and others."""

    def setUp(self):
        super().setUp()
        (self.folder / "asks.bpf.c").write_text(RING.replace("BYTES", "1 << 20"))

    test_a_process_is_followed_until_it_ends = None
    test_beside_other_events_and_in_memory = None
    test_every_nth_and_a_ceiling = None

    def test_a_command_is_followed_with_all_its_threads_and_descendants(self):
        errors = self.record("-e", "./asks.bpf.c", "--", "./family")
        self.assertEqual(self.samples(), ALL_CALLS, errors)
        errors = self.record_waiting("./asks.bpf.c", "-p")
        self.assertEqual(self.samples(), ALL_CALLS, errors)

    def test_time_thread_and_cpu_come_from_the_program(self):
        self.record("-e", "./asks.bpf.c,syscalls:sys_enter_getppid", "--", "./family")
        text = self.same_scripts("out.data", "-F", "comm,tid,cpu,time,event")
        text = self.tacho("script", "-i", "out.data", "--ns", "-F", "tid,cpu,time,event,payload").stdout.decode()
        found = re.findall(r"^ *(\d+) \[(\d+)\] +(\d+)\.(\d+): +calls: .*time_ns=(\d+) thread=(\d+) cpu=(\d+)", text, re.M)
        self.assertEqual(len(found), ALL_CALLS, text[:2000])
        for tid, cpu, seconds, fraction, time_ns, thread, own_cpu in found:
            self.assertEqual((int(tid), int(cpu)), (int(thread), int(own_cpu)))
            self.assertLess(abs(int(seconds) * 10**9 + int(fraction) - int(time_ns)), 10**8)

    def test_what_finds_no_room_is_counted(self):
        (self.folder / "small.bpf.c").write_text(RING.replace("BYTES", "4096"))
        errors = self.record("-e", "./small.bpf.c", "--", programs.BIN / "getppid_load", "200000")
        lost = int(re.search(r"\((\d+) samples, (\d+) lost\)", errors)[2])
        self.assertEqual(self.samples() + lost, 200000, errors)
        stats = self.tacho("report", "-i", "out.data", "--stats").stdout.decode()
        header = self.tacho("header", "-i", "out.data").stdout.decode()
        places = re.findall(r"# lost samples : calls, CPU (\d+), cgroup (\S+): (\d+)", header)
        self.assertEqual(sum(int(count) for *_, count in places), lost, header)
        if lost:
            self.assertIn("LOST_SAMPLES", stats)
            own = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), "")
            self.assertEqual({cgroup for _, cgroup, _ in places}, {own}, header)
            self.assertRegex(errors, r"lost: calls in \S+ \d+ \(CPU .*from \d+\.\d{3} s to \d+\.\d{3} s after the first sample")

    def test_losses_in_the_kernels_rings_are_counted_by_cgroup(self):
        errors = self.record("-e", "syscall/call=getppid/", "-m", "1", "--", programs.BIN / "getppid_load", "200000")
        samples, lost = map(int, re.search(r"\((\d+) samples, (\d+) lost\)", errors).groups())
        self.assertEqual(samples + lost, 200000, errors)
        self.assertGreater(lost, 0)
        header = self.tacho("header", "-i", "out.data").stdout.decode()
        places = re.findall(r"# lost samples : syscall, CPU (\d+), cgroup (\S+): (\d+)", header)
        own = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), "")
        self.assertEqual({cgroup for _, cgroup, _ in places}, {own}, header)
        self.assertEqual(sum(int(count) for *_, count in places), lost, header)
        self.assertRegex(errors, r"lost: syscall in \S+ \d+ \(CPU .*from \d+\.\d{3} s to \d+\.\d{3} s after the first sample")

    def test_a_ring_buffer_without_heads_gives_a_line(self):
        (self.folder / "plain.bpf.c").write_text(PLAIN_RING)
        errors = self.record("-a", "-e", "./plain.bpf.c/map:plain.event=calls/", "-e", "bpf-output/name=calls/", "--",
                             "./family")
        self.assertGreaterEqual(self.samples(), ALL_CALLS, errors)
        self.assertIn("have the time at which they were read, and no thread or CPU", errors)
        refused = self.run_program(programs.BIN / "tacho-record", "-e", "./plain.bpf.c", "--", "true", status=1)
        self.assertIn("has no threads of its events", refused.stderr.decode())


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class Unheard(programs.Scratch):
    def record(self, body, *options, status=0):
        (self.folder / "program.bpf.c").write_text(
            '#include "vmlinux.h"\n#include <bpf/bpf_helpers.h>\n' + body +
            'char LICENSE[] SEC("license") = "GPL";\n')
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", "./program.bpf.c", *options,
                                "--", "true", status=status).stderr.decode()

    PRINTS = """SEC("tp_btf/sched_process_exit") int says(void *ctx) { bpf_printk("gone"); return 0; }\n"""
    ITERATES = """SEC("iter/task") int each(struct bpf_iter__task *ctx) { return 0; }\n"""

    MISTYPED = """#include <tacho/event.h>
struct reading { __u64 took ROLE("valu"); __u64 flags FORMAT("hxe"); };
EVENT(reading, struct reading);
struct { __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); } channel SEC(".maps") EVENT_CHANNEL(raeding);
SEC("tp_btf/sched_process_exit") int says(void *ctx) {
  struct reading event = {};
  bpf_perf_event_output(ctx, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 0;
}
"""

    def test_words_that_nothing_knows(self):
        errors = self.record(self.MISTYPED)
        for line in ("member 'took' of 'reading': ROLE(\"valu\"): there is no role 'valu'; did you mean 'value'?",
                     "member 'flags' of 'reading': FORMAT(\"hxe\"): there is no format 'hxe'; did you mean 'hex'?",
                     "map 'channel': EVENT_CHANNEL(raeding): there is no EVENT() 'raeding'; did you mean 'reading'?"):
            self.assertIn("warning: ./program.bpf.c: " + line, errors)
        corrected = self.MISTYPED.replace("valu", "value").replace("hxe", "hex").replace("raeding", "reading")
        self.assertNotIn("there is no", self.record(corrected))

    def test_bpf_printk_gives_a_hint_where_its_text_goes(self):
        errors = self.record(self.PRINTS, status=1)
        self.assertIn("nothing to record", errors)
        self.assertIn("program says prints with bpf_printk() to /sys/kernel/tracing/trace_pipe", errors)
        errors = self.record(self.PRINTS, "-e", "cpu-clock")
        self.assertIn("warning: ./program.bpf.c: program says prints with bpf_printk()", errors)

    def test_an_iterator_runs_when_it_is_read(self):
        errors = self.record(self.ITERATES, status=1)
        self.assertIn("each: an iterator", errors)
        self.assertNotIn("bpf_printk", errors)
        self.assertIn("each: an iterator", self.record(self.ITERATES, "-e", "cpu-clock"))


if __name__ == "__main__":
    programs.main()
