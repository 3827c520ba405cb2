// worker_load MICROSECONDS: a second thread, named "worker", calls getppid(2) for ever and rests in between; the first
// only waits. Writes the thread's number to the file worker-tid.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static __attribute__((noinline)) void work(useconds_t rest) {
  for (;;) {
    syscall(SYS_getppid);
    usleep(rest);
  }
}

static void *run(void *argument) {
  pthread_setname_np(pthread_self(), "worker");
  FILE *file = fopen("worker-tid.part", "w");
  if (file == NULL) exit(1);
  fprintf(file, "%ld\n", (long)syscall(SYS_gettid));
  fclose(file);
  rename("worker-tid.part", "worker-tid");
  work(*(useconds_t *)argument);
  return NULL;
}

int main(int argc, char **argv) {
  useconds_t rest = argc > 1 ? (useconds_t)atol(argv[1]) : 500;
  pthread_t worker;
  if (pthread_create(&worker, NULL, run, &rest) != 0) return 1;
  pthread_join(worker, NULL);
  return 0;
}
