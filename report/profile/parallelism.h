// How many threads of what was recorded ran at once, by records of context switches.
#pragma once

#include <cstdint>
#include <optional>

#include "format/records/record.h"

namespace tacho::report {

class Parallelism {
 public:
  // `processors`: that the host had; nothing: not known.
  explicit Parallelism(std::optional<std::uint32_t> processors = std::nullopt) : processors_(processors) {}
  // The same, where it is known later.
  void limit(std::optional<std::uint32_t> processors) { processors_ = processors; }

  // A record that is no sample, in its place among them.
  void take(const format::Record& record);
  // At least 1, at most the processors.
  std::uint32_t now() const;

 private:
  // A command begins while it runs, with no switch to it. Who was recorded by its number may have been off
  // the processor when the recording began, so this may be off by one for as long as it runs, as in perf.
  std::int64_t running_ = 1;
  std::optional<std::uint32_t> processors_;
};

}  // namespace tacho::report
