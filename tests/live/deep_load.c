// Stacks that only unwind information can follow: compiled without frame pointers. Threads recurse to a depth
// of 100 and spin there, from the program itself, from a callback of qsort(), from a signal handler, and from a
// library that is opened while the program runs.
//   deep_load SECONDS [LIBRARY]
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kDepth = 100 };

static volatile unsigned long sink;
static double end_of_load;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) void deep_leaf(void) {
  for (unsigned long i = 0; i < 20000; ++i) sink += i * i;
}

// Locals of different sizes, so that offsets differ from frame to frame.
__attribute__((noinline)) int deep_recurse(int depth, const char *text) {
  char copy[48];
  strncpy(copy, text, sizeof copy - 1);
  copy[47] = 0;
  if (depth == 0)
    deep_leaf();
  else
    sink += (unsigned long)deep_recurse(depth - 1, copy);
  return copy[depth % 48];
}

__attribute__((noinline)) int deep_compare(const void *a, const void *b) {
  deep_recurse(10, "compare");
  return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) void deep_sort(void) {
  int numbers[6] = {5, 3, 6, 1, 2, 4};
  qsort(numbers, 6, sizeof *numbers, deep_compare);
}

static void deep_handler(int number) {
  (void)number;
  deep_recurse(20, "signal");
}
__attribute__((noinline)) void deep_signal(void) { raise(SIGUSR1); }

static void *deep_thread(void *text) {
  while (now() < end_of_load) {
    deep_recurse(kDepth, text);
    deep_sort();
  }
  return NULL;
}

int main(int argc, char **argv) {
  end_of_load = now() + (argc > 1 ? atof(argv[1]) : 1);
  signal(SIGUSR1, deep_handler);
  pthread_t early, late;
  pthread_create(&early, NULL, deep_thread, "early");
  for (int i = 0; i < 20; ++i) deep_recurse(kDepth, "main");
  pthread_create(&late, NULL, deep_thread, "late");
  int (*from_library)(int, void (*)(void)) = NULL;
  if (argc > 2) {
    void *library = dlopen(argv[2], RTLD_NOW);
    if (library != NULL) from_library = (int (*)(int, void (*)(void)))dlsym(library, "deep_library");
    if (from_library == NULL) fprintf(stderr, "%s\n", dlerror());
  }
  while (now() < end_of_load) {
    deep_recurse(kDepth, "main");
    deep_signal();
    if (from_library != NULL) from_library(30, deep_leaf);
  }
  pthread_join(early, NULL);
  pthread_join(late, NULL);
  return 0;
}
