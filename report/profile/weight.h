// The weight of a sample: the event's period, 1, or a field of its payload or tracepoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/diagnostics.h"
#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// The field named by --weight; without a name, the one tagged role:weight. Null: there is none.
const PayloadField* weight_field(const PayloadSchema* schema, std::string_view name);

// Samples that a field of the payload cannot weigh. They are left out.
struct Unweighed {
  std::uint64_t damaged = 0;   // the payload is too short for the field
  std::uint64_t negative = 0;  // the field is negative
  void report(format::Diagnostics& diagnostics) const;
};

// The weight of one sample: the event's period, 1, or a field of its payload or tracepoint.
class WeightChoice {
 public:
  // `what`: "period", "samples" or a field's name; empty: the payload's field tagged role:weight, if there is
  // one, else the period. The events must be known, and `schemas` must outlive this. `keeps_zero`: a period
  // of 0 is one, as in perf, also of BPF programs.
  WeightChoice(std::string_view what, std::size_t events, EventSchemas& schemas, bool keeps_zero = false);

  // nullopt: the field is unweighed(), or the event has no such field.
  std::optional<std::uint64_t> of(const ResolvedSample& sample);

  // Whether every sample counts for its period or for 1; and the weight of an event's samples in that case.
  bool is_of_sums() const;
  std::uint64_t of_sum(std::size_t event, std::uint64_t period, std::uint64_t samples) const {
    return event < by_event_.size() && by_event_[event].kind == Kind::One ? samples : period;
  }
  // Whether it reads fields of payloads.
  bool reads_payloads() const;
  std::uint64_t unreadable() const { return unreadable_; }  // samples of events without the field
  const Unweighed& unweighed() const { return unweighed_; }
  // The fields that were chosen because of their role, for a note; empty: none.
  std::string chosen_by_role() const;

 private:
  enum class Kind : std::uint8_t { Period, One, Field, None };
  struct Choice {
    Kind kind = Kind::Period;
    const PayloadField* field = nullptr;
    bool is_by_role = false;
  };
  bool keeps_zero_;
  std::vector<Choice> by_event_;
  std::uint64_t unreadable_ = 0;
  Unweighed unweighed_;
};

}  // namespace tacho::report
