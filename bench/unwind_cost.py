#!/usr/bin/env python3
"""What whole user stacks (--call-graph eh) cost, beside frame pointers (fp) and copies of stacks (dwarf), in one run.

  bench/unwind_cost.py [--runs 5] [--seconds 1] [--libraries 200]

How much slower gcc's compiler runs while it is sampled at 99, 999 and 10,000 Hz, with what a sample costs the recorder and its
file; what time passes from the recorder's start to the first whole stack; and what tables of a desktop's libraries take. Times
are CPU times, medians of runs in turns, so that a busy machine moves them less. bench/user_stacks.py has the cost of a frame.
Needs root and the built programs (TACHO_BIN, or build/bin)."""
import argparse
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measured import BIN, run, spent

RATES = (99, 999, 10000)
METHODS = ("fp", "eh", "dwarf")
WORK = "sub f { my $n = shift; $n ? f($n - 1) : join '', sort { $b <=> $a } 1 .. 40 } f(25) for 1 .. $ARGV[0]"
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
        more = max(1, many[2] - few[2])  # what is the same for every recording is taken off
        cells = [f"{100 * (median[method, rate][0] / none - 1):+.1f} %" for rate in RATES]
        print(f"| {method} | " + " | ".join(cells) + f" | {1e6 * (many[1] - few[1]) / more:.1f} | {(many[3] - few[3]) / more:.0f} |", flush=True)


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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_slowdown(folder, options.runs, options.seconds)
        measure_start(folder, options.runs)
        measure_tables(folder, options.runs, options.libraries)


if __name__ == "__main__":
    main()
