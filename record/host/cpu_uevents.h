// What the kernel tells at once of processors that come on line (udev hears the same).
#pragma once

#include <optional>
#include <vector>

#include "format/cursor.h"
#include "format/file.h"

namespace tacho::record {

// The CPU that came, if the message says that one did, and is the kernel's own: somebody may have it send
// others by /sys/devices/.../uevent.
std::optional<int> cpu_that_came(format::Bytes message);

class CpuUevents {
 public:
  // Where nothing is told (containers with users of their own), nobody is ever heard of.
  static CpuUevents open();
  // Since the last call, each as often as it came.
  std::vector<int> came();

 private:
  format::Fd socket_;
};

}  // namespace tacho::record
