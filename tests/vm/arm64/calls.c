// calls SECONDS: recursion, qsort() and bsearch() callbacks, a signal's handler (also on a stack of its own), a thread, frames
// of a size known at run time and tail calls: stacks for captures.py. Without frame pointers it is harder to unwind.
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
enum { kDepth = 30, kNumbers = 16, kSpin = 20000 };
static double end_of_load;
static volatile unsigned long sink;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

NOINLINE void leaf(void) {  // keeps nothing on the stack
  for (int i = 0; i < kSpin; ++i) sink += (unsigned long)i;
}
NOINLINE int middle(int value) {
  leaf();
  return (int)sink + value;
}
NOINLINE int recurse(int depth) { return depth == 0 ? middle(depth) : recurse(depth - 1) + depth; }
NOINLINE int saves_many(int a, int b, int c, int d) {  // callee-saved registers, and floating point ones
  double x = a * 1.5, y = b * 2.5;
  const int e = middle(a), f = middle(b), g = middle(c), h = middle(d);
  x += middle(e);
  y += middle(f);
  return e + f + g + h + (int)(x * y);
}
NOINLINE int variable(int size) {  // a frame of a size known at run time: found by x29 alone
  char *text = alloca((size_t)size);
  memset(text, size, (size_t)size);
  const int got = saves_many(text[0], 2, 3, 4);
  return got + text[size - 1];
}
NOINLINE int large(int depth) {  // more than an immediate can subtract from sp
  volatile char kept[9000];
  kept[depth] = (char)depth;
  return recurse(depth) + kept[depth];
}
static int compare(const void *a, const void *b) {
  leaf();
  return *(const int *)a - *(const int *)b;
}
NOINLINE int sorts(int seed) {
  int numbers[kNumbers];
  for (int i = 0; i < kNumbers; ++i) numbers[i] = (seed + i * 7919) % 61;
  qsort(numbers, kNumbers, sizeof *numbers, compare);
  return bsearch(&numbers[3], numbers, kNumbers, sizeof *numbers, compare) != NULL;
}
static void on_signal(int number) { recurse(number % 8); }
static void on_own_stack(int number) { variable(number * 16); }
NOINLINE int interrupted(int depth) {
  if (depth > 0) return interrupted(depth - 1) + 1;
  raise(SIGUSR1);
  return raise(SIGUSR2);
}
NOINLINE int last_call(int depth) { return large(depth); }

NOINLINE void round_of_calls(void) {
  recurse(kDepth);
  variable(100);
  last_call(5);
  sorts(3);
  interrupted(4);
}

static void *thread(void *unused) {
  while (now() < end_of_load) round_of_calls();
  return unused;
}

int main(int argc, char **argv) {
  end_of_load = now() + (argc > 1 ? atof(argv[1]) : 1);
  const stack_t own = {.ss_sp = malloc(1 << 17), .ss_size = 1 << 17};
  sigaltstack(&own, NULL);
  struct sigaction plain = {.sa_handler = on_signal}, other = {.sa_handler = on_own_stack, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &plain, NULL);
  sigaction(SIGUSR2, &other, NULL);
  pthread_t second;
  pthread_create(&second, NULL, thread, NULL);
  while (now() < end_of_load) round_of_calls();
  pthread_join(second, NULL);
  return 0;
}
