#!/usr/bin/env python3
"""Soak test of --call-graph ehframe: a long system-wide recording while programs start, exit and change. Memory, descriptors and
the share of complete stacks must stay constant.

  bench/unwind_soak.py [--minutes 60] [--rate 500] [--others 20] [--files 20]

Runs `--rate` short programs a second, and `--others` of a shell, perl, ls and python3 (as many as the machine manages). Copies of
programs with new build ids make unwind tables be built, evicted and built again, and one process maps and unmaps new copies of a
library. Prints a line for each of `--files` captures, and at the end whether the second half needs more than the first. Stacks are
system-wide: stacks without unwind information (JIT code such as QEMU's) and stacks cut at the limit of frames are counted
separately and excluded from the share. Needs root and the built programs (TACHO_BIN, or build/bin)."""
import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from measured import BIN, held_by

COPIES = 40
# A short program: sorts, and ends.
SHORT = r"""
#include <stdlib.h>
static int order(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
int main(void) {
  static int numbers[1000];
  for (int i = 0; i < 1000; ++i) numbers[i] = i * 7919 % 1000;
  qsort(numbers, 1000, sizeof *numbers, order);
  return numbers[0];
}
"""
# Runs the programs short_0 to short_39 in the folder ARGV[1] in turns, ARGV[2] a second, until its parent exits; prints the
# number every second.
STARTER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char** argv) {
  const long rate = argc > 2 ? atol(argv[2]) : 500;
  const pid_t parent = getppid();
  struct timespec next;
  char path[4096];
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (long i = 0; getppid() == parent; ++i) {
    snprintf(path, sizeof path, "%s/short_%ld", argv[1], i % 40);
    const pid_t child = vfork();
    if (child == 0) { execl(path, path, (char*)0); _exit(127); }
    if (child < 0 || waitpid(child, 0, 0) != child) return 1;
    if (i % rate == 0) { printf("%ld\n", i); fflush(stdout); }
    next.tv_nsec += 1000000000 / rate;
    if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec += 1; }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
  }
  return 0;
}
"""
WORKS = (("bash", ["-c", ":"]), ("perl", ["-e", "$x{$_} = $_ for 1 .. 2000"]), ("ls", ["/usr/bin"]), ("python3", ["-S", "-c", "import json"]))
MAPPINGS = """
import _ctypes, os, shutil, sys, time
number = 0
while os.getppid() == int(sys.argv[3]):
    path = os.path.join(sys.argv[1], f"copy{number % 1000}.so")
    shutil.copy(sys.argv[2], path)
    handle = _ctypes.dlopen(path, 0)
    sum(i * i for i in range(3000))
    _ctypes.dlclose(handle)
    os.unlink(path)
    number += 1
    time.sleep(0.01)
"""


class Load:
    """Programs that start, each a copy now and then."""

    def __init__(self, folder, rate, others):
        self.folder, self.rate, self.started, self.is_over = folder, others, 0, False
        for name, source in (("short", SHORT), ("starter", STARTER)):
            subprocess.run(["cc", "-O2", "-Wl,--build-id", "-x", "c", "-o", folder / name, "-"], input=source, text=True, check=True)
        for number in range(COPIES):
            self.copy(folder / "short", number)
        self.starter = subprocess.Popen([folder / "starter", folder, str(rate)], stdout=subprocess.PIPE, text=True)
        self.short = 0
        self.counting = threading.Thread(target=self.count)
        self.counting.start()
        self.found = [(shutil.which(name), words) for name, words in WORKS if shutil.which(name)]
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(2)]
        for thread in self.threads:
            thread.start()
        library = next(path for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in (path := line.split()[-1]))
        self.mapping = subprocess.Popen([sys.executable, "-c", MAPPINGS, folder, library, str(os.getpid())])

    def copy(self, program, number):
        path = self.folder / f"{os.path.basename(program)}_{number % COPIES}"
        new = self.folder / f".{path.name}"
        binary = bytearray(Path(os.path.realpath(program)).read_bytes())
        at = binary.find(b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0")  # the note with its build id
        if at >= 0:
            binary[at + 16:at + 36] = os.urandom(20)
        new.write_bytes(binary)
        new.chmod(0o755)
        new.rename(path)
        return path

    def count(self):
        for line in self.starter.stdout:
            self.short = int(line)

    def run(self, number):
        next_at, count = time.monotonic(), number
        while not self.is_over:
            program, words = self.found[count % len(self.found)]
            if count % 50 == number:
                program = self.copy(program, count)
                self.copy(self.folder / "short", count // 50 * 2 + number)  # of the other thread none
            try:
                subprocess.run([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            except OSError:
                pass  # a child of the other thread has the copy open for writing until its exec
            count += 2
            self.started += 1
            next_at = max(next_at + 2 / self.rate, time.monotonic() - 1)
            time.sleep(max(0, next_at - time.monotonic()))

    def end(self):
        self.is_over = True
        self.starter.kill()
        self.starter.wait()
        self.counting.join()
        self.mapping.kill()
        self.mapping.wait()
        for thread in self.threads:
            thread.join()


FACTS = ("walked", "whole", "finished by the recorder", "others end in code without unwind information", "others end at the maximum of frames")


def facts_of(capture):
    """Counts of stacks, as FACTS says."""
    text = subprocess.run([BIN / "tacho", "header", "-i", capture], capture_output=True, text=True, check=False).stdout
    return [int(found.group(1)) if (found := re.search(rf"{fact}: (\d+)", text)) else 0 for fact in FACTS]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--others", type=float, default=20)
    parser.add_argument("--files", type=int, default=20)
    options = parser.parse_args()
    period = max(1, round(options.minutes * 60 / options.files))
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load = Load(folder, options.rate, options.others)
        recorder = subprocess.Popen([BIN / "tacho-record", "-a", "-F", "499", "-e", "cpu-clock", "--call-graph", "eh", "--no-pack", "-o",
                                     folder / "x.data", f"--switch-output={period}s"], stderr=subprocess.PIPE, text=True)
        time.sleep(min(5, period / 2))
        print("| s | programs started | MB | MB of maps | descriptors | threads | stacks | whole | of what can be | finished by the recorder | nothing describes | cut |\n" + "|---" * 12 + "|")
        begin, seen = time.monotonic(), set()
        while time.monotonic() - begin < options.minutes * 60 and recorder.poll() is None:
            time.sleep(period)
            if recorder.poll() is not None:
                break  # it was ended
            done = sorted(set(folder.glob("x.data.2*")) - seen)[:-1]  # the last one is being written
            for capture in done:
                seen.add(capture)
                held = held_by(recorder.pid)
                walked, whole, finished, bare, cut = facts_of(capture)
                share = 100 * whole / max(walked - bare - cut, 1)
                rows.append((*held.values(), share))
                print(f"| {time.monotonic() - begin:.0f} | {load.short + load.started} | {held['MB']:.1f} | {held['MB of maps']:.1f} | {held['descriptors']} | {held['threads']} | {walked} | {100 * whole / max(walked, 1):.2f} % | "
                      f"{share:.2f} % | {finished} | {bare} | {cut} |", flush=True)
                capture.write_bytes(b"")
        if recorder.poll() is None:
            recorder.send_signal(signal.SIGINT)
        said = recorder.communicate(timeout=60)[1]
        load.end()
    print(said.strip().splitlines()[-1] if said.strip() else "")
    half = len(rows) // 2
    if half < 2 or recorder.returncode != 0:
        sys.exit(f"status {recorder.returncode}, {len(rows)} files: too few to tell\n{said}")
    first, second = ([statistics.median(column) for column in zip(*part)] for part in (rows[1:half + 1], rows[half:]))
    for name, before, after in zip((*held, "% whole"), first, second):
        print(f"{name}: {before:.1f} then {after:.1f}")
    if any(after > 1.1 * before + (8 if "MB" in name else 2) for name, before, after in zip(held, first, second)) or second[-1] < first[-1] - 1:
        sys.exit("it does not stay what it was")


if __name__ == "__main__":
    main()
