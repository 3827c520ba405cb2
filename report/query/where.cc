#include "report/query/where.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/expression.h"
#include "cli/message_text.h"
#include "cli/nearest.h"
#include "report/query/bound_expression.h"

namespace tacho::report {
namespace {

class Where : public SampleCondition {
 public:
  Where(std::string_view option, cli::Expression expression)
      : option_(option), expression_(std::move(expression)) {}

  Result<> bind(const format::EventSet& events, const format::Features& features) override {
    schemas_.emplace(events, features);
    std::vector<std::size_t> missing_in(expression_.nodes.size());
    for (std::size_t event = 0; event < events.size(); ++event) {
      auto bound =
          BoundExpression::bind(option_, expression_, schemas_->of(event), BoundExpression::Names::Asked);
      if (!bound) return std::move(bound.error()).in(events[event].name);
      for (const std::size_t node : bound->missing()) ++missing_in[node];
      asks_for_names_ = asks_for_names_ || bound->asks_for_names();
      if (const auto doubt = bound->slot_in_doubt(); doubt && note_.empty()) note_ = note_on(*doubt);
      by_event_.emplace_back(std::move(*bound));
    }
    if (note_.empty()) note_ = note_on_names(events);
    for (std::size_t node = 0; node < missing_in.size(); ++node) {
      if (missing_in[node] != 0 && missing_in[node] == events.size()) return unknown(node, events);
    }
    return Done{};
  }

  bool asks_for_names() const override { return asks_for_names_; }
  std::string note() const override { return note_; }

  bool holds(const ResolvedSample& sample, Resolver* names) override {
    const std::size_t event = sample.record_event;
    // An event of a pipe that came after bind().
    while (by_event_.size() <= event) {
      auto bound = BoundExpression::bind(option_, expression_, schemas_->of(by_event_.size()),
                                         BoundExpression::Names::Asked);
      by_event_.push_back(bound ? std::optional(std::move(*bound)) : std::nullopt);
    }
    return by_event_[event] && by_event_[event]->value(sample, names).is_true();
  }

 private:
  std::string note_on(const BoundExpression::SlotInDoubt& doubt) const {
    return option_ + " '" + expression_.source + "': '" + doubt.field +
           "' was counted in slots, and the slot " + std::to_string(doubt.lowest) + " to " +
           std::to_string(doubt.highest) + " has values on both sides of the number; all of it counts as " +
           std::to_string(doubt.lowest);
  }

  // Refuses `event == "NAME"` for an unknown event, which would silently match nothing, or with !=
  // everything.
  std::string note_on_names(const format::EventSet& events) const {
    std::vector<std::string> names;
    for (const format::Event& event : events) names.push_back(event.name);
    for (const cli::ExpressionNode& one : expression_.nodes) {
      if (one.operation != cli::Operation::Equal && one.operation != cli::Operation::Unequal) continue;
      const cli::ExpressionNode* sides[] = {&expression_.nodes[one.left], &expression_.nodes[one.right]};
      if (sides[0]->operation != cli::Operation::Name) std::swap(sides[0], sides[1]);
      if (sides[0]->operation != cli::Operation::Name || sides[1]->operation != cli::Operation::Text)
        continue;
      if (sides[0]->text != "event" && sides[0]->text != "sample.event") continue;
      const std::string& wanted = sides[1]->text;
      if (std::ranges::find(names, wanted) != names.end()) continue;
      return option_ + " '" + expression_.source + "': there is no event '" + wanted + "'" +
             cli::suggestion_or_all(wanted, names);
    }
    return {};
  }

  // Whether the name is the right side of a comparison: perhaps a text without its quotes.
  bool is_compared_with(std::size_t node) const {
    return std::ranges::any_of(expression_.nodes, [node](const cli::ExpressionNode& one) {
      return one.operation >= cli::Operation::Equal && one.operation <= cli::Operation::GreaterOrEqual &&
             one.right == node;
    });
  }

  Error unknown(std::size_t node, const format::EventSet& events) {
    const std::string& wanted = expression_.nodes[node].text;
    if (wanted == "uid" || wanted == "gid")
      return cli::error_at(
          option_, expression_.source, expression_.nodes[node].at,
          "a capture does not have the users of processes; record only what you look for, with "
          "--filter '" +
              wanted + " == NUMBER'");
    std::vector<std::string> names;
    for (const OwnValue& own : own_values()) names.emplace_back(own.name);
    std::string what = "no event here has this; every sample has " + own_value_names();
    for (std::size_t event = 0; event < events.size(); ++event) {
      const PayloadSchema* const schema = schemas_->of(event);
      if (schema == nullptr || schema->fields.empty()) continue;
      what += "; '" + events[event].name + "' has";
      for (const PayloadField& field : schema->fields) {
        what += (&field == schema->fields.data() ? " " : ", ") + field.name;
        names.push_back(field.name);
      }
    }
    std::string hint = cli::suggestion(wanted, names);
    if (is_compared_with(node)) hint = "; a text stands in quotes: \"" + wanted + "\"" + hint;
    return cli::error_at(option_, expression_.source, expression_.nodes[node].at, what + hint);
  }

  std::string option_;
  cli::Expression expression_;
  std::optional<EventSchemas> schemas_;
  std::vector<std::optional<BoundExpression>> by_event_;
  bool asks_for_names_ = false;
  std::string note_;
};

}  // namespace

Result<std::unique_ptr<SampleCondition>> parse_where(std::string_view option, std::string_view text) {
  auto expression = cli::parse_expression(option, text);
  if (!expression) return std::move(expression.error());
  return std::unique_ptr<SampleCondition>(std::make_unique<Where>(option, std::move(*expression)));
}

}  // namespace tacho::report
