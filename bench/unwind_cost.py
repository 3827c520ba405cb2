#!/usr/bin/env python3
"""Cost of complete user stacks (--call-graph ehframe), compared with frame pointers (fp) and stack copies (dwarf), in one run.

  bench/unwind_cost.py [--runs 5] [--seconds 1] [--libraries 200] [--rate 300000] [--parts slowdown,events,start,tables]

How much slower gcc's compiler runs while it is sampled at 99, 999 and 10,000 Hz, with what a sample costs the recorder and its
file; the same of a program that a BPF program records 300,000 times a second, and what a frame costs it; what time passes from
the recorder's start to the first whole stack; and what tables of a desktop's libraries take. Times are CPU times, medians of
runs in turns, so that a busy machine moves them less. Needs root and the built programs (TACHO_BIN, or build/bin), and clang for
the BPF program."""
import argparse
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measured import BIN, ROOT, run, spent

RATES = (99, 999, 10000)
METHODS = ("fp", "eh", "dwarf")
WORK = "sub f { my $n = shift; $n ? f($n - 1) : join '', sort { $b <=> $a } 1 .. 40 } f(25) for 1 .. $ARGV[0]"
DEPTHS = (8, 40)  # of the calls that a BPF program records
CALL_WORK = 200  # steps before each call: a microsecond or less
EVENT = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tacho/event.h>

struct call { __u64 time_ns; };
EVENT(call, struct call);
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} channel SEC(".maps") EVENT_CHANNEL(call);

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  struct call event = {.time_ns = bpf_ktime_get_ns()};
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
"""
LIBRARIES = """
import mmap, pathlib, sys, time
kept, seen = [], set()
for path in sorted(pathlib.Path('/usr/lib/x86_64-linux-gnu').rglob('*.so*')):
    real = path.resolve()
    if real in seen or len(kept) == int(sys.argv[1]): continue
    seen.add(real)
    with open(real, 'rb') as file:
        if file.read(4) != b'\\x7fELF': continue
        kept.append(mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
time.sleep(float(sys.argv[2]))
print(len(kept))
"""


def compiler_load(folder, functions):
    """gcc's cc1, whose stacks are some 20 frames deep; the path of its program, since gcc starts another one."""
    source = folder / f"work{functions}.c"
    source.write_text("int printf(const char *, ...);\n" + "".join(
        f"int f{i}(int a) {{ int s = 0; for (int i = 0; i < a; i++) s += i * {i} + printf(\"%d\", s); return s; }}\n" for i in range(functions)))
    return [run("gcc", "-print-prog-name=cc1").stdout.strip(), "-quiet", "-O2", source, "-o", "/dev/null"]


def measure_slowdown(folder, runs, seconds):
    functions = int(100 * seconds / max(0.01, spent([], compiler_load(folder, 100))[0]))
    load = compiler_load(folder, functions)
    kinds = [(None, 0)] + [(method, rate) for rate in RATES for method in METHODS]
    taken = {kind: [] for kind in kinds}
    for _ in range(runs):
        for method, rate in kinds:
            words = [BIN / "tacho", "record", "-o", folder / "x.data", "--no-pack", "-m", "16M", "-F", rate, "-e", "cpu-clock", "--call-graph",
                     method, "--"] if method else []
            own, others, said = spent(words, load)
            found = re.search(r"\((\d+) samples, (\d+) lost\)", said)
            samples, size = (int(found.group(1)), (folder / "x.data").stat().st_size) if found else (0, 0)
            taken[method, rate].append((own, others, samples, size))
    median = {kind: [statistics.median(column) for column in zip(*values)] for kind, values in taken.items()}
    none = median[None, 0][0]
    print(f"cc1, {none:.2f} s of CPU without a recorder\n\n| | " + " | ".join(f"slower at {rate:,} Hz" for rate in RATES) +
          " | recorder's us a sample | bytes a sample |\n" + "|---" * (3 + len(RATES)) + "|")
    for method in METHODS:
        few, many = median[method, RATES[0]], median[method, RATES[-1]]
        more = max(1, many[2] - few[2])  # the cost common to all recordings is subtracted
        cells = [f"{100 * (median[method, rate][0] / none - 1):+.1f} %" for rate in RATES]
        print(f"| {method} | " + " | ".join(cells) + f" | {1e6 * (many[1] - few[1]) / more:.1f} | {(many[3] - few[3]) / more:.0f} |", flush=True)


def recorded_calls(folder, method, load):
    """Of one run, for a call: ns of CPU of the load and of the recorder; calls a second; samples, and those lost."""
    words = [BIN / "tacho", "record", "-o", folder / "x.data", "-m", "32M", "-e", folder / "call.bpf.c"] if method else []
    words += ["--call-graph", method] if method not in (None, "none") else []
    own, others, said = spent([*words, "--"] if words else [], load)
    rate = float(re.search(r"steady (\d+) calls a second", said).group(1))
    found = re.search(r"\((\d+) samples, (\d+) lost\)", said)
    samples, lost = (int(word) for word in found.groups()) if found else (0, 0)
    return [own / load[2] * 1e9, others / load[2] * 1e9, rate, samples, lost]


def measure_events(folder, runs, seconds, rate):
    (folder / "call.bpf.c").write_text(EVENT)
    steady = folder / "steady_calls"
    # With frame pointers, so that all methods find the same frames.
    run("gcc", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", steady, ROOT / "bench/stack_loads/steady_calls.c")
    kinds = [(method, depth) for depth in DEPTHS for method in (None, "none", *METHODS)]
    taken = {kind: [] for kind in kinds}
    recorded_calls(folder, "none", [steady, rate, rate, 0, 0])  # the header of the kernel's types is made once
    for _ in range(runs):
        for method, depth in kinds:
            taken[method, depth].append(recorded_calls(folder, method, [steady, rate, int(rate * seconds), depth, CALL_WORK]))
    median = {kind: [statistics.median(column) for column in zip(*values)] for kind, values in taken.items()}
    added = {(method, depth): median[method, depth][0] - median[None, depth][0] for method, depth in kinds}
    print(f"\nA BPF program's event for each of {rate:,} calls a second, {DEPTHS[0]} frames deep; without a recorder a call and its work take "
          f"{median[None, DEPTHS[0]][0]:.0f} ns\n\n| | calls a second | CPU of the program | ns an event | of {DEPTHS[1]} frames | ns a frame | recorder's ns "
          "an event | lost |\n" + "|---" * 8 + "|")
    for method in ("none", *METHODS):
        shallow, deep = (median[method, depth] for depth in DEPTHS)
        frame = (added[method, DEPTHS[1]] - added[method, DEPTHS[0]]) / (DEPTHS[1] - DEPTHS[0])
        print(f"| {method} | {shallow[2]:,.0f} | {100 * (shallow[0] / median[None, DEPTHS[0]][0] - 1):+.0f} % | {added[method, DEPTHS[0]]:.0f} | "
              f"{added[method, DEPTHS[1]]:.0f} | {frame:.0f} | {shallow[1]:.0f} | {shallow[4]:.0f} of {shallow[3] + shallow[4]:.0f} |", flush=True)


def first_whole(folder, method, *more):
    """Seconds from the start of the recorder to the first sample of the program, and to the first whole one."""
    begin = time.clock_gettime(time.CLOCK_MONOTONIC)
    run(BIN / "tacho", "record", "-o", folder / "x.data", "-k", "monotonic", "-F", "4999", "-e", "cpu-clock:u", "--call-graph", method, *more, "--",
        "perl", "-e", WORK, "400")
    text = run(BIN / "tacho", "script", "-i", folder / "x.data", "-F", "comm,time,ip,sym,dso").stdout
    times = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if len(lines) > 1 and lines[0].startswith("perl"):
            stamp = float(re.search(r"([0-9.]+):", lines[0]).group(1)) - begin
            times.append((stamp, bool(re.search(r" (_start|_dl_start_user)\b|/perl\)$", lines[-1]))))
    whole = [stamp for stamp, is_whole in times if is_whole]
    return times[0][0], whole[0] if whole else float("nan")


def measure_start(folder, runs):
    kinds = [("fp", []), ("eh", []), ("fp", ["-a"]), ("eh", ["-a"])]
    taken = {index: [] for index in range(len(kinds))}
    for _ in range(runs):
        for index, (method, more) in enumerate(kinds):
            taken[index].append(first_whole(folder, method, *more))
    print("\n| | first sample of the command after | first whole one |\n|---|---|---|")
    for index, (method, more) in enumerate(kinds):
        first, whole = (statistics.median(column) for column in zip(*taken[index]))
        print(f"| {' '.join([method, *more])} | {1000 * first:.0f} ms | {1000 * whole:.0f} ms |" if method == "eh" else
              f"| {' '.join([method, *more])} | {1000 * first:.0f} ms | |", flush=True)


def measure_tables(folder, runs, libraries):
    rows = []
    for _ in range(runs):
        done = run(BIN / "tacho", "record", "-v", "-o", folder / "x.data", "--no-pack", "-F", "99", "-e", "cpu-clock", "--call-graph", "eh", "--",
                   sys.executable, "-c", LIBRARIES, libraries, "3")
        found = re.search(r"unwind tables: (\d+) files, (\d+) of them without one; ([0-9.]+) MB of (\d+) MB; built in (\d+) ms of CPU; (\d+)", done.stderr)
        rows.append([float(value) for value in found.groups()])
    files, bare, size, budget, spent, evicted = (statistics.median(column) for column in zip(*rows))
    print(f"\n{files:.0f} files ({bare:.0f} without unwind information): tables of {size:.1f} MB (of {budget:.0f} MB), built in {spent:.0f} ms of CPU; "
          f"{evicted:.0f} had to make room")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--libraries", type=int, default=200)
    parser.add_argument("--rate", type=int, default=300000, help="calls a second that a BPF program records")
    parser.add_argument("--parts", default="slowdown,events,start,tables", help="what is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = {"slowdown": lambda: measure_slowdown(folder, options.runs, options.seconds),
                 "events": lambda: measure_events(folder, options.runs, options.seconds, options.rate),
                 "start": lambda: measure_start(folder, options.runs),
                 "tables": lambda: measure_tables(folder, options.runs, options.libraries)}
        for part in options.parts.split(","):
            if part not in parts:
                sys.exit(f"--parts: no part '{part}'; there are {', '.join(parts)}")
            parts[part]()


if __name__ == "__main__":
    main()
