// steady_calls RATE CALLS DEPTH WORK: calls getppid(2) CALLS times from DEPTH frames deep, RATE times (1,000 or more) a second,
// with WORK steps of arithmetic before each. Calls come in bursts of a millisecond, between which it sleeps; one that is late has
// no sleep. Says on standard error how many calls a second it came to: bench/unwind_cost.py records each call.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long kSecond = 1000000000, kBurstsASecond = 1000;

static __attribute__((noinline)) long call_at_depth(long depth) {
  const long parent = depth > 0 ? call_at_depth(depth - 1) : syscall(SYS_getppid);
  __asm__ volatile("" ::"r"(parent) : "memory");  // not a tail call
  return parent;
}

static void work(long steps) {
  unsigned long value = 1;
  for (long i = 0; i < steps; ++i) {
    value = value * 6364136223846793005ul + 1;
    __asm__ volatile("" : "+r"(value));
  }
}

static struct timespec after(struct timespec begin, long bursts) {
  const long ns = begin.tv_nsec + bursts % kBurstsASecond * (kSecond / kBurstsASecond);
  return (struct timespec){begin.tv_sec + bursts / kBurstsASecond + ns / kSecond, ns % kSecond};
}

int main(int argc, char **argv) {
  if (argc != 5 || atol(argv[1]) < kBurstsASecond) {
    fprintf(stderr, "steady_calls RATE CALLS DEPTH WORK: RATE is 1000 or more\n");
    return 2;
  }
  const long rate = atol(argv[1]), calls = atol(argv[2]), depth = atol(argv[3]), steps = atol(argv[4]);
  const long burst = rate / kBurstsASecond;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long done = 0, bursts = 1; done < calls; ++bursts) {
    for (long i = 0; i < burst && done < calls; ++i, ++done) {
      work(steps);
      call_at_depth(depth);
    }
    const struct timespec next = after(begin, bursts);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);  // returns at once when it is late
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / (double)kSecond;
  fprintf(stderr, "steady %.0f calls a second\n", (double)calls / seconds);
  return 0;
}
