#!/usr/bin/env python3
"""Wall graphs of a real program: the times of its threads are known from /proc/.../schedstat, and
the widths of frames are these times."""
import os
import re
import subprocess

import programs

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}
static void __attribute__((noinline)) spins(double ms) {
  double end = now(CLOCK_THREAD_CPUTIME_ID) + ms;
  while (now(CLOCK_THREAD_CPUTIME_ID) < end)
    for (volatile int i = 0; i < 10000; i++);
}
static void pin(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof set, &set);
}
/* NAME THREAD LIFE ON-CPU RUNNABLE, in milliseconds. */
static void tell(const char *name, double begin) {
  unsigned long long ran = 0, waited = 0;
  char line[200];
  FILE *file = fopen("/proc/thread-self/schedstat", "r");
  if (fscanf(file, "%llu %llu", &ran, &waited) != 2) return;
  fclose(file);
  snprintf(line, sizeof line, "%s %d %.3f %.3f %.3f\n", name, (int)syscall(SYS_gettid), now(CLOCK_MONOTONIC) - begin,
           ran * 1e-6, waited * 1e-6);
  if (write(1, line, strlen(line)) < 0) return;
}
static void *spinner(void *name) {
  double begin = now(CLOCK_MONOTONIC);
  prctl(PR_SET_NAME, name);
  pin();
  spins(150);
  tell(name, begin);
  return 0;
}
static void *sleeper(void *name) {
  double begin = now(CLOCK_MONOTONIC);
  prctl(PR_SET_NAME, name);
  for (int i = 0; i < 10; i++) {
    spins(2);
    usleep(20000);
  }
  tell(name, begin);
  return 0;
}
static void *locker(void *name) {
  double begin = now(CLOCK_MONOTONIC);
  prctl(PR_SET_NAME, name);
  pthread_mutex_lock(&mutex);
  spins(10);
  pthread_mutex_unlock(&mutex);
  tell(name, begin);
  return 0;
}
int main(void) {
  pthread_t threads[4];
  pthread_mutex_lock(&mutex);
  pthread_create(&threads[0], 0, spinner, "spin-a");
  pthread_create(&threads[1], 0, spinner, "spin-b");
  pthread_create(&threads[2], 0, sleeper, "sleeper");
  pthread_create(&threads[3], 0, locker, "locker");
  usleep(150000);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
}
"""
MS = 1_000_000
TOLD = re.compile(rb"(?m)^(\S+) (\d+) ([\d.]+) ([\d.]+) ([\d.]+)$")


@programs.needs_root
class Wall(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"threads": PROGRAM})

    def recorded(self, *words):
        # With busy CPUs: this kernel does not record tracepoints in the idle thread (neither does perf).
        busy = [subprocess.Popen(["timeout", "60", "nice", "-n", "19", "sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
        try:
            return self.recorded_on_busy_cpus(*words)
        finally:
            for one in busy:
                one.terminate()
                one.wait()

    def recorded_on_busy_cpus(self, *words):
        done = self.tacho("record", "-o", "wall.data", *words, "--", self.built / "threads")
        reported = {match[0].decode(): [float(number) for number in match[1:]] for match in TOLD.findall(done.stdout)}
        self.assertEqual(set(reported), {"spin-a", "spin-b", "sleeper", "locker"}, done)
        times = {}
        for line in self.tacho("folded", "--wall", "--tid", "-i", "wall.data", status=None).stdout.decode().splitlines():
            stack, weight = line.rsplit(" ", 1)
            thread, rest = stack.split(";", 1)
            times.setdefault(int(thread.rsplit("/", 1)[1]), {})[rest] = int(weight) / MS
        return reported, times

    def check(self, reported, times, share):
        """`share`: tolerance, as a fraction of the thread's life."""
        for name, (tid, life, ran, waited) in reported.items():
            mine = times[int(tid)]
            sums = {}
            for rest, ms in mine.items():
                state = re.sub(r": .*", "", rest.split(";")[0].strip("[]")).replace("off-CPU", "blocked")  # without a stack
                sums[state] = sums.get(state, 0) + ms
            say = f"{name}: {sums} of {life} {ran} {waited}"
            # Before it begins to measure it waits for its first CPU, and once it has told its times it ends, when it
            # gets a CPU again: so much may be more than it told. A switch that was not recorded is said.
            edges, gone = sum(mine.values()) - life, sums.get("not recorded", 0)
            self.assertGreater(edges, -0.02 * life - 5, say)
            self.assertLess(edges, 300 + 0.05 * life, say)
            for state, right in (("on-CPU", ran), ("runnable", waited), ("blocked", max(0, life - ran - waited))):
                near = max(share * right, 0.4 * share * life, 5)
                self.assertGreater(sums.get(state, 0), right - near - gone, f"{state} of {say}")
                self.assertLess(sums.get(state, 0), right + near + max(edges, 0), f"{state} of {say}")
            self.assertLess(gone, 0.2 * life, say)
        spin_a, sleeper, locker = (times[int(reported[name][0])] for name in ("spin-a", "sleeper", "locker"))
        self.assertGreater(sum(ms for rest, ms in spin_a.items() if rest.startswith("[runnable]")), 100)  # beside spin-b
        self.assertGreater(sum(ms for rest, ms in spin_a.items() if rest.startswith("[on-CPU]") and ";spins" in rest), 100)
        self.assertGreater(sum(ms for rest, ms in sleeper.items() if rest.startswith("[blocked: sleep];")), 140)
        held = {rest: ms for rest, ms in locker.items() if rest.startswith("[blocked: lock];")}
        self.assertGreater(sum(held.values()), 100)
        self.assertTrue(any(";futex_wake;" in rest.split(";-- waker --;")[-1] and rest.endswith(";threads") for rest in held), held)

    def test_recorders_tell_what_threads_did(self):
        self.need_recorder("offcpu")
        self.check(*self.recorded("-g", "-F", "997", "-e", "cpu-clock,offcpu,waking,runqlat"), 0.06)

    def test_tracepoints_of_the_scheduler_tell_it(self):
        # A busy kernel throttles tracepoints, so some switches are missing.
        self.check(*self.recorded("-a", "-g", "-c", "1", "-e",
                                  "sched:sched_switch,sched:sched_waking,cpu-clock/freq=997/"), 0.4)


if __name__ == "__main__":
    programs.main()
