// Options about the fields and the rate of samples: -g, -F, -c, -d, -b and the like.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bpf/user_object.h"
#include "cli/options.h"
#include "format/base/result.h"
#include "record/events/event_spec.h"
#include "record/events/sample_fields.h"

namespace tacho::record {

struct SamplingOptions {
  StackOptions stacks;
  bool user_callchains = false, kernel_callchains = false;  // only this part of a stack
  bool all_user = false, all_kernel = false;                // override the events' modifiers
  bool data_addresses = false;                              // and data mappings
  std::uint64_t more_fields = 0;                   // further fields of every sample: bits of abi::SampleType
  std::uint64_t registers_user = 0;                // perf_event_attr.sample_regs_user
  std::uint64_t registers_intr = 0;                // perf_event_attr.sample_regs_intr
  std::uint64_t branches = 0;                      // perf_event_attr.branch_sample_type
  bool counts_of_threads = false;                  // -s: counts of each thread when it ends
  bool switches = false;                           // records of context switches
  bool build_ids = true;                           // of mapped files
  std::optional<int> clock;                        // for clock_gettime(); nullopt: the kernel's perf clock
  std::optional<std::uint64_t> frequency, period;  // Hz; events
  bool most_frequent = false;                      // -F max
  bool strict_frequency = false;                   // a frequency above the kernel's limit is an error
  bpf::EventRate rate_of_objects;                  // --sample-rate, --max-rate
  bool show_registers = false;                     // print the registers and exit
};

// Appends these options; they set `options`, and append events with their filters to `events`. Both must
// outlive the parsing.
void add_sampling_rows(std::vector<cli::Option>& rows, SamplingOptions& options,
                       std::vector<EventRequest>& events);

// Adds the events of one -e.
Result<> add_events(std::vector<EventRequest>& events, std::string_view text);
// The same for parsed events.
Result<> add_parsed(std::vector<EventRequest>& events, Result<std::vector<EventRequest>> parsed);

// Refuses options that exclude each other.
Result<> check_sampling(const SamplingOptions& options);

}  // namespace tacho::record
