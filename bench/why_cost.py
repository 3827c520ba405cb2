#!/usr/bin/env python3
"""What `tacho why -a` costs the programs that it records, beside perf, in one run.

  bench/why_cost.py [--runs 5] [--perf perf]

Fixed work on two processors, alone and recorded system-wide in turns: two compilers at a time, and a server whose clients and
workers wait for each other 2,000 to 60,000 times a second. Times are the loads' own, without the start of the recorder; medians.
Columns: perf's clock and switches (perf samples these at 99 Hz, too), tacho why's events at their rate, and without one. Needs
root, g++ and the built programs (TACHO_BIN, or build/bin)."""
import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measured import BIN, ROOT

# Six pairs of a client and a worker send each other eight bytes, compute, and share a lock.
SERVER = r"""
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>
static std::mutex lock;
static unsigned long table[4096];
static unsigned long steps(unsigned long x, long n) {
  for (long i = 0; i < n; ++i) x = x * 6364136223846793005UL + 1442695040888963407UL;
  return x;
}
int main(int, char** words) {
  const long rounds = atol(words[1]), work = atol(words[2]);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> all;
  for (int pair = 0; pair < 6; ++pair) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
    all.emplace_back([=] {
      for (unsigned long x; read(ends[0], &x, 8) == 8;) {
        x = steps(x, work);
        { std::lock_guard held(lock); table[x % 4096] += steps(x, work / 8); }
        if (write(ends[0], &x, 8) != 8) return;
      }
    });
    all.emplace_back([=] {
      unsigned long x = pair;
      for (long i = 0; i < rounds; ++i) {
        x = steps(x, work / 4);
        if (write(ends[1], &x, 8) != 8 || read(ends[1], &x, 8) != 8) return;
      }
      close(ends[1]);
    });
  }
  for (std::thread& one : all) one.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("took %.4f switches %.0f\n", seconds, (used.ru_nvcsw + used.ru_nivcsw) / seconds);
}
"""
COMPILERS = """
import subprocess, time
begin = time.monotonic()
words = ["sh", "-c", "for i in 1 2; do g++ -std=c++20 -O1 -c -o /dev/null source.cc || exit 1; done"]
both = [subprocess.Popen(words) for _ in range(2)]
assert all(one.wait() == 0 for one in both)
print(f"took {time.monotonic() - begin:.4f} switches 0")
"""
EVENTS = "cpu-clock,offcpu/preempted=true{}/,waking{}"


def recorders(perf):
    ours = [BIN / "tacho-record", "-q", "-a", "--no-pack", "-g", "-F", "99", "-o", "ours.data", "-e"]
    made = {"alone": []}
    if shutil.which(perf):
        made["perf"] = [perf, "record", "-q", "-a", "-g", "-F", "99", "-e", "cpu-clock", "-e", "sched:sched_switch", "-o", "perf.data", "--"]
    made["why"] = [*ours, EVENTS.format(",rate=500", "/rate=500/"), "--"]
    made["each wait"] = [*ours, EVENTS.format("", ""), "--"]
    return made


def measure(folder, load, recorder):
    done = subprocess.run([str(word) for word in (*recorder, *load)], cwd=folder, capture_output=True, text=True, check=False)
    found = re.search(r"took ([0-9.]+) switches ([0-9]+)", done.stdout)
    if not found:
        sys.exit(f"{recorder}: {done.stderr}")
    return float(found[1]), int(found[2])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--perf", default="perf")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server.cc").write_text(SERVER)
        (folder / "source.cc").write_text("#include <algorithm>\n#include <map>\n#include <regex>\nint main() { return std::regex(\"a*b\").mark_count(); }\n")
        (folder / "compilers.py").write_text(COMPILERS)
        subprocess.run(["g++", "-std=c++20", "-O2", "-o", "server", "server.cc"], cwd=folder, check=True)
        loads = {"compilers": [sys.executable, "compilers.py"]}
        for rounds, work in ((150, 1_500_000), (800, 270_000), (3000, 65_000)):
            loads[f"server {rounds}"] = ["./server", rounds, work]
        modes = recorders(given.perf)
        for title, load in loads.items():
            times = {mode: [] for mode in modes}
            switches = []
            for _ in range(given.runs):
                for mode, recorder in modes.items():
                    seconds, count = measure(folder, load, recorder)
                    times[mode].append(seconds)
                    switches += [count] if mode == "alone" else []
            alone = statistics.median(times["alone"])
            parts = [f"{mode} {100 * (statistics.median(found) / alone - 1):+.1f} %" for mode, found in times.items() if mode != "alone"]
            print(f"{title}: {alone:.2f} s, {statistics.median(switches):,.0f} switches a second; {', '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
