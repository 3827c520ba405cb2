#include "report/profile/weight_unit.h"

#include "format/records/perf_abi.h"
#include "report/output/text_output.h"
#include "report/profile/weight.h"

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
    const PayloadSchema* const schema = schemas_->schema_of(next);
    if (schema == nullptr) continue;
    for (const std::string_view role : {"weight", "live", "sum", "count", "value"}) {
      const PayloadField* const field = field_with_role(*schema, role);
      if (field == nullptr || field->kind == format::FieldKind::Text || is_list(*field)) continue;
      facts.field = field;
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
  const auto number = read_number(*facts.field, sample.fields->raw, sample.order);
  facts.is_seen = true;
  const bool is_period = number && *number >= 0 && static_cast<std::uint64_t>(*number) == sample.period;
  if (!is_period) facts.field = nullptr;
}

std::string weight_unit(std::string_view what, const format::Event& event, const PayloadSchema* schema,
                        const PayloadField* period) {
  if (what == "samples") return "samples";
  const PayloadField* const field = what == "period" ? nullptr : weight_field(schema, what);
  if (field != nullptr) return unit_of_field(*field);
  const format::EventAttr& attr = event.attr;
  const bool is_clock = attr.type == abi::kSoftware && attr.config <= 1;  // cpu-clock, task-clock
  if (is_clock) return "ns";
  if (period != nullptr) return unit_of_field(*period);
  return attr.is_bpf_output() ? "samples" : printable(event.name);
}

}  // namespace tacho::report
