// What one sample counts for: the event's period, 1, or a field of its payload or tracepoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

class WeightChoice {
 public:
  // `what`: "period", "samples" or a field's name; empty: the field that the payload tags role:weight, where
  // it does, else the period. The events must be known, and `schemas` must outlive this.
  WeightChoice(std::string_view what, std::size_t events, EventSchemas& schemas);

  // Nothing when the sample has no such number, or one that is below 0: it cannot be weighed, and is counted.
  std::optional<std::uint64_t> of(const ResolvedSample& sample);

  // Whether it reads fields of payloads.
  bool reads_payloads() const;
  std::uint64_t unreadable() const { return unreadable_; }
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
  std::uint64_t unreadable_ = 0;
};

}  // namespace tacho::report
