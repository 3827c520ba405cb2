// Paths of control groups by the ids that samples have, as the capture's CGROUP records tell them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/base/seeded_hash.h"

namespace tacho::report {

// Filled by the thread that reads, while another one may ask. An id is told once: what comes later under it
// is left aside, so what was given stays as it is.
class CgroupNames {
 public:
  CgroupNames() = default;
  CgroupNames(const CgroupNames&) = delete;
  CgroupNames& operator=(const CgroupNames&) = delete;

  void add(std::uint64_t id, std::string_view path);
  // "N/A" for 0, which is what events without the field have; "unknown" where no record told it. Valid as
  // long as this lives.
  std::string_view find(std::uint64_t id) const;

 private:
  mutable std::mutex lock_;
  std::unordered_map<std::uint64_t, std::string, format::SeededHash> paths_;
};

}  // namespace tacho::report
