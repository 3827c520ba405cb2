// Threads with odd names, a child with another, and code made at run time with its map for perf.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char* const kNames[] = {"one two", "a/b:c", "semi;colon", "\xd1\x84\xd1\x83", "1234", "tab\there"};

__attribute__((noinline)) static unsigned long work(unsigned long seed) {
  const clock_t start = clock();
  while (clock() - start < CLOCKS_PER_SEC / 5)
    for (int i = 0; i < 1000; ++i) seed = seed * 6364136223846793005ul + 1;
  return seed;
}
static void* run(void* name) {
  prctl(PR_SET_NAME, name);
  return (void*)work(1);
}

// mov ecx, edi; loop: dec ecx; jnz loop; ret
static const unsigned char kLoop[] = {0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static void run_made_code(void) {
  unsigned char* code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code + 64, kLoop, sizeof kLoop);
  char name[64];
  snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
  FILE* map = fopen(name, "w");
  fprintf(map, "%lx %zx made::loop(int) [tier 2]\n", (unsigned long)(code + 64), sizeof kLoop);
  fclose(map);
  puts(name);
  fflush(stdout);
  for (int i = 0; i < 3; ++i) ((void (*)(int))(code + 64))(100000000);
}

int main(void) {
  pthread_t threads[sizeof kNames / sizeof *kNames];
  for (unsigned i = 0; i < sizeof kNames / sizeof *kNames; ++i)
    pthread_create(&threads[i], 0, run, (void*)kNames[i]);
  for (unsigned i = 0; i < sizeof kNames / sizeof *kNames; ++i) pthread_join(threads[i], 0);
  if (fork() == 0) {
    prctl(PR_SET_NAME, "-child (x)");
    _exit(work(2) == 7);
  }
  wait(0);
  run_made_code();
  return 0;
}
