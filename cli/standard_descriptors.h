// For programs that are started with descriptor 0, 1 or 2 closed (`tacho record 2>&-`): the next opened file
// would get the free number, and messages for standard error would go into it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tacho::cli {

// Opens /dev/null for each closed descriptor of 0, 1 and 2: 0 for writing and the others for reading, so that
// its use still fails, and a lost result is an error. False: a system call failed.
inline bool take_standard_descriptors() {
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) != -1 || errno != EBADF) continue;
    const int flags = number == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != number) return false;  // open() returns the lowest free number
  }
  return true;
}

}  // namespace tacho::cli
