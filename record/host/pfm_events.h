// Events of processors by the names of their makers, through libpfm4 where it is installed:
// INST_RETIRED:ANY_P, skl::UOPS_ISSUED:ANY:c=1:u. It is loaded when such a name is looked for, and never
// before.
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
  // An error where it is not installed, or cannot be used.
  static Result<PfmLibrary> open();
  PfmLibrary(PfmLibrary&&) noexcept;
  PfmLibrary& operator=(PfmLibrary&&) = delete;
  ~PfmLibrary();

  // One event, as perf_event_attr needs it. The error is libpfm's.
  Result<EventRequest> event(const std::string& text) const;

  // Every event with each of its unit masks ("skl::INST_RETIRED:ANY_P"), of the processors there are here, or
  // of all that it knows.
  enum class Which : std::uint8_t { Here, All };
  using Seen = std::function<void(const std::string& name, const std::string& description)>;
  void each_event(Which which, const Seen& seen) const;

 private:
  struct State;
  explicit PfmLibrary(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// "inst_retired:any_p,{a,b}": events separated by commas, those in braces as a group.
Result<std::vector<EventRequest>> parse_pfm_events(std::string_view text);

}  // namespace tacho::record
