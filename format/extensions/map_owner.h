// Checks that a /tmp/perf-PID.map belongs to the process that was sampled: pids are reused, and everybody may
// write to /tmp.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "format/base/result.h"

namespace tacho::format {

// What is known of the process. Times in ns since 1970.
struct MapOwner {
  bool runs = false;
  std::optional<std::uint32_t> user;
  std::optional<std::int64_t> began, ended;
  std::int64_t start = 0;  // of one that runs: ns since the host's start, which no clock that is set changes
};

enum class MapTrust : std::uint8_t {
  Its,     // the process or root made it, while the process ran
  Unsure,  // nothing speaks against that, and not all of it is known
};

// Asked of an open file, which was opened through no link. The error says why the map is not the process's:
// it is another user's, older than the process, or was changed after its end.
Result<MapTrust> check_map(const struct stat& file, const MapOwner& process);

// A process of this host that runs or ran when the last sample of a capture was taken, at `last_sample` of
// the capture's clock (ns since the start of the host, or since 1970; 0: not known). `began`: when the
// capture says that it was forked; 0: it does not.
MapOwner owner_of_map(std::uint32_t pid, std::uint64_t began, std::uint64_t last_sample);

// A time of a capture's clock as ns since 1970; nothing when it is of another boot.
std::optional<std::int64_t> time_of_day(std::uint64_t time);

// The process that runs with that number now; nothing when none does.
std::optional<MapOwner> running_owner(std::uint32_t pid);

}  // namespace tacho::format
