// Runs code in every kind of memory that is no plain file: anonymous, named, on the heap and the stack, shared, in a memfd,
// in a file that is gone, and over the place of other code.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <unistd.h>

enum { kSize = 65536 };
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

// mov rdi, rcx / dec rcx / jnz the dec / ret
static const uint8_t kLoop[] = {0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3};

static void run(void* place) {
  if (place == MAP_FAILED || place == (void*)-1) abort();
  memcpy((char*)place + 0x120, kLoop, sizeof kLoop);
  void (*loop)(uint64_t) = (void (*)(uint64_t))((char*)place + 0x120);
  loop(20u << 20);
}

static void* map(int flags, int fd) {
  return mmap(NULL, kSize, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);
}

static int file(const char* name, int is_gone) {
  const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0700);
  if (fd < 0 || ftruncate(fd, kSize) != 0) abort();
  if (is_gone) unlink(name);
  return fd;
}

int main(void) {
  run(map(MAP_PRIVATE | MAP_ANONYMOUS, -1));
  run(map(MAP_SHARED | MAP_ANONYMOUS, -1));

  void* const named = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, kSize, "jit arena");
  run(named);

  const int memory = memfd_create("code cache", 0);
  if (memory < 0 || ftruncate(memory, kSize) != 0) abort();
  run(map(MAP_SHARED, memory));
  run(map(MAP_SHARED, file("gone.bin", 1)));
  run(map(MAP_SHARED, file("kept.bin", 0)));
  run(map(MAP_PRIVATE, open("/dev/zero", O_RDWR)));
  run(shmat(shmget(IPC_PRIVATE, kSize, 0700), NULL, SHM_EXEC));

  char* const heap = (char*)(((uintptr_t)sbrk(4 * kSize) + 0xffff) & ~(uintptr_t)0xffff);
  if (mprotect(heap, kSize, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) abort();
  run(heap);

  // A mapping that another one covers in its middle.
  char* const whole = map(MAP_PRIVATE, file("kept.bin", 0));
  if (mmap(whole + kSize / 2, kSize / 4, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) ==
      MAP_FAILED)
    abort();
  run(whole + kSize / 2);
  run(whole + kSize / 2 + kSize / 4);
  run(whole);
  return 0;
}
