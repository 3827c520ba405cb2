#!/usr/bin/env python3
"""A long system-wide recording while processes start and exit: memory and descriptors of the recorder
do not grow, its output is rotated, and every started process is recorded once.

TACHO_SOAK_SECONDS is how long (default 6; script/torture: 600), TACHO_SOAK_FORKS how many processes start in a second."""
import contextlib
import os
import re
import subprocess
import time
import unittest
from pathlib import Path

import programs

SECONDS = float(os.environ.get("TACHO_SOAK_SECONDS", 6))
FORKS = int(os.environ.get("TACHO_SOAK_FORKS", 1000))
# Seconds: some hundred files at most, however long it takes. Where memory at rest is compared, a file must be long enough for
# the recorder to be at rest in it, on a busy machine as well.
PERIOD = max(3 if SECONDS >= 30 else 1, round(SECONDS / 200))
FORKER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* forks ARGV[1] children a second for ARGV[2] seconds, evenly, and prints how many there were */
int main(int argc, char** argv) {
  const long rate = argc > 1 ? atol(argv[1]) : 1000, count = argc > 2 ? (long)(atof(argv[2]) * rate) : rate;
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) _exit(0);
    if (waitpid(child, 0, 0) != child) return 2;
    next.tv_nsec += 1000000000 / rate;
    if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec += 1; }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
  }
  printf("%ld\n", count);
  return 0;
}
"""


@programs.needs_root
class Soak(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"soak_forker": FORKER})

    def usage(self, process):
        """(private memory in KiB, number of descriptors without pinned files (O_PATH), of which others' programs decide)."""
        folder = Path(f"/proc/{process.pid}")
        own = re.search(r"RssAnon:\s+(\d+) kB", (folder / "status").read_text())
        descriptors = 0
        for entry in (folder / "fdinfo").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                descriptors += int(re.search(r"flags:\s+(\d+)", entry.read_text()).group(1), 8) & os.O_PATH == 0
        return int(own.group(1)), descriptors

    def cpu_seconds(self, process):
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_soak(self):
        words = [programs.BIN / "tacho-record", "-a", "-e", "sched:sched_process_fork", f"--switch-output={PERIOD}s", "--switch-max-files=1000",
                 "-o", "soak.data"]
        with open(self.folder / "log", "wb") as log:
            recorder = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        self.addCleanup(lambda: recorder.poll() is None and (recorder.kill(), recorder.wait()))
        while b"begun" not in (self.folder / "log").read_bytes():
            self.assertIsNone(recorder.poll(), (self.folder / "log").read_text())
            time.sleep(0.05)
        began = time.monotonic()
        load = subprocess.Popen([self.built / "soak_forker", str(FORKS), str(SECONDS)], stdout=subprocess.PIPE)
        self.addCleanup(lambda: load.poll() is None and (load.kill(), load.wait()))
        seen = []
        while load.poll() is None:
            time.sleep(min(1, SECONDS / 10))
            seen.append(self.usage(recorder))
        forks = int(load.stdout.read())
        load.stdout.close()
        took, cpu = time.monotonic() - began, self.cpu_seconds(recorder)
        recorder.send_signal(2)
        self.assertEqual(recorder.wait(60), 0)
        self.check_loss(forks, load.pid)
        # Memory may grow in the first tenth.
        settled = seen[len(seen) // 10 + 1:]
        memory, descriptors = [own for own, _ in settled], [count for _, count in settled]
        print(f"{forks} processes in {took:.0f} s: {min(memory)} to {max(memory)} KiB of memory, {min(descriptors)} to "
              f"{max(descriptors)} descriptors, {100 * cpu / took:.2f} % of a processor, {len(self.files())} files")
        self.assertLessEqual(max(descriptors) - min(descriptors), 1, "the next file is open before the last one is closed")
        # The second half against the first, what is always there and what comes with every new file: what grows without
        # end shows in one of them. In a few seconds the first new files still make their room.
        half = len(memory) // 2
        for extreme in (min, max) if SECONDS >= 30 else ():
            self.assertLessEqual(extreme(memory[half:]), 1.05 * extreme(memory[:half]) + 512)

    def files(self):
        return sorted(self.folder.glob("soak.data*"))

    def forks_in(self, file, forker):
        text = self.run_program(programs.BIN / "tacho-report", "script", "-i", file, "-F", "pid,trace").stdout
        return len(re.findall(rb"(?m)^ *%d .*child_pid=" % forker, text))

    def check_loss(self, forks, forker):
        """Every fork of the load is a sample in one of the files, or counted in the reported loss."""
        self.assertGreater(len(self.files()), SECONDS / PERIOD / 4)
        samples = sum(self.forks_in(file, forker) for file in self.files())
        lost = int(re.search(rb"\(\d+ samples, (\d+) lost\)", (self.folder / "log").read_bytes()).group(1))
        self.assertGreaterEqual(samples + lost, forks)
        if lost == 0:
            self.assertEqual(samples, forks)


if __name__ == "__main__":
    programs.main()
