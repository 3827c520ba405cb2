#!/usr/bin/env python3
"""`tacho hist --between`: the time between two events, for waits whose durations the program prints."""
import re

import programs

LOAD = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
int main(void) {  /* a line for each wait: how long it was asked for, and how long it took from outside, in ns */
  for (int i = 0; i < 12; ++i) {
    struct timespec wait = {.tv_nsec = i % 2 ? 30000000 : 2000000};
    long begin = now();
    nanosleep(&wait, 0);
    printf("%ld %ld\n", wait.tv_nsec, now() - begin);
  }
  return 0;
}
"""
ENTER, EXIT = "syscalls:sys_enter_clock_nanosleep", "syscalls:sys_exit_clock_nanosleep"
ROW = re.compile(r"^ *(\d+) -> (\d+) *: (\d+) ", re.M)


@programs.needs_root
class Pairs(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"waits": LOAD})

    def test_waits_equal_the_programs_own_measurements(self):
        done = self.tacho("record", "-o", "out.data", "-e", ENTER, "-e", EXIT, "--", self.built / "waits")
        waits = [tuple(map(int, line.split())) for line in done.stdout.decode().splitlines()]
        self.assertEqual(len(waits), 12)
        shown = self.tacho("hist", "-i", "out.data", "--between", f"{ENTER},{EXIT}", "--linear", "500000", "--percentiles", "0,50,100")
        self.assertEqual(shown.stderr, b"")
        out = shown.stdout.decode()
        self.assertIn("ns, 12 values\n", out)
        rows = [tuple(map(int, row)) for row in ROW.findall(out)]
        self.assertEqual(sum(count for *_, count in rows), 12)
        # Every wait takes at least the requested time, and at most the time that the program measured.
        least, middle, most = [int(word.split()[1]) for word in out.splitlines()[-1].split(", ")]
        self.assertGreaterEqual(least, 2_000_000)
        self.assertGreaterEqual(most, 30_000_000)
        by_length = sorted(waits, key=lambda wait: wait[1])
        for value, bound in ((least, by_length[0][1]), (middle, by_length[5][1]), (most, by_length[-1][1])):
            self.assertLessEqual(value, bound * 129 / 128)
        self.assertGreaterEqual(sum(count for low, _, count in rows if low >= 29_500_000), 6)

    def test_kinds_of_times_and_threads_do_not_mix(self):
        """Two programs at once: each wait is paired with its own end."""
        self.tacho("record", "-o", "out.data", "-e", ENTER, "-e", EXIT, "--", "sh", "-c",
                   f"{self.built}/waits & {self.built}/waits > /dev/null; wait")
        out = self.tacho("hist", "-i", "out.data", "--between", f"{ENTER},{EXIT}", "--by", "tid", "--percentiles", "0").stdout.decode()
        self.assertEqual([line.rsplit(", ", 1)[1] for line in out.splitlines() if ": time since" in line], ["12 values"] * 2)
        self.assertTrue(all(int(line.split()[1]) >= 2_000_000 for line in out.splitlines() if line.startswith("p0")))


if __name__ == "__main__":
    programs.main()
