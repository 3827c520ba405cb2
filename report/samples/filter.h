// Which samples a view sees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/environment.h"
#include "format/result.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

struct Filter {
  // Empty lists let everything through.
  std::vector<std::string> events, comms;
  std::vector<std::uint32_t> pids, tids, cpus;
  struct TimeRange {
    std::uint64_t first = 0, last = ~std::uint64_t{0};  // ns, both inside
  };
  std::vector<TimeRange> times;  // ascending, not overlapping

  bool accepts(const ResolvedSample& sample) const;
  bool accepts_cpu(std::uint32_t cpu) const;
  bool accepts_time(std::uint64_t time) const;
};

// "0,3-5" -> 0 3 4 5. `option` names it in messages.
Result<std::vector<std::uint32_t>> parse_number_list(std::string_view option, std::string_view text);
// "dd,cat"
std::vector<std::string> parse_name_list(std::string_view text);
// "1.5,2.25" (seconds; either side may be empty), or parts of the capture: "0%-50%", "10%/2", several by
// commas. Parts need the first and the last time, which a closed capture's header holds.
Result<std::vector<Filter::TimeRange>> parse_times(std::string_view text,
                                                   const format::Environment& environment);

}  // namespace tacho::report
