#!/usr/bin/env python3
"""What recorders cost beside bpftrace doing the same, in turns in one run: system calls counted, summed and as a histogram in
the kernel; files that are opened, a line or event each; switches of threads, the time off the CPU by stack.

  bench/record_against_bpftrace.py [--runs 5] [--calls 2000000] [--opens 1000000] [--switches 200000] [--first "chrt -f 20"]

Prints medians: CPU time of the traced program, its slowdown, and CPU time of the recorder less what it takes beside a
program that does nothing. Needs root, bpftrace, cc, clang and the built programs (TACHO_BIN, or build/bin). Only the
ratios mean something on another machine."""
import argparse
import os
import resource
import shlex
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin"))
PATIENCE = 120  # seconds, for one program

LOAD = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
/* calls N: getppid(2); opens N: open and close; switches N: there and back through a pipe on one CPU */
int main(int argc, char **argv) {
  long n = atol(argv[2]);
  if (!strcmp(argv[1], "calls")) while (n-- > 0) syscall(SYS_getppid);
  if (!strcmp(argv[1], "opens")) while (n-- > 0) { int file = open("/proc/self/status", O_RDONLY | O_PATH); if (file >= 0) close(file); }
  if (!strcmp(argv[1], "switches")) {
    int there[2], back[2];
    char byte = 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
    if (pipe(there) || pipe(back)) return 1;
    int child = fork();
    for (long i = 0; i < n / 2; ++i) {
      if (child ? write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1
                : read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) return 1;
    }
    if (child) wait(0);
  }
  return 0;
}
"""
# In maps, which the recorder reads at the end: a count, a sum, a histogram.
SUMMARY = r"""
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tacho/emit.h>
struct seen_key { KEY };
struct seen_value { VALUE };
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct seen_key);
  __type(value, struct seen_value);
} seen SEC(".maps");
SUMMARY(seen_calls, seen);
SEC("tracepoint/raw_syscalls/sys_exit")
int leaves(struct trace_event_raw_sys_exit *context) {
  struct seen_key key = {};
  struct seen_value *value;
  MAKE
  value = tacho_entry(seen, &key);
  if (value) { ADD }
  return 1;
}
char _license[] SEC("license") = "GPL";
"""
COUNT = {"KEY": "__u64 id;", "VALUE": '__u64 calls ROLE("count");', "MAKE": "key.id = context->id;", "ADD": "++value->calls;"}
SUM = {"KEY": "__u64 id;", "VALUE": '__u64 calls ROLE("count"); __u64 total ROLE("sum");', "MAKE": "key.id = context->id;",
       "ADD": "++value->calls; value->total += context->ret;"}
HIST = {"KEY": '__u64 returned ROLE("log2");', "VALUE": '__u64 calls ROLE("count");',
        "MAKE": "key.returned = tacho_log2(context->ret);", "ADD": "++value->calls;"}

# By load: what bpftrace runs, and what tacho records.
CASES = {
    "counted": ("calls", "tracepoint:raw_syscalls:sys_exit { @[args->id] = count(); }", COUNT),
    "summed": ("calls", "tracepoint:raw_syscalls:sys_exit { @[args->id] = sum(args->ret); }", SUM),
    "histogram": ("calls", "tracepoint:raw_syscalls:sys_exit { @ = hist(args->ret); }", HIST),
    "opens": ("opens", """tracepoint:syscalls:sys_enter_open, tracepoint:syscalls:sys_enter_openat { @path[tid] = args->filename; }
      tracepoint:syscalls:sys_exit_open, tracepoint:syscalls:sys_exit_openat /@path[tid]/
      { printf("%d %s %d %s\\n", pid, comm, args->ret, str(@path[tid])); delete(@path[tid]); }""", "open"),
    "switches": ("switches", """tracepoint:sched:sched_switch { if (args->prev_state & 0xff) { @begun[args->prev_pid] = nsecs;
      @kernel[args->prev_pid] = kstack; @user[args->prev_pid] = ustack; }
      if (@begun[args->next_pid]) { @off[@kernel[args->next_pid], @user[args->next_pid], args->next_comm] = sum(nsecs - @begun[args->next_pid]);
      delete(@begun[args->next_pid]); delete(@kernel[args->next_pid]); delete(@user[args->next_pid]); } }""", "offcputime/preempted=false/"),
}


def cpu_of(process, is_to_end=False):
    """Ends the process or waits for it. CPU time in s, with its children."""
    until = time.monotonic() + PATIENCE
    while True:
        # bpftrace misses a Ctrl-C while it is not waiting for events; a second one while it ends is an error.
        if is_to_end:
            process.send_signal(signal.SIGINT)
        for _ in range(2000):
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.01)
        if pid:
            break
        if time.monotonic() > until:
            process.kill()
            raise SystemExit(f"{process.args[0]} does not end")
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


class Bench:
    def __init__(self, folder, first):
        self.folder, self.first = folder, first
        (folder / "load.c").write_text(LOAD)
        subprocess.run(["cc", "-O2", "-fno-omit-frame-pointer", "-o", folder / "load", folder / "load.c"], check=True)

    def load(self, words):
        return cpu_of(subprocess.Popen([*self.first, self.folder / "load", *map(str, words)]))

    def event(self, what):
        if isinstance(what, str):
            return what
        source = SUMMARY
        for word, text in what.items():
            source = source.replace(word, text) if word != "KEY" else source.replace("{ KEY }", "{ " + text + " }")
        path = self.folder / "summary.bpf.c"
        path.write_text(source)
        return str(path)

    def beside(self, words, load):
        """CPU time of the load and of the recorder, in s."""
        log = self.folder / "log"
        with open(log, "wb") as out:
            process = subprocess.Popen([*self.first, *map(str, words)], stdout=out, stderr=out,
                                       env=dict(os.environ, __BPFTRACE_NOTIFY_PROBES_ATTACHED="1"))
        until = time.monotonic() + PATIENCE
        # Both print when they have started.
        while not any(said in log.read_text(errors="replace") for said in ("Recording has begun", "PROBES_ATTACHED")):
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                raise SystemExit(f"{words[0]}: {log.read_text(errors='replace')[-800:]}")
            time.sleep(0.02)
        time.sleep(1.0)
        took = self.load(load)
        time.sleep(0.3)
        return took, cpu_of(process, is_to_end=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=2000000)
    parser.add_argument("--opens", type=int, default=1000000)
    parser.add_argument("--switches", type=int, default=200000)
    parser.add_argument("--first", default="", help='words before each program, as "chrt -f 20" on a busy machine')
    parser.add_argument("cases", nargs="*", default=list(CASES), help="some of: " + " ".join(CASES))
    asked = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("needs root")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("| | alone, s | under bpftrace | under tacho | slowdown, of bpftrace's | bpftrace's own CPU, s | tacho's own |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tacho-bench-") as name:
        bench = Bench(Path(name), shlex.split(asked.first))
        for case in asked.cases:
            kind, script, what = CASES[case]
            load = [kind, getattr(asked, kind)]
            watchers = {"bpftrace": ["bpftrace", "-e", script],
                        "tacho": [BIN / "tacho-record", "--no-pack", "-a", "-e", bench.event(what), "-o", bench.folder / "one.data"]}
            rows = {watcher: [] for watcher in watchers}
            alone = []
            for _ in range(asked.runs):
                alone.append(bench.load(load))
                for watcher, words in watchers.items():
                    _, idle = bench.beside(words, ["calls", 0])
                    took, own = bench.beside(words, load)
                    rows[watcher].append((took, own - idle))
            base = statistics.median(alone)
            (theirs, their_cpu), (ours, our_cpu) = ([statistics.median(column) for column in zip(*rows[one])] for one in watchers)
            print(f"| {load[1]:,} {kind}, {case} | {base:.2f} | {theirs:.2f} | {ours:.2f} | {(ours - base) / (theirs - base):.2f} | "
                  f"{their_cpu:.2f} | {our_cpu:.2f} |", flush=True)


if __name__ == "__main__":
    main()
