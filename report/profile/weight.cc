#include "report/profile/weight.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tacho::report {
const PayloadField* weight_field(const PayloadSchema* schema, std::string_view name) {
  if (schema == nullptr) return nullptr;
  return name.empty() ? field_with_role(*schema, "weight") : field_named(*schema, name);
}

WeightChoice::WeightChoice(std::string_view what, std::size_t events, EventSchemas& schemas, bool keeps_zero)
    : keeps_zero_(keeps_zero) {
  for (std::size_t event = 0; event < events; ++event) {
    if (what == "period" || what == "samples") {
      by_event_.push_back({what == "samples" ? Kind::One : Kind::Period});
      continue;
    }
    const PayloadField* const found = weight_field(schemas.schema_of(event), what);
    if (found != nullptr) {
      by_event_.push_back({Kind::Field, found, what.empty()});
    } else {
      by_event_.push_back({what.empty() ? Kind::Period : Kind::None});
    }
  }
}

std::optional<std::uint64_t> WeightChoice::of(const ResolvedSample& sample) {
  const Choice choice = sample.event_index < by_event_.size() ? by_event_[sample.event_index] : Choice();
  if (choice.kind == Kind::Period) return keeps_zero_ ? sample.period : sample.counted_period();
  if (choice.kind == Kind::One) return 1;
  if (choice.kind == Kind::Field) {
    const auto number = read_number(*choice.field, sample.fields->raw, sample.order);
    if (number && *number >= 0) return static_cast<std::uint64_t>(*number);
    ++(number ? unweighed_.negative : unweighed_.damaged);
    return std::nullopt;
  }
  ++unreadable_;
  return std::nullopt;
}

bool WeightChoice::is_of_sums() const {
  return std::ranges::all_of(by_event_, [](const Choice& choice) {
    return choice.kind == Kind::Period || choice.kind == Kind::One;
  });
}

bool WeightChoice::reads_payloads() const {
  return std::ranges::any_of(by_event_, [](const Choice& choice) { return choice.kind == Kind::Field; });
}

std::string WeightChoice::chosen_by_role() const {
  std::string names;
  for (const Choice& choice : by_event_) {
    if (choice.is_by_role) names += (names.empty() ? "" : ", ") + choice.field->name;
  }
  return names;
}

void Unweighed::report(format::Diagnostics& diagnostics) const {
  if (damaged > 0)
    diagnostics.add_finding(format::Damage::BadRecord, format::Diagnostics::kNoOffset,
                            "a payload without the field of --weight; its sample is left out", damaged);
  if (negative > 0)
    diagnostics.add_line(format::Damage::Note,
                         std::to_string(negative) + " samples are left out: their weight is negative");
}

}  // namespace tacho::report
