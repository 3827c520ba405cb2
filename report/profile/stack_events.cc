#include "report/profile/stack_events.h"

#include <algorithm>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/output/text_output.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {

namespace abi = format::abi;

namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

}  // namespace

StackEvents::StackEvents(Session& session, std::string filter, std::string weight, bool as_perl)
    : session_(&session),
      asked_for_(std::move(filter)),
      weight_(std::move(weight)),
      as_perl_(as_perl),
      schemas_(session.events(), session.features()) {}

// stackcollapse-perf.pl finds the event at the end of a line: not if text follows it (tracepoints), and not
// on lines without a time.
void StackEvents::learn() {
  const std::size_t known = facts_.size();
  while (facts_.size() < session_->events().size()) {
    const format::Event& event = session_->events()[facts_.size()];
    const std::string& name = event.name;
    const bool is_in_line = event.attr.type != abi::kTracepoint && event.attr.samples(abi::kSampleTime) &&
                            name.find_first_of(kBlanks) == std::string::npos;
    const std::size_t i = facts_.size();
    const bool wakes = field_with(i, "wakes") != nullptr;
    const bool waits = field_with(i, "queued") || field_with(i, "stack") || field_with(i, "weight");
    has_waits_ |= waits && !wakes;
    const PayloadField* const weight = weight_.empty() ? field_with(i, "weight") : nullptr;
    const bool has_named = names_field() && weight_field(schemas_.schema_of(i), weight_) != nullptr;
    has_named_weight_ |= has_named;
    facts_.push_back({name, false, is_in_line, weight, has_named, wakes, std::nullopt, false});
  }
  if (asked_for_.empty() || known == facts_.size()) return;
  std::vector<std::string> names;
  for (std::size_t i = known; i < facts_.size(); ++i) names.push_back(facts_[i].name);
  const EventChoice choice = choose_events(parse_name_list(asked_for_), names);
  for (std::size_t i = known; i < facts_.size(); ++i) facts_[i].is_asked_for = choice.chosen[i - known];
}

const PayloadField* StackEvents::field_with(std::size_t event, std::string_view role) {
  const PayloadSchema* const schema = schemas_.schema_of(event);
  return schema == nullptr ? nullptr : field_with_role(*schema, role);
}

bool StackEvents::reads_fields() {
  learn();
  if (!weight_.empty()) return names_field();
  return std::ranges::any_of(facts_, [](const EventFacts& facts) { return facts.weight != nullptr; });
}

bool StackEvents::takes(const ResolvedSample& sample) {
  learn();
  EventFacts& facts = facts_[sample.event_index];
  facts.has_stacks = true;
  if (!asked_for_.empty()) {
    facts.is_taken = facts.is_asked_for;
  } else if (!as_perl_) {
    facts.is_taken = has_named_weight_ ? facts.has_named_weight : !(facts.is_of_wakers && has_waits_);
  } else if (!facts.is_taken) {
    if (first_.empty() && facts.is_in_line && !(facts.is_of_wakers && has_waits_)) first_ = facts.name;
    facts.is_taken = !facts.is_in_line || facts.name == first_;
  }
  return *facts.is_taken;
}

std::optional<std::uint64_t> StackEvents::weight_of(const ResolvedSample& sample) {
  if (weight_ == "samples") return 1;
  const EventFacts& facts = facts_[sample.event_index];
  if (facts.weight != nullptr) return field_weight(*facts.weight, sample);
  if (weight_.empty() || weight_ == "period") {
    const bool has_period = (!as_perl_ || facts.is_in_line) && sample.period != 0;
    return has_period ? sample.period : 1;
  }
  if (const PayloadField* const field = weight_field(schemas_.schema_of(sample.event_index), weight_))
    return field_weight(*field, sample);
  ++unreadable_;
  return std::nullopt;
}

std::optional<std::uint64_t> StackEvents::field_weight(const PayloadField& field,
                                                       const ResolvedSample& sample) {
  const auto number = read_number(field, sample.fields->raw, sample.order);
  if (number && *number > 0) return static_cast<std::uint64_t>(*number);
  // A frame of a flame graph needs a width above 0.
  if (!number || *number < 0) ++(number ? unweighed_.negative : unweighed_.damaged);
  return std::nullopt;
}

Result<> StackEvents::check() {
  learn();
  if (!asked_for_.empty()) {
    std::vector<std::string> names;
    for (const EventFacts& facts : facts_) names.push_back(facts.name);
    const EventChoice choice = choose_events(parse_name_list(asked_for_), names);
    if (choice.unknown) return not_one_event("--event-filter", *choice.unknown, names);
  }
  has_unweighed_ = has_unweighed_ || unweighed_.damaged + unweighed_.negative > 0;
  std::exchange(unweighed_, {}).report(session_->diagnostics());
  if (unreadable_ == 0) return Done{};
  return use_error("--weight: " + std::to_string(unreadable_) + " samples have no number named '" + weight_ +
                   "'; tacho header lists the fields of payloads");
}

// Samples counted in the kernel have stacks only if the recorder counts by stack, whatever -g says.
std::string StackEvents::why_without_stacks() {
  std::string counted, keys;
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    const bool is_asked_for = asked_for_.empty() || facts_[i].is_asked_for;
    if (!is_asked_for || !field_with(i, "count")) continue;
    counted.append(counted.empty() ? "'" : ", '").append(printable(facts_[i].name)).append("'");
    for (const PayloadField& field : schemas_.schema_of(i)->fields) {
      if (field.role == "key" || field.role == "function")
        keys.append(keys.empty() ? "" : ", ").append(printable(field.name));
    }
  }
  if (!counted.empty())
    return "the samples of " + counted + " are counts that were made in the kernel" +
           (keys.empty() ? "" : ", by " + keys) + ", and have no stacks; tacho table shows them";
  const std::string whose = asked_for_.empty() ? "" : " of '" + printable(asked_for_) + "'";
  return "no sample" + whose + " has a stack; record with -g to have them";
}

std::vector<std::string> StackEvents::notes(bool has_stacks, Several several_are) {
  std::vector<std::string> notes;
  std::string taken, left_out, weights;
  std::size_t several = 0;
  for (const EventFacts& facts : facts_) {
    if (!facts.has_stacks) continue;
    const bool is_taken = facts.is_taken.value_or(false);
    std::string& list = is_taken ? taken : left_out;
    list.append(list.empty() ? "'" : ", '").append(printable(facts.name)).append("'");
    several += is_taken ? 1 : 0;
    if (facts.weight != nullptr && is_taken)
      weights.append(weights.empty() ? "" : ", ").append(printable(facts.weight->name));
  }
  const bool is_chosen = asked_for_.empty();
  if (!has_stacks && !has_unweighed_ && (!is_chosen || left_out.empty())) {
    notes.push_back(why_without_stacks());
  }
  if (is_chosen && !left_out.empty() && (taken.empty() || !as_perl_)) {
    notes.push_back("left out the samples of " + left_out +
                    (has_named_weight_ ? ", which have no field '" + printable(weight_) + "'"
                                       : ", which are events of wakers; --event NAME takes them"));
  } else if (is_chosen && !left_out.empty()) {
    notes.push_back("took the samples of " + taken + " and left out those of " + left_out +
                    "; --event NAME takes another event");
  }
  if (several > 1 && several_are == Several::Apart) {
    notes.push_back("the weights of " + taken +
                    " have different units, and each unit has its own graph; --event NAME takes one event");
  } else if (several > 1 && several_are == Several::Together) {
    notes.push_back(as_perl_ ? "added up the samples of " + taken + "; --event NAME takes one event"
                             : "the stacks of " + taken +
                                   " are below the names of these events; --event NAME "
                                   "takes one event, without its name");
  }
  if (!weights.empty())
    notes.push_back("stacks are weighted by " + weights +
                    ", as the event says (role:weight); --weight period or samples changes that");
  return notes;
}

Sink::MergeBy stack_merge_by(Session& session, bool shows_more) {
  if (session.layout().is_pipe || shows_more) return Sink::MergeBy::Address;
  std::size_t with_samples = 0;
  for (const format::Event& event : session.events()) {
    if (event.attr.samples(abi::kSampleStackUser) || event.attr.samples(abi::kSampleRaw))
      return Sink::MergeBy::Address;
    with_samples += event.attr.type == abi::kSoftware && event.attr.config == abi::kDummy ? 0 : 1;
  }
  return with_samples == 1 ? Sink::MergeBy::Name : Sink::MergeBy::Address;
}

}  // namespace tacho::report
