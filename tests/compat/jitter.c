// A process with code made at run time, told in a jitdump as a JIT compiler tells it: jitter FOLDER writes
// FOLDER/jit-PID.dump, maps it as perf asks, and runs what it describes. Three functions, the third in the place of
// the first, and then the second once more, moved.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// Counts down from 2^26: mov $0x4000000,%ecx; 1: dec %ecx; jnz 1b; ret
static const unsigned char kCode[] = {0xb9, 0, 0, 0, 0x04, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static FILE *dump;

static void u32(uint32_t value) { fwrite(&value, sizeof value, 1, dump); }
static void u64(uint64_t value) { fwrite(&value, sizeof value, 1, dump); }

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void prefix(uint32_t id, size_t body) {
  u32(id);
  u32((uint32_t)(16 + body));
  u64(now());
}

static void load(const char *name, const unsigned char *code, uint64_t index) {
  prefix(0, 40 + strlen(name) + 1 + sizeof kCode);
  u32((uint32_t)getpid());
  u32((uint32_t)getpid());
  u64((uintptr_t)code);
  u64((uintptr_t)code);
  u64(sizeof kCode);
  u64(index);
  fwrite(name, strlen(name) + 1, 1, dump);
  fwrite(code, sizeof kCode, 1, dump);
  fflush(dump);
}

static void move(const unsigned char *from, const unsigned char *to, uint64_t index) {
  prefix(1, 48);
  u32((uint32_t)getpid());
  u32((uint32_t)getpid());
  u64((uintptr_t)to);
  u64((uintptr_t)from);
  u64((uintptr_t)to);
  u64(sizeof kCode);
  u64(index);
  fflush(dump);
}

static void run(const unsigned char *code) { ((void (*)(void))(uintptr_t)code)(); }

int main(int argc, char **argv) {
  char path[4096];
  snprintf(path, sizeof path, "%s/jit-%d.dump", argc > 1 ? argv[1] : ".", getpid());
  const int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0666);
  if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) return 1;
  dump = fdopen(fd, "w");
  u32(0x4A695444);
  u32(1);
  u32(40);
  u32(62);
  u32(0);
  u32((uint32_t)getpid());
  u64(now());
  u64(0);

  unsigned char *area =
      mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) return 1;
  for (size_t at = 0; at < 3 * 256; at += 256) memcpy(area + at, kCode, sizeof kCode);
  load("first(int)", area, 0);
  run(area);
  load("_ZN3jit6secondEv", area + 256, 1);
  run(area + 256);
  load("third", area, 2);
  run(area);
  move(area + 256, area + 512, 1);
  run(area + 512);
  prefix(3, 0);
  return fclose(dump) != 0;
}
