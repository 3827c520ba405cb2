// Options about what every sample holds and how often it is taken: -g, -F, -c, -d, -b and the like.
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
  bool user_callchains = false, kernel_callchains = false;  // of a stack only that part
  bool all_user = false, all_kernel = false;                // whatever the events' own letters say
  bool data_addresses = false;                              // with the mappings of data
  std::uint64_t more_fields = 0;                            // of every sample: bits of abi::SampleType
  std::uint64_t registers_user = 0;                // of the user's side, when it was left: a bit each
  std::uint64_t registers_intr = 0;                // as the sample found them
  std::uint64_t branches = 0;                      // perf_event_attr.branch_sample_type
  bool counts_of_threads = false;                  // what each thread counted, when it ends
  bool switches = false;                           // a record of each switch between threads
  bool build_ids = true;                           // of what is mapped
  std::optional<int> clock;                        // for clock_gettime(); nothing: the kernel's perf clock
  std::optional<std::uint64_t> frequency, period;  // Hz; events
  bool most_frequent = false;                      // -F max
  bool strict_frequency = false;                   // more than the kernel allows is an error
  bpf::EventRate rate_of_objects;                  // how many events of BPF objects
  bool show_registers = false;                     // and nothing else
};

// Appends the rows of these options; they set `options`, and append events with their filters to `events`.
// Both must outlive the parsing.
void add_sampling_rows(std::vector<cli::Option>& rows, SamplingOptions& options,
                       std::vector<EventRequest>& events);

// Adds the events of one -e.
Result<> add_events(std::vector<EventRequest>& events, std::string_view text);

// Which of them exclude each other.
Result<> check_sampling(const SamplingOptions& options);

}  // namespace tacho::record
