// What one sample counts for: the event's period, 1, or a field of its payload or tracepoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/diagnostics.h"
#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

class WeightChoice {
 public:
  // `what`: "period", "samples" or a field's name; empty: the field that the payload tags role:weight, where
  // it does, else the period. The events must be known, and `schemas` must outlive this.
  WeightChoice(std::string_view what, std::size_t events, EventSchemas& schemas);

  // Nothing when the sample has no such number, or one that is below 0: it cannot be weighed, and is counted.
  // Where nobody asked for the field, and where the payload ends before it, the sample is damaged.
  std::optional<std::uint64_t> of(const ResolvedSample& sample);

  // Whether it reads fields of payloads.
  bool reads_payloads() const;
  std::uint64_t unreadable() const { return unreadable_; }  // of an event without that, or below 0
  std::uint64_t damaged() const { return damaged_; }
  // Names of the fields that were chosen because of their role, for a line that says so; empty: none.
  std::string chosen_by_role() const;

 private:
  enum class Kind : std::uint8_t { Period, One, Field, None };
  struct Choice {
    Kind kind = Kind::Period;
    const PayloadField* field = nullptr;
    bool is_by_role = false;
  };
  std::vector<Choice> by_event_;
  std::uint64_t unreadable_ = 0, damaged_ = 0;
};

// So many samples are left out, as the fields that weigh them are damaged.
void report_unweighed(format::Diagnostics& diagnostics, std::uint64_t samples);

}  // namespace tacho::report
