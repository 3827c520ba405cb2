#!/usr/bin/env python3
"""Wakers of a thread, recorded by recorders and by the kernel's tracepoints."""
import csv
import io
import os
import subprocess
import unittest

import programs

# A thread sleeps and then wakes main, COUNT times; main waits in waits(), and is woken by wakes(). They make system calls
# directly: functions of the C library have no frame pointers.
WAITS = 12
PROGRAM = r"""
#include <pthread.h>
#include <time.h>
static int ready;
static inline __attribute__((always_inline)) long call(long number, const void *one, long two, long three) {
  register long four __asm__("r10") = 0;
  long ret;
  __asm__ volatile("syscall" : "=a"(ret) : "a"(number), "D"(one), "S"(two), "d"(three), "r"(four) : "rcx", "r11", "memory");
  return ret;
}
__attribute__((noinline)) void wakes(void) {
  __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
  call(202, &ready, 1, 1);  // futex(FUTEX_WAKE)
}
__attribute__((noinline)) void naps(void) {
  struct timespec nap = {0, 10000000};
  call(35, &nap, 0, 0);  // nanosleep
}
__attribute__((noinline)) void *helps(void *unused) {
  for (int i = 0; i < COUNT; ++i) {
    naps();
    wakes();
  }
  return unused;
}
__attribute__((noinline)) void waits(void) {
  while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST)) call(202, &ready, 0, 0);  // futex(FUTEX_WAIT)
  __atomic_store_n(&ready, 0, __ATOMIC_SEQ_CST);
}
int main(void) {
  pthread_t helper;
  pthread_create(&helper, 0, helps, 0);
  for (int i = 0; i < COUNT; ++i) waits();
  pthread_join(helper, 0);
  return 0;
}
"""


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc") and os.uname().machine == "x86_64", "needs cc, and x86-64")
class Wakers(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "pair.c").write_text(PROGRAM)
        frames = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-fno-optimize-sibling-calls"]
        subprocess.run(["cc", "-O1", "-g", *frames, f"-DCOUNT={WAITS}", "-pthread", "-o", "pair", "pair.c"], cwd=self.folder,
                       check=True)

    def record(self, *words, program=("./pair",)):
        # Read here, so not packed, which takes minutes on an emulated machine.
        done = self.run_program(programs.BIN / "tacho-record", "--no-pack", "-o", "w.data", *words, "--", *program, status=None)
        said = done.stderr.decode()
        if "carries no recorders" in said:
            self.skipTest(said)
        self.assertEqual(done.returncode, 0, said)

    def folded(self, *words):
        done = self.tacho("folded", "-i", "w.data", *words, status=None)
        self.assertIn(done.returncode, (0, 3), done.stderr.decode())
        return {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in done.stdout.decode().splitlines())}

    def reported(self, *words):
        """{(thread, function): nanoseconds with children} from a report."""
        done = self.tacho("report", "-i", "w.data", "--csv", "-s", "comm,sym", *words, status=None)
        self.assertIn(done.returncode, (0, 3), done.stderr.decode())
        # A CSV cell that starts with '-' gets an apostrophe, for spreadsheets.
        return {(row["comm"], row["symbol"].removeprefix("'")): int(row["children_period"])
                for row in csv.DictReader(io.StringIO(done.stdout.decode()))}

    def check(self):
        lines = self.folded("--wakers")
        # report adds up the same waits by function: waits below waits() and, in their chains, waits ended by wakes().
        rows, alone = self.reported("--wakers"), self.reported("--off-cpu")
        below = lambda name: sum(time for stack, time in lines.items() if stack.startswith("pair;") and f";{name};" in stack)
        self.assertGreater(rows["pair", "wakes"], 5_000_000, rows)
        for name in ("waits", "wakes", "naps", "-- waker --"):
            self.assertEqual(rows.get(("pair", name), 0), below(name), name)
        self.assertEqual(alone["pair", "waits"], rows["pair", "waits"])
        self.assertNotIn(("pair", "-- waker --"), alone)
        self.assertGreater(rows["pair", "[timer]"], 0)
        # main waits for about as long as the other thread sleeps; the signal ends the wait.
        of_main = {stack: time for stack, time in lines.items() if ";waits;" in stack and ";wakes;" in stack.split("-- waker --")[-1]}
        self.assertGreater(sum(of_main.values()), 5_000_000, lines)
        for stack in of_main:
            waiter, waker = stack.split(";-- waker --;")
            self.assertTrue(waiter.startswith("pair;"))
            self.assertTrue(waker.endswith(";pair"), stack)
            self.assertLess(waker.index("futex_wake"), waker.index(";wakes;"), "the waker's leaf stands first")
        # A timer interrupt ends the sleep, in any thread.
        naps = [stack for stack in lines if ";naps;" in stack.split("-- waker --")[0]]
        self.assertTrue(any(stack.endswith(";[timer]") for stack in naps), naps)
        # The chain: main was woken by the other thread, which was woken by a timer.
        self.assertTrue(any(";waits;" in stack and stack.count("-- waker --") == 2 and stack.endswith(";[timer]")
                            for stack in self.folded("--wakers=2")))
        self.assertLessEqual(max(stack.count("-- waker --") for stack in self.folded("--wakers=3")), 3)

    def test_of_recorders(self):
        self.record("-e", "offcpu,waking")
        self.check()
        table = self.tacho("table", "-i", "w.data", "--event", "waking", "--by", "woken", "--columns", "count", "--csv").stdout.decode()
        self.assertGreaterEqual(int(table.splitlines()[1].split(",")[1]), WAITS)  # at least the sleeps

    def processors_whose_idle_task_is_heard(self):
        """Where the kernel counts the switches of its idle task. Linux 6.18 has been seen to count none of them on one of two
        processors, for hours and for perf as well, while it counted every other task's there."""
        self.record("-a", "--call-graph", "fp", "-e", "sched:sched_switch", program=("sleep", "0.5"))
        lines = self.tacho("script", "-i", "w.data", "-F", "comm,cpu").stdout.decode().splitlines()
        return sorted({int(cpu.strip("[]")) for comm, cpu in (line.split() for line in lines if len(line.split()) == 2)
                       if comm == "swapper"} & os.sched_getaffinity(0))

    def test_of_the_kernels_tracepoints(self):
        heard = self.processors_whose_idle_task_is_heard()
        if not heard:
            self.skipTest("the kernel counts no switch of its idle task")
        self.record("-a", "-g", "-e", "sched:sched_switch,sched:sched_waking",
                    program=("taskset", "-c", ",".join(map(str, heard)), "./pair"))
        self.check()


if __name__ == "__main__":
    programs.main()
