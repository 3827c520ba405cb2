// A capture of which only some processes are to be given away: what is of others goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"

namespace tacho::report {

class RedactProcesses {
 public:
  // None: all stay.
  explicit RedactProcesses(const std::vector<std::uint32_t>& pids) : pids_(pids.begin(), pids.end()) {}

  // Before anything else, every record: what the processes that stay have mapped.
  void see(const format::RecordView& record, const format::EventSet& events);
  // Records of others go, and so do samples that do not say whose they are, lists of threads and AUX traces.
  // Records that are of no process stay: the kernel's mappings and functions, cgroups, lost events.
  bool keeps(const format::RecordView& record, const format::EventSet& events) const;
  // Takes out perf maps of others, the packed symbols and build ids of files that no remaining process has
  // mapped, and lists of processes. The kernel's stay. An error when the symbol pack cannot be read.
  Result<> reduce(format::Features& features) const;

 private:
  bool is_kept(std::uint32_t pid) const { return pids_.contains(pid); }
  bool is_mapped(std::string_view path) const;
  bool keeps_own_record(const format::RecordView& record) const;
  Result<> reduce_pack(std::vector<std::byte>& section) const;

  std::unordered_set<std::uint32_t> pids_;
  std::unordered_set<std::string> mapped_;  // without " (deleted)"
};

}  // namespace tacho::report
