#include "report/samples/cgroup_names.h"

namespace tacho::report {

void CgroupNames::add(std::uint64_t id, std::string_view path) {
  const std::lock_guard held(lock_);
  paths_.try_emplace(id, path);
}

std::string_view CgroupNames::find(std::uint64_t id) const {
  if (id == 0) return "N/A";
  const std::lock_guard held(lock_);
  const auto found = paths_.find(id);
  return found == paths_.end() ? std::string_view("unknown") : std::string_view(found->second);
}

}  // namespace tacho::report
