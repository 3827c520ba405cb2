// getppid_load COUNT [DEPTH [MICROSECONDS]]: calls getppid(2) COUNT times from DEPTH frames deep, resting in between:
// a load of known size.
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static __attribute__((noinline)) long call_at_depth(int depth) {
  const long parent = depth > 0 ? call_at_depth(depth - 1) : syscall(SYS_getppid);
  __asm__ volatile("" ::"r"(parent) : "memory");  // not a tail call
  return parent;
}

int main(int argc, char **argv) {
  const long count = argc > 1 ? atol(argv[1]) : 1000;
  const int depth = argc > 2 ? atoi(argv[2]) : 4;
  const long rest = argc > 3 ? atol(argv[3]) : 0;
  for (long i = 0; i < count; ++i) {
    call_at_depth(depth);
    if (rest > 0) usleep((useconds_t)rest);
  }
  return 0;
}
