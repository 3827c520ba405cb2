#include "report/profile/record_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <variant>

namespace tacho::report {

void Parallelism::take_record(const format::Record& record) {
  if (const auto* const change = std::get_if<format::SwitchRecord>(&record)) {
    // System-wide switches are of all threads, not of a command's only.
    if (!change->is_cpu_wide) running_ += change->is_out ? -1 : 1;
  } else if (const auto* const task = std::get_if<format::TaskRecord>(&record)) {
    // The kernel closes a thread's events before it leaves the CPU for the last time.
    if (task->is_exit) --running_;
  }
}

std::uint32_t Parallelism::now() const {
  const std::int64_t most = processors_.value_or(std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, std::min(running_, most)));
}

void RecordFacts::take_record(const format::Record& record) {
  parallelism_.take_record(record);
  if (const auto* const cgroup = std::get_if<format::CgroupRecord>(&record)) {
    cgroups_[cgroup->id] = {std::string(cgroup->path), 0};
  } else if (const auto* const spaces = std::get_if<format::NamespacesRecord>(&record)) {
    constexpr std::size_t kCgroup = 6;  // index among a thread's namespaces, two words each
    if (spaces->links.size() < 2 * kCgroup + 2) return;
    cgroup_spaces_[spaces->tid] =
        fmt::format("{}/{:#x}", spaces->links[2 * kCgroup], spaces->links[2 * kCgroup + 1]);
  }
}

}  // namespace tacho::report
