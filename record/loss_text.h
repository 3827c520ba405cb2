// What was lost, in words: of which event, on which CPU, and when.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "record/output/record_walk.h"

namespace tacho::record {

struct LossAt {
  std::string event;  // by its name, and its cgroup if it has one: foreign
  int cpu = -1;       // -1: wherever its thread ran
  std::uint64_t lost = 0;
};

// "sched:sched_switch 1200 (CPU 0: 900, CPU 1: 300); cpu-clock 3 (CPU 1)": the heaviest first, and of many
// events the first ones.
std::string where_lost(std::span<const LossAt> losses);

// "from 0.120 s to 2.400 s after the first sample", by the times at which the kernel told of losses: each is
// that of the first record that found room again. Empty: it told of none, as at the very end.
std::string when_lost(const RecordCounts& counts);

}  // namespace tacho::record
