// numbered_load COUNT [MICROSECONDS]: COUNT calls of getpriority(2), which refuses them; the second argument is the call's
// number, from 0. Of a capture of syscalls:sys_enter_getpriority it can be told which calls are missing.
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
  const long count = argc > 1 ? atol(argv[1]) : 1000;
  const long rest = argc > 2 ? atol(argv[2]) : 0;
  for (long i = 0; i < count; ++i) {
    syscall(SYS_getpriority, 77, i);
    if (rest > 0) usleep((useconds_t)rest);
  }
  return 0;
}
