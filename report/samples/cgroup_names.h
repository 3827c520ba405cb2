// Paths of cgroups by id, from the capture's CGROUP records.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/base/seeded_hash.h"

namespace tacho::report {

// The reading thread adds names while other threads look them up. The first record of an id counts, so a
// returned name stays valid.
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
