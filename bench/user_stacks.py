#!/usr/bin/env python3
"""User stacks by frame pointers (fp), by unwind tables in the kernel (ehframe) and by libdw from stack copies (dwarf): completeness and cost.

  bench/user_stacks.py [--samples N [--limit 120]] [--only NAME] [--calls 200000] [--runs 5] [--no-cost] [--no-programs]

Programs: each hit of a probe brings its stack by eh and by dwarf, which are compared frame by frame. Each is recorded once, or
until it gave N stacks or took the limit's seconds; what differs is listed, by the last frame that both have and the next one of each. Cost: CPU time of a
program that calls getppid(2) from 8 and from 100 frames deep, each call an event, for a call more than without a recorder and
for a frame; medians of runs in turns. Needs root and the built programs (TACHO_BIN, or build/bin)."""
import argparse
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from measured import BIN, ROOT, run, spent

sys.path.insert(0, str(ROOT / "tests/support"))
import stack_pairs  # noqa: E402

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
DEPTHS = (8, 100)
LISTED = 12  # places where stacks part, for each program
NODE_WORK = """
const fs = require('fs'), out = fs.openSync('/dev/null', 'w');
fs.writeSync(out, 'x');
for (const begin = Date.now(); Date.now() - begin < 1000;);
function put() { fs.writeSync(out, 'x'); return 0; }
function deep(depth, call) { return depth === 0 ? call() : deep(depth - 1, call); }
for (let i = 0; i < 80; i++) {
  deep(i % 9, put);
  [3, 1, 2].sort((a, b) => { put(); return a - b; });
  JSON.stringify({ toJSON() { put(); return 1; } });
  '1'.replace(/1/, put);
}
"""


def programs(folder):
    """name, probe, command"""
    (folder / "work.c").write_text("int printf(const char *, ...);\n" + "".join(
        f"int f{i}(int a) {{ int s = 0; for (int i = 0; i < a; i++) s += i * {i} + printf(\"%d\", s); return s; }}\n" for i in range(150)))
    bash = "f() { if (($1)); then f $(($1 - 1)); else for i in a b c; do x=${i//a/b}; done; x=$(:); fi; }; for ((k = 0; k < 150; ++k)); do f $((k % 9)); done"
    compiler = run("gcc", "-print-prog-name=cc1").stdout.strip() if shutil.which("gcc") else ""
    rows = [("python3", "syscalls:sys_enter_write", [os.path.realpath(sys.executable), "-c", stack_pairs.PYTHON_WORK]),
            ("perl", "syscalls:sys_enter_write", ["perl", "-e", stack_pairs.PERL_WORK]),
            ("bash", "syscalls:sys_enter_rt_sigprocmask", ["bash", "-c", bash]),
            ("gcc's cc1", f"uprobe:{LIBC}:realloc", [compiler, "-quiet", "-O2", folder / "work.c", "-o", "/dev/null"]),
            ("signals, callbacks, threads", f"uprobe:{BIN}/deep_load:deep_leaf", [BIN / "deep_load", "1", BIN / "deep_library.so"])]
    rows += [(name, "syscalls:sys_enter_getppid", command) for name, command in built(folder)]
    rows.append(("node", "syscalls:sys_enter_write", ["node", "-e", NODE_WORK]))
    return [row for row in rows if shutil.which(row[2][0])]


def built(folder):
    """name, command: programs of bench/stack_loads, of those languages that are installed."""
    sources = ROOT / "bench/stack_loads"
    for name, words in [("C++ exceptions, sorts, signals, vfork", ["g++", "-O2", "-fomit-frame-pointer", "-pthread", "-o", folder / "hard_cc", sources / "hard_stacks.cc"]),
                        ("Rust", ["rustc", "-O", "-o", folder / "hard_rs", sources / "hard_stacks.rs"]),
                        ("Go", ["go", "build", "-o", folder / "hard_go", sources / "hard_stacks.go"])]:
        if shutil.which(words[0]):
            run(*words)
            yield name, [next(word for word in words if str(word).startswith(str(folder))), "4"]


def compared(reader, folder, others):
    text = run(reader, "script", "-i", folder / "x.data", "-F", "tid,time,event,ip,sym", "--no-inline").stdout
    return stack_pairs.compare(text, others=others)[0]


def record_once(folder, probe, command):
    """Counts of stacks, unequal stacks, number of lost samples, and the processes of the copies."""
    said = run(BIN / "tacho", "record", "-o", folder / "x.data", *stack_pairs.events(probe, copied=32768), "--", *command).stderr
    lost = int(re.search(r"\((\d+) samples, (\d+) lost\)", said).group(2))
    others = Counter()
    counts = compared("perf" if shutil.which("perf") else BIN / "tacho", folder, others)
    if counts["copied is shorter"] <= counts["pairs"] / 2:
        return counts, others, lost, ""
    others = Counter()  # libdw failed: the result of tacho's own unwinder
    return compared(BIN / "tacho", folder, others), others, lost, " (by tacho's reader)"


def compare_programs(folder, only, samples, limit):
    print("| program | stacks | whole by eh | by libdw | equal | eh is shorter | libdw is shorter | different |\n|---|---|---|---|---|---|---|---|")
    for name, probe, command in programs(folder):
        if only not in name:
            continue
        counts, others, lost, readers = Counter(), Counter(), 0, set()
        begin = time.monotonic()
        while not counts or (counts["pairs"] < samples and time.monotonic() - begin < limit):
            more_counts, more_others, more_lost, reader = record_once(folder, probe, command)
            counts += more_counts
            others += more_others
            lost += more_lost
            readers.add(reader)
        print("| {}{} | {:,} | {:.2f} % | {:.2f} % | {:,} | {:,} | {:,} | {:,} |{}".format(
            name, "".join(sorted(readers)), counts["pairs"],
            *(100 * counts[f"{kind} whole"] / max(counts["pairs"], 1) for kind in ("walked", "copied")),
            *(counts[kind] for kind in ("equal", "walked is shorter", "copied is shorter", "different")),
            f" {lost:,} samples were lost, and are left out with the other one of their hits" if lost else ""), flush=True)
        for (kind, last, mine, theirs), times in others.most_common(LISTED):
            print(f"    {times} {kind}: after {last} eh has {mine}, libdw {theirs}", flush=True)
        if len(others) > LISTED:
            print(f"    {sum(others.values()) - sum(times for _, times in others.most_common(LISTED))} at {len(others) - LISTED} more places")


def cpu_of_call(words, calls, depth):
    """CPU ns of a call of the load, and of the recorder."""
    own, others, _ = spent([*words, "--"] if words else [], [BIN / "getppid_load", calls, depth])
    return own / calls * 1e9, others / calls * 1e9


def measure_cost(folder, calls, runs):
    methods = {"none": [], **{method: [BIN / "tacho", "record", "-o", folder / "y.data", "-e", "syscalls:sys_enter_getppid",
                                       "--call-graph", method] for method in ("fp", "eh", "dwarf")}}
    taken = {(method, depth): [] for method in methods for depth in DEPTHS}
    for _ in range(runs):
        for method, depth in taken:
            taken[method, depth].append((*cpu_of_call(methods[method], calls, depth),
                                         (folder / "y.data").stat().st_size / calls if methods[method] else 0))
    median = {key: [statistics.median(column) for column in zip(*values)] for key, values in taken.items()}
    print("| stacks | ns a call at 8 frames | at 100 | ns a frame | recorder's ns an event, at 8 | at 100 | bytes, at 8 | at 100 |\n|---|---|---|---|---|---|---|---|")
    for method in methods:
        shallow, deep = (median[method, depth] for depth in DEPTHS)
        frame = (deep[0] - shallow[0] - median["none", DEPTHS[1]][0] + median["none", DEPTHS[0]][0]) / (DEPTHS[1] - DEPTHS[0])
        print(f"| {method} | {shallow[0]:.0f} | {deep[0]:.0f} | {frame:.0f} | {shallow[1]:.0f} | {deep[1]:.0f} | {shallow[2]:.0f} | {deep[2]:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-cost", action="store_true")
    parser.add_argument("--no-programs", action="store_true")
    parser.add_argument("--samples", type=int, default=1, help="stacks of each program, at least")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each program, at most")
    parser.add_argument("--only", default="", help="programs with this in their names")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not options.no_programs:
            compare_programs(folder, options.only, options.samples, options.limit)
        if not options.no_cost:
            measure_cost(folder, options.calls, options.runs)


if __name__ == "__main__":
    main()
