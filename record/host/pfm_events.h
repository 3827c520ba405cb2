// CPU events by their vendors' names, through libpfm4 if it is installed: INST_RETIRED:ANY_P,
// skl::UOPS_ISSUED:ANY:c=1:u. The library is loaded when such a name is looked up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/events/event_request.h"

namespace tacho::record {

class PfmLibrary {
 public:
  // An error if it is not installed, or cannot be used.
  static Result<PfmLibrary> open();
  PfmLibrary(PfmLibrary&&) noexcept;
  PfmLibrary& operator=(PfmLibrary&&) = delete;
  ~PfmLibrary();

  // The perf_event_attr fields of one event. The error is libpfm's.
  Result<EventRequest> event(const std::string& text) const;

  // Every event with each of its unit masks ("skl::INST_RETIRED:ANY_P"): of the CPUs of this host, or of all
  // that libpfm knows.
  enum class Which : std::uint8_t { Here, All };
  using Seen = std::function<void(const std::string& name, const std::string& description)>;
  void each_event(Which which, const Seen& seen) const;

 private:
  struct State;
  explicit PfmLibrary(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// "inst_retired:any_p,{a,b}": events separated by commas, groups in braces.
Result<std::vector<EventRequest>> parse_pfm_events(std::string_view text);

}  // namespace tacho::record
