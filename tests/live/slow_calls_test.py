#!/usr/bin/env python3
"""tacho flamegraph --slowest, of a program in which every tenth request calls another function."""
import subprocess
import unittest

import programs
from flame_graph import Picture

PROGRAM = r"""
#include <time.h>
static volatile unsigned long sink;
static void spin(double ms) {
  struct timespec from, now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  do {
    for (int i = 0; i < 1000; ++i) sink += i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - from.tv_sec) * 1e3 + (now.tv_nsec - from.tv_nsec) / 1e6 < ms);
}
__attribute__((noinline)) void usual_path(void) { spin(2); __asm__ volatile(""); }
__attribute__((noinline)) void slow_path(void) { spin(40); __asm__ volatile(""); }
__attribute__((noinline)) void between_requests(void) { spin(1); __asm__ volatile(""); }
__attribute__((noinline)) int request(int n) {
  usual_path();
  if (n % 10 == 9) slow_path();
  return n + 1;
}
int main(void) {
  int sum = 0;
  for (int n = 0; n < 100; ++n) {
    sum += request(n);
    between_requests();
  }
  return sum == 0;
}
"""


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
class SlowCalls(programs.Scratch):
    def test_the_other_path_is_the_difference(self):
        (self.folder / "work.c").write_text(PROGRAM)
        subprocess.run(["cc", "-O1", "-fno-omit-frame-pointer", "-g", "-o", "work", "work.c"], check=True, cwd=self.folder)
        done = self.run_program(programs.BIN / "tacho-record", "-o", "c.data", "-F", "2999", "-g", "-e", "cpu-clock", "-e",
                                "calls/binary='./work',functions='request'/", "--", "./work", status=None)
        if b"carries no recorders" in done.stderr:
            self.skipTest(done.stderr.decode())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        picture = Picture(self.tacho("flamegraph", "-i", "c.data", "--slowest", "10%", "--min-width", "0",
                                     status=None).stdout.decode())
        self.assertRegex("\n".join(picture.notes), r"slow: 1\d of 100 intervals of call\.dur_ns, from [\d.]+ m?s up: \d+ samples")
        before, after = {}, {}
        for pane in picture.panes:
            for frame in pane:
                before[frame.name] = before.get(frame.name, 0) + frame.before
                after[frame.name] = after.get(frame.name, 0) + frame.after
        self.assertNotIn("between_requests", after)
        all_slow, all_others = (picture.panes[0][0].after, picture.panes[0][0].before)
        self.assertGreater(after["slow_path"] / all_slow, 0.5)
        self.assertGreater(before["usual_path"] / all_others, 0.5)
        self.assertLess(before.get("slow_path", 0) / all_others, after["slow_path"] / all_slow / 2)


if __name__ == "__main__":
    unittest.main()
