// Facts of samples from the records before them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "format/records/record.h"

namespace tacho::report {

// The number of recorded threads that run at the same time, from context switch records.
class Parallelism {
 public:
  // `processors`: the number of CPUs of the host; nullopt: unknown.
  explicit Parallelism(std::optional<std::uint32_t> processors = std::nullopt) : processors_(processors) {}
  // Sets it later.
  void limit(std::optional<std::uint32_t> processors) { processors_ = processors; }

  // Takes each record that is no sample, in the order of records and samples.
  void take_record(const format::Record& record);
  // From 1 to the number of CPUs.
  std::uint32_t now() const;

 private:
  // A command's events begin while it runs, without a switch to it. A process recorded by pid may have been
  // off the CPU at the start, so this may be off by one while it runs, as in perf.
  std::int64_t running_ = 1;
  std::optional<std::uint32_t> processors_;
};

// Facts from records other than samples, for the samples after them.
class RecordFacts {
 public:
  // Takes each record that is no sample, in the order of records and samples.
  void take_record(const format::Record& record);

 private:
  friend class SampleFacts;
  struct Cgroup {
    std::string path;
    std::uint64_t number = 0;  // of the path; 0: not numbered yet
  };
  Parallelism parallelism_;
  std::unordered_map<std::uint64_t, Cgroup> cgroups_;             // by id
  std::unordered_map<std::uint32_t, std::string> cgroup_spaces_;  // by tid
};

}  // namespace tacho::report
