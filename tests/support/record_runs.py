#!/usr/bin/env python3
"""Records the captures of tests/data/compared-runs*.txt: python3 tests/support/record_runs.py BIN [--neighbour] > FILE.

A program of 40 functions runs 24 times as it is and 24 times with one function that takes 5 % of the total more, in turns.
One line for each capture: its side, and the samples of each function. The names are in the first line. With --neighbour a
process for each CPU writes to 64 MB of memory meanwhile, in bursts of up to a second, and rests as long."""
import collections
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FUNCTIONS = 40
SLOW = 17  # the function that gets slower
RUNS = 24
ROUNDS = 1_000
STEPS = 6_000  # of each function in a round


def source():
    bodies = "".join(f"""
__attribute__((noinline)) static void work_{i:02}(long steps) {{
  volatile unsigned long sum = {i};
  for (long at = 0; at < steps; ++at) sum = sum * {2 * i + 3} + at;
}}""" for i in range(FUNCTIONS))
    calls = "".join(f"    work_{i:02}({STEPS}{' + more' if i == SLOW else ''});\n" for i in range(FUNCTIONS))
    return f"""#include <stdlib.h>
{bodies}
int main(int count, char** words) {{
  const long more = count > 1 ? atol(words[1]) : 0;
  for (int round = 0; round < {ROUNDS}; ++round) {{
{calls}  }}
}}
"""


NEIGHBOUR = """
import random, time
there = bytearray(64 << 20)
while True:
    end = time.monotonic() + random.random()
    while time.monotonic() < end:
        there[:] = bytes(len(there))
    time.sleep(random.random())
"""


@contextlib.contextmanager
def neighbour():
    """A busy neighbour, in bursts that differ from CPU to CPU."""
    started = [subprocess.Popen([sys.executable, "-c", NEIGHBOUR]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def samples(tacho, capture):
    """Samples by function, {name: count}."""
    counts = collections.Counter()
    folded = subprocess.run([tacho, "folded", "--weight", "samples", "--by", "none", "-i", capture], check=True, capture_output=True)
    for line in folded.stdout.decode().splitlines():
        name, weight = line.rpartition(";")[2].rsplit(" ", 1)
        counts[name] += int(weight)
    return counts


def main(bin_folder, beside=None):
    with tempfile.TemporaryDirectory() as folder, neighbour() if beside == "--neighbour" else contextlib.nullcontext():
        program = Path(folder) / "forty"
        program.with_suffix(".c").write_text(source())
        subprocess.run(["gcc", "-O1", "-o", program, program.with_suffix(".c")], check=True)
        # Of all after the change, 5 % are new.
        more = round(STEPS * FUNCTIONS * 0.05 / 0.95)
        for name, words in ("before", ""), ("after", f" {more}"):
            script = Path(folder) / f"{name}.sh"
            script.write_text(f"#!/bin/sh\nexec {program}{words}\n")
            script.chmod(0o755)
        tacho = Path(bin_folder) / "tacho"
        subprocess.run([tacho, "record", "-g", "-F", "5000", "--repeat", str(RUNS), "--interleave", "--warm-up", "1", "-o",
                        f"{folder}/runs", "--", f"{folder}/before.sh", f"{folder}/after.sh"], check=True)
        runs = [(side, samples(tacho, capture)) for side in ("before", "after")
                for capture in sorted((Path(folder) / "runs" / side).iterdir())]
    # The kernel's and the loader's functions are one.
    names = [f"work_{i:02}" for i in range(FUNCTIONS)]
    print("side", *names, "others")
    for side, counts in runs:
        print(side, *(counts[name] for name in names), sum(counts.values()) - sum(counts[name] for name in names))


if __name__ == "__main__":
    main(*sys.argv[1:])
