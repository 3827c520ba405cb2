// A process whose first thread ends at once: another one goes on for 4 seconds, in calls without frame pointers.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sum;

__attribute__((noinline)) static void late_leaf(unsigned long count) {
  for (unsigned long i = 0; i < count; ++i) sum += i * i;
}
__attribute__((noinline)) static unsigned long late_caller(unsigned long count) {
  late_leaf(count);
  return sum;
}

static void* go_on(void* unused) {
  (void)unused;
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    late_caller(100000);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < 4);
  exit(0);
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, go_on, NULL) != 0) return 1;
  pthread_exit(NULL);
}
