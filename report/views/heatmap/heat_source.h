// What a heat map counts: which samples, and which value of each. A value is a number of the payload or of
// what every sample has, or where in its second, or another period, it was taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/query/expression_value.h"
#include "report/query/summary.h"
#include "report/samples/session.h"

namespace tacho::report {

struct HeatQuestion {
  std::string event, field;  // as --event and --field have them; empty: nothing was said
  bool is_offset = false;
  std::string input;                     // the capture, for messages
  std::uint64_t period = 1'000'000'000;  // ns: offsets are in this
};

class HeatSource {
 public:
  // Once the session's events are known. Without a field it is the one that the payloads' roles and units
  // choose; where they choose none, offsets. An error of the use names what there is. The session must
  // outlive this, and this stays where it is.
  Result<> find(const HeatQuestion& question, Session& session);

  bool takes(std::size_t event) const { return event < taken_.size() ? taken_[event] : takes_later_; }
  // Nothing: the payload ends before the field. Fractions are cut off, and numbers above the signed range are
  // its last one.
  std::optional<std::int64_t> value_of(const ResolvedSample& sample) const;
  std::uint64_t count_of(const ResolvedSample& sample) const { return report::count_of(count_, sample); }

  bool is_offset() const { return field_ == nullptr && own_ == nullptr; }
  std::uint64_t period() const { return is_offset() ? period_ : 0; }  // ns; 0: values are no offsets
  // Whether it was chosen without being asked for.
  bool is_offset_by_default() const { return is_offset_by_default_; }
  bool reads_payloads() const { return field_ != nullptr; }
  const PayloadField* field() const { return field_; }           // null: it is none of a payload
  const OwnValue* own() const { return own_; }                   // null: it is none that every sample has
  const std::string& name() const { return name_; }              // "lat_ns", "offset"
  const std::string& unit() const { return unit_; }              // of the values; empty: none
  const std::string& event_name() const { return event_name_; }  // of a payload's field
  EventSchemas& schemas() { return *schemas_; }

  // The values from `low` to `high` as a condition of --where: "lat_ns >= 1024 && lat_ns <= 2047". Empty:
  // there is none, as all values are between them, or the field has a name that no expression can have.
  std::string condition(std::int64_t low, std::int64_t high) const;

 private:
  std::optional<EventSchemas> schemas_;
  std::vector<bool> taken_;   // by event
  bool takes_later_ = false;  // events that a pipe describes later
  const PayloadField* field_ = nullptr;
  const OwnValue* own_ = nullptr;
  const PayloadField* count_ = nullptr;  // of samples that stand for many values
  std::uint64_t period_ = 0;
  std::string name_, unit_, event_name_;
  bool is_offset_by_default_ = false;
};

}  // namespace tacho::report
