#include "report/views/heatmap/heat_source.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "cli/expression.h"
#include "cli/message_text.h"
#include "report/query/field_choice.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

// How many of the events have a field of this name; with an empty one, a field that shows itself.
std::size_t events_with(const std::string& field, const std::vector<bool>& events, EventSchemas& schemas) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const PayloadSchema* const schema = events[i] ? schemas.of(i) : nullptr;
    if (schema == nullptr) continue;
    const bool has_it =
        field.empty() ? value_field(*schema) != nullptr
                      : std::ranges::find(schema->fields, field, &PayloadField::name) != schema->fields.end();
    count += has_it ? 1 : 0;
  }
  return count;
}

bool has_cpu(const format::EventSet& events, const std::vector<bool>& taken) {
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (taken[i] && events[i].attr.samples(format::abi::kSampleCpu)) return true;
  return false;
}

// Whether --where takes it for a name.
bool is_name(const std::string& text) {
  const auto parsed = cli::parse_expression("", text);
  return parsed && parsed->nodes.size() == 1 && parsed->root().operation == cli::Operation::Name &&
         parsed->root().text == text;
}

}  // namespace

Result<> HeatSource::find(const HeatQuestion& question, Session& session) {
  const format::EventSet& events = session.events();
  schemas_.emplace(events, session.features());
  std::vector<std::string> names;
  for (const format::Event& event : events) names.push_back(event.name);
  if (!question.event.empty()) {
    EventChoice choice = choose_events(parse_name_list(question.event), names);
    if (choice.unknown) return not_one_event("--event", *choice.unknown, names);
    taken_ = std::move(choice.chosen);
  } else {
    taken_.assign(names.size(), true);
    takes_later_ = true;
  }
  const std::size_t with_field = question.is_offset ? 0 : events_with(question.field, taken_, *schemas_);
  if (question.is_offset || (question.field.empty() && with_field == 0)) {
    is_offset_by_default_ = !question.is_offset;
    period_ = question.period;
    name_ = "offset";
    unit_ = "ns";
    return Done{};
  }
  const OwnValue* const own = with_field == 0 ? find_own_value(question.field) : nullptr;
  if (own != nullptr) {
    if (own->is_text || own->name == "time")
      return use_error("--field: '" + question.field +
                       "' has no rows; of what every sample has, period, cpu, pid and tid do");
    if (own->name == "cpu" && !has_cpu(events, taken_))
      return use_error(
          "--field: no event here says on which CPU its samples were taken (record -a, -C or --sample-cpu "
          "do)");
    own_ = own;
    name_ = own->name;
    unit_ = own->unit;
    return Done{};
  }
  auto chosen = choose_field(names, *schemas_, question.event, question.field,
                             "tacho heatmap -i " + cli::shell_word(question.input));
  if (!chosen) return std::move(chosen.error());
  const PayloadField& field = *chosen->field;
  if (is_counted_by_value(field))
    return use_error("--field: the values of '" + field.name +
                     "' are texts or names, which have no rows; tacho table --by " + field.name +
                     " counts them");
  if (is_list(field))
    return use_error("--field: '" + field.name + "' is a list; a map shows one number of each sample");
  std::fill(taken_.begin(), taken_.end(), false);
  taken_[chosen->event] = true;
  takes_later_ = false;
  field_ = chosen->field;
  count_ = is_total(*chosen->schema, field) ? nullptr : counted_fields(*chosen->schema).count;
  name_ = field.name;
  unit_ = field.unit;
  event_name_ = names[chosen->event];
  return Done{};
}

std::optional<std::int64_t> HeatSource::value_of(const ResolvedSample& sample) const {
  if (field_ != nullptr) return read_number(*field_, sample.raw->raw, sample.order);
  if (own_ == nullptr) return static_cast<std::int64_t>(sample.raw->time % period_);
  const FieldValue value = own_->of(sample);
  if (const auto* const number = std::get_if<std::int64_t>(&value)) return *number;
  return static_cast<std::int64_t>(
      std::min(bits_of(value), static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
}

std::string HeatSource::condition(std::int64_t low, std::int64_t high) const {
  if (is_offset()) return {};
  const std::string name = own_ != nullptr ? "sample." + name_ : name_;
  if (!is_name(name)) return {};
  // A fraction counts as the whole number on the way to 0.
  const bool has_fractions = field_ != nullptr && field_->kind == format::FieldKind::Float;
  std::string text;
  if (low != kLowest)
    text = has_fractions && low <= 0 ? name + " > " + std::to_string(low - 1)
                                     : name + " >= " + std::to_string(low);
  if (high == kHighest) return text;
  if (!text.empty()) text += " && ";
  return text + (has_fractions && high >= 0 ? name + " < " + std::to_string(high + 1)
                                            : name + " <= " + std::to_string(high));
}

}  // namespace tacho::report
