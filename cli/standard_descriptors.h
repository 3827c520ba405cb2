// Programs may be started with descriptor 0, 1 or 2 closed (`tacho record 2>&-`). The next file, pipe or
// event that is opened would get the free number, and a message meant for standard error would go into it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tacho::cli {

// Opens those of 0, 1 and 2 that are closed, so that no other file gets these numbers. Reading and writing
// them still fails as on a closed descriptor, so that a lost result is an error. False when the system
// refuses.
inline bool take_standard_descriptors() {
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) != -1 || errno != EBADF) continue;
    const int flags = number == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != number) return false;  // the lowest free number is the one given
  }
  return true;
}

}  // namespace tacho::cli
