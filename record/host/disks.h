// The disks of this host by number: tracepoints of block I/O know numbers alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"

namespace tacho::record {

struct BlockDevice {
  std::uint32_t dev = 0;  // as in the kernel: major number << 20 | minor number
  std::string name;
  std::string disk;  // of a partition, whose requests are that disk's; empty: it is no partition
};

// All of `partitions`, the text of /proc/partitions. `folder`: where the kernel describes them.
std::vector<BlockDevice> block_devices(std::string_view partitions,
                                       const std::string& folder = "/sys/class/block");

// The disk that somebody names, also as /dev/NAME.
Result<BlockDevice> disk_named(const std::vector<BlockDevice>& devices, std::string_view name);

}  // namespace tacho::record
