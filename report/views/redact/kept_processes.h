// Which records and sections of a capture belong to the processes that redact --pid keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record.h"

namespace tacho::report {

// redact --pid: drops what belongs to other processes. A process that was forked inherits the mappings and
// the name of its parent, and this one those of its own parent: what these had before the fork stays.
class KeptProcesses {
 public:
  // Empty: keep all processes.
  explicit KeptProcesses(const std::vector<std::uint32_t>& pids) : pids_(pids.begin(), pids.end()) {}

  // To be called first for every record: collects forks, and the files that processes map.
  void see(const format::RecordView& record, const format::EventSet& events);

  // To be called after the last see(): finds the parents of the kept processes, and the files of both.
  void finish();

  // False for records of other processes, samples without a pid, lists of threads and AUX traces. True for
  // records of no process: mappings and functions of the kernel, cgroups, lost events.
  bool keeps(const format::RecordView& record, const format::EventSet& events) const;

  // Drops perf maps of other processes, packed symbols and build ids of files that no kept process maps, and
  // lists of processes. Those of the kernel stay. An error when the symbol pack cannot be read.
  Result<> reduce(format::Features& features) const;

 private:
  bool is_kept(std::uint32_t pid) const { return pids_.contains(pid); }
  // Whether a kept process has the mappings and names that the process had at this time.
  bool lends(std::uint32_t pid, std::uint64_t time) const;
  bool is_mapped(std::string_view path) const;

  Result<> reduce_pack(std::vector<std::byte>& section) const;

  std::unordered_set<std::uint32_t> pids_;
  std::vector<format::TaskRecord> forks_;  // of processes
  // The time of the first mapping, by pid and file, without " (deleted)".
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> files_;
  std::unordered_map<std::uint32_t, std::uint64_t> lent_until_;  // time of the last fork, by the parent's pid
  std::unordered_set<std::string> mapped_;                       // files of kept processes and their parents
};

}  // namespace tacho::report
