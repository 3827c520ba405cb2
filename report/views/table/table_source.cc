#include "report/views/table/table_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cli/message_text.h"
#include "report/query/field_choice.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

// "open, exec and 17 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;  // a capture may have thousands of tracepoints
  const std::size_t shown = std::min(names.size(), kMost);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

// The keys of --by, or else of the payloads' roles.
std::vector<std::string> TableSource::keys_of(const TableQuestion& question, Session& session) {
  if (!question.by.empty()) return parse_name_list(question.by);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < session.events().size(); ++i) {
    const PayloadSchema* const schema = question.event.empty() || asked_[i] ? schemas_->of(i) : nullptr;
    if (schema == nullptr) continue;
    for (const std::string& name : default_table_keys(*schema)) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  if (names.empty()) names.emplace_back("comm");
  return names;
}

Result<TableEvent> TableSource::bind(const TableQuestion& question, const format::Event& event,
                                     const PayloadSchema* schema) {
  TableEvent bound;
  if (schema != nullptr) {
    const CountedFields counted = counted_fields(*schema);
    bound.count = counted.count;
    bound.how.sum = counted.sum;
  }
  value_ = question.value ? &*question.value : default_value_ ? &*default_value_ : nullptr;
  if (value_ != nullptr) {
    auto value = bind_value(question, event, schema);
    if (!value) return std::move(value.error());
    bound.value = std::move(*value);
  }
  for (const std::string& name : key_names_) {
    auto key = FieldKey::find("--by", name, schema != nullptr ? *schema : empty_, event.name);
    if (!key) return std::move(key.error());
    bound.keys.push_back(std::move(*key));
  }
  if (!bound.value || schema == nullptr) return bound;
  if (question.value) bound.how.sum = nullptr;
  bound.how.is_sum = bound.how.sum != nullptr && bound.how.sum->name == value_->source;
  const auto field = std::ranges::find(schema->fields, value_->source, &PayloadField::name);
  if (field == schema->fields.end()) return bound;
  if (has_slots(*field)) bound.how.slots = &*field;
  bound.how.is_total = question.value && is_total(*schema, *field);
  return bound;
}

// nullopt when there is no --value and the event lacks the default value.
Result<std::optional<BoundExpression>> TableSource::bind_value(const TableQuestion& question,
                                                               const format::Event& event,
                                                               const PayloadSchema* schema) const {
  auto value = BoundExpression::bind("--value", *value_, schema);
  if (!value) return std::move(value.error());
  if (!question.value && !value->missing().empty()) return std::optional<BoundExpression>();
  if (!value->missing().empty()) {
    const auto& node = value_->nodes[value->missing().front()];
    std::string what = "'" + event.name + "' has no such field; every sample has " + own_value_names();
    if (schema != nullptr) {
      what += ", and it has";
      for (const PayloadField& field : schema->fields) what += " " + field.name;
    }
    return cli::error_at("--value", value_->source, node.at, what);
  }
  if (value->is_text())
    return use_error("--value: '" + value_->source + "' is a text, which has no sum; make it a key: --by " +
                     value_->source);
  return std::optional(std::move(*value));
}

bool TableSource::has_keys(const format::Event& event, const PayloadSchema* schema) const {
  return std::ranges::all_of(key_names_, [&](const std::string& name) {
    return bool(FieldKey::find("--by", name, schema != nullptr ? *schema : empty_, event.name));
  });
}

// The default value: the value field of the first event that has one.
void TableSource::take_default_value(const PayloadSchema* schema) {
  const PayloadField* field = schema != nullptr ? value_field(*schema) : nullptr;
  if (field == nullptr && schema != nullptr) field = counted_fields(*schema).sum;
  if (field == nullptr || field->kind == format::FieldKind::Text || is_list(*field)) return;
  auto parsed = cli::parse_expression("--value", field->name);
  if (!parsed) return;  // a name that is none in an expression
  default_value_ = std::move(*parsed);
  unit_ = field->unit;
}

Result<> TableSource::find(const TableQuestion& question, Session& session) {
  const format::EventSet& events = session.events();
  schemas_.emplace(events, session.features());
  std::vector<std::string> names;
  for (const format::Event& event : events) names.push_back(event.name);
  EventChoice choice = choose_events(parse_name_list(question.event), names);
  if (!question.event.empty() && choice.unknown) return not_one_event("--event", *choice.unknown, names);
  asked_ = std::move(choice.chosen);
  key_names_ = keys_of(question, session);
  // The event that brings the mappings has no samples.
  const auto is_dummy = [&](std::size_t i) {
    return events[i].attr.type == format::abi::kSoftware && events[i].attr.config == format::abi::kDummy;
  };
  const auto is_asked_for = [&](std::size_t i) { return question.event.empty() ? !is_dummy(i) : asked_[i]; };
  const bool has_default = !question.value && !question.only_counts;
  for (std::size_t i = 0; i < events.size() && has_default && !default_value_; ++i)
    if (is_asked_for(i) && (question.by.empty() || has_keys(events[i], schemas_->of(i))))
      take_default_value(schemas_->of(i));
  std::optional<Error> failed;
  int fit = -1;  // of the event that the error is about
  for (std::size_t i = 0; i < events.size(); ++i) {
    events_.emplace_back();
    if (!is_asked_for(i)) continue;
    auto bound = bind(question, events[i], schemas_->of(i));
    if (!bound) {
      // Prefer an event with a payload and the keys: probably the intended one.
      const bool has_all_keys = has_keys(events[i], schemas_->of(i));
      const int fits = (has_all_keys ? 2 : 0) + (schemas_->of(i) != nullptr ? 1 : 0);
      if (fits > fit) failed = std::move(bound.error());
      fit = std::max(fit, fits);
      // No note when the user named a value or keys that the event lacks: he left it out knowingly.
      if (!question.value && (question.by.empty() || has_all_keys)) left_out_.push_back(names[i]);
      continue;
    }
    if (value_ != nullptr && !bound->value) only_counted_.push_back(names[i]);
    bound->name = names[i];
    events_.back() = std::move(*bound);
  }
  const auto count = std::ranges::count_if(events_, [](const auto& event) { return event.has_value(); });
  if (count == 0 && left_out_.size() > 1) {
    return use_error("the events have no keys in common; take --event NAME or --by comm: the events are " +
                     listed(left_out_) + "; for example: --event " + cli::shell_word(left_out_.front()));
  }
  if (count == 0) return failed ? std::move(*failed) : use_error("the capture has no events");
  if (count > 1 && std::ranges::find(key_names_, "event") == key_names_.end()) {
    key_names_.insert(key_names_.begin(), "event");
    for (auto& event : events_) {
      if (!event) continue;
      auto key = FieldKey::find("--by", "sample.event", empty_, event->name);
      if (!key) return std::move(key.error());
      event->keys.insert(event->keys.begin(), std::move(*key));
    }
  }
  return Done{};
}

TableEvent* TableSource::event(std::size_t index) {
  return index < events_.size() && events_[index] ? &*events_[index] : nullptr;
}

bool TableSource::has_values() const {
  return std::ranges::any_of(events_, [](const auto& event) { return event && event->value; });
}

std::string TableSource::what_is_left_out() const {
  std::string note;
  if (!left_out_.empty()) {
    note = fmt::format("the table is without {}, which {} not its keys; --event {} shows {}",
                       listed(left_out_), left_out_.size() > 1 ? "have" : "has",
                       cli::shell_word(left_out_.front()), left_out_.size() > 1 ? "the first of them" : "it");
  }
  if (!only_counted_.empty() && has_values()) {
    note += fmt::format("{}{} {} only counted: no field is called '{}' there; --value chooses the value",
                        note.empty() ? "" : ". ", listed(only_counted_),
                        only_counted_.size() > 1 ? "are" : "is", value_->source);
  }
  return note;
}

std::string TableSource::title(Names names) const {
  std::string title;
  for (const auto& event : events_) {
    if (event) title.append(title.empty() ? "" : ", ").append(printable(event->name, names));
  }
  if (!has_values()) return title;
  title += ": " + printable(value_->source, names);
  if (!unit_.empty()) title += " in " + printable(unit_, names);
  if (std::ranges::any_of(events_, [](const auto& event) { return event && event->how.slots != nullptr; }))
    title += ", counted in slots";
  return title;
}

std::string TableSource::what_slots_hide() const {
  for (const auto& event : events_) {
    if (!event || event->how.slots == nullptr || event->how.sum != nullptr) continue;
    return fmt::format("'{}' was counted in slots, and sum and mean are those of the least values in them",
                       event->how.slots->name);
  }
  return {};
}

}  // namespace tacho::report
