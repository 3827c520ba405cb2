// Control groups by name: whose processes alone an event is to take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/file.h"
#include "format/result.h"

namespace tacho::record {

// Where the hierarchy is mounted that perf events go by: that of the controller perf_event (version 1) when
// there is one, else version 2. `mountinfo`: the text of /proc/self/mountinfo. Empty: neither is mounted.
std::string cgroup_mount(std::string_view mountinfo);

// The same of this machine, now; an error where there is none.
Result<std::string> mounted_cgroups();
// All cgroups below a mount by their names, as "/system.slice/nginx.service", sorted; of very many the first.
std::vector<std::string> all_cgroups(const std::string& mount);

// The folder of a cgroup, as perf_event_open takes it. `name`: below `mount`, as /proc/PID/cgroup has it
// ("/system.slice/nginx.service", with or without the first slash), or the whole path. The error names those
// that look like it.
Result<format::Fd> open_cgroup(const std::string& mount, const std::string& name);

// A cgroup of version 2 as BPF programs know it.
struct CgroupNumber {
  std::uint64_t id = 0;
  std::uint16_t level = 0;  // folders above it; the root has none
};
// By its path below the mount of version 2. An error where the hierarchy is not seen from its root.
Result<CgroupNumber> number_of_cgroup(std::string_view path);

// "a,b,,c": names in the order of the events; an empty one stands for everybody.
std::vector<std::string> parse_cgroup_list(std::string_view text);

// The folders of all names, in their order; an empty name has none. Each as an Fd that may be empty.
Result<std::vector<format::Fd>> open_cgroups(const std::vector<std::string>& names);

}  // namespace tacho::record
