// Checks that a /tmp/perf-PID.map belongs to the recorded process: pids are reused, and all users may write
// to /tmp.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "format/base/result.h"

namespace tacho::format {

// Facts of the process. Times in ns since 1970.
struct MapOwner {
  bool runs = false;
  std::optional<std::uint32_t> user;
  std::optional<std::int64_t> began, ended;
  std::int64_t start = 0;  // of a running process: ns since boot, independent of the time of day
};

enum class MapTrust : std::uint8_t {
  Its,     // made by the process's user or root while the process ran
  Unsure,  // perhaps: some facts are unknown
};

// `file`: status of the map, which was opened without following links. An error: it is of another user, older
// than the process, or was changed after its end.
Result<MapTrust> check_map(const struct stat& file, const MapOwner& process);

// A process of this host at the time of a capture's last sample, `last_sample` (ns since boot or since 1970;
// 0: unknown). `began`: when it was forked by the capture; 0: unknown.
MapOwner owner_of_map(std::uint32_t pid, std::uint64_t began, std::uint64_t last_sample);

// Converts a time of a capture's clock to ns since 1970; nullopt: it is of another boot.
std::optional<std::int64_t> time_of_day(std::uint64_t time);

// The running process with that pid; nullopt: none.
std::optional<MapOwner> running_owner(std::uint32_t pid);

}  // namespace tacho::format
