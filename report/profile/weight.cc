#include "report/profile/weight.h"

#include <algorithm>
#include <string>

#include "format/records/perf_abi.h"
#include "report/output/text_output.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

std::string unit_of_field(const PayloadField& field) {
  return printable(field.unit.empty() ? field.name : field.unit);
}

}  // namespace

PeriodFields::EventFacts& PeriodFields::facts_of(std::size_t event) {
  for (std::size_t next = events_.size(); next <= event; ++next) {
    EventFacts& facts = events_.emplace_back();
    const PayloadSchema* const schema = schemas_->of(next);
    if (schema == nullptr) continue;
    for (const std::string_view role : {"weight", "live", "sum", "count", "value"}) {
      const auto field = std::ranges::find(schema->fields, role, &PayloadField::role);
      if (field == schema->fields.end() || field->kind == format::FieldKind::Text || is_list(*field))
        continue;
      facts.field = &*field;
      break;
    }
  }
  return events_[event];
}

bool PeriodFields::reads_payloads(std::size_t events) {
  for (std::size_t event = 0; event < events; ++event)
    if (facts_of(event).field != nullptr) return true;
  return false;
}

void PeriodFields::see(const ResolvedSample& sample) {
  EventFacts& facts = facts_of(sample.event_index);
  if (facts.field == nullptr) return;
  const auto number = read_number(*facts.field, sample.raw->raw, sample.order);
  facts.is_seen = true;
  const bool is_period = number && *number >= 0 && static_cast<std::uint64_t>(*number) == sample.period;
  if (!is_period) facts.field = nullptr;
}

std::string weight_unit(std::string_view what, const format::Event& event, const PayloadSchema* schema,
                        const PayloadField* period) {
  if (what == "samples") return "samples";
  if (schema != nullptr && what != "period") {
    const auto field = what.empty() ? std::ranges::find(schema->fields, "weight", &PayloadField::role)
                                    : std::ranges::find(schema->fields, what, &PayloadField::name);
    if (field != schema->fields.end()) return unit_of_field(*field);
  }
  const format::EventAttr& attr = event.attr;
  const bool is_clock = attr.type == abi::kSoftware && attr.config <= 1;  // cpu-clock, task-clock
  if (is_clock) return "ns";
  if (period != nullptr) return unit_of_field(*period);
  return attr.type == abi::kSoftware && attr.config == abi::kBpfOutput ? "samples" : printable(event.name);
}

WeightChoice::WeightChoice(std::string_view what, std::size_t events, EventSchemas& schemas) {
  for (std::size_t event = 0; event < events; ++event) {
    if (what == "period" || what == "samples") {
      by_event_.push_back({what == "samples" ? Kind::One : Kind::Period});
      continue;
    }
    const PayloadSchema* const schema = schemas.of(event);
    const PayloadField* found = nullptr;
    if (schema != nullptr) {
      const auto& fields = schema->fields;
      const auto field = what.empty() ? std::ranges::find(fields, "weight", &PayloadField::role)
                                      : std::ranges::find(fields, what, &PayloadField::name);
      if (field != fields.end()) found = &*field;
    }
    if (found != nullptr) {
      by_event_.push_back({Kind::Field, found, what.empty()});
    } else {
      by_event_.push_back({what.empty() ? Kind::Period : Kind::None});
    }
  }
}

std::optional<std::uint64_t> WeightChoice::of(const ResolvedSample& sample) {
  const Choice choice = sample.event_index < by_event_.size() ? by_event_[sample.event_index] : Choice();
  if (choice.kind == Kind::Period) return sample.period;
  if (choice.kind == Kind::One) return 1;
  if (choice.kind == Kind::Field) {
    const auto number = read_number(*choice.field, sample.raw->raw, sample.order);
    if (number && *number >= 0) return static_cast<std::uint64_t>(*number);
    ++(number ? unweighed_.negative : unweighed_.damaged);
    return std::nullopt;
  }
  ++unreadable_;
  return std::nullopt;
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
    diagnostics.add(format::Damage::BadRecord, format::Diagnostics::kNoOffset,
                    "a payload without the number that weighs its sample, which is left out", damaged);
  if (negative > 0)
    diagnostics.add_line(format::Damage::Note,
                         std::to_string(negative) + " samples are left out: what weighs them is below 0");
}

}  // namespace tacho::report
