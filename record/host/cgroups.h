// The cgroups there are, as records: samples carry their numbers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/byte_writer.h"

namespace tacho::record {

struct Cgroup {
  std::uint64_t id = 0;
  std::string path;  // below the mount: "/", "/user.slice"
};
// Those below `mount`, parents first; at most `most`.
std::vector<Cgroup> cgroups_below(const std::string& mount, std::size_t most = 1 << 16);

// Those of the hierarchy that perf events go by; none where it is not mounted.
std::vector<Cgroup> all_cgroups();

// Appends a CGROUP record of each; nothing where no hierarchy is mounted. `trailer`: bytes of sample_id_all.
void write_cgroup_records(format::ByteWriter& out, std::size_t trailer);

}  // namespace tacho::record
