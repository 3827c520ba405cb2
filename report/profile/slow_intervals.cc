#include "report/profile/slow_intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/message_text.h"
#include "cli/option_rows.h"
#include "report/output/quantity_text.h"
#include "report/output/text_output.h"
#include "report/query/expressions.h"
#include "report/query/field_choice.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// The field's unit in nanoseconds; nullopt: it is no time.
std::optional<std::uint64_t> time_unit(const PayloadField* field) {
  const auto unit = field == nullptr ? std::nullopt : field_unit(field->unit);
  return unit && unit->kind == cli::NumberUnit::Time ? std::optional(unit->size) : std::nullopt;
}

// The payload's default field if it is a time, else its only field that is one.
const PayloadField* latency_of(const PayloadSchema& schema) {
  if (const PayloadField* const value = value_field(schema); time_unit(value)) return value;
  const auto is_time = [](const PayloadField& field) { return time_unit(&field).has_value(); };
  if (std::ranges::count_if(schema.fields, is_time) != 1) return nullptr;
  return &*std::ranges::find_if(schema.fields, is_time);
}

// "1%", "0.1%": a share above 0 and below 1.
Result<double> parse_slow_share(std::string_view option, std::string_view text) {
  double percent = 0;
  const std::string_view number = text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0));
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool is_sound = fault == std::errc() && end == number.data() + number.size() && percent > 0 &&
                        percent < 100 && text.ends_with('%');
  if (!is_sound)
    return use_error(fmt::format("{}: '{}' is no share of the intervals; 1% takes the slowest hundredth",
                                 option, printable(text)));
  return percent / 100;
}

}  // namespace

void add_slow_options(std::vector<cli::Option>& rows, SlowQuestion& slow, std::string_view shows) {
  rows.push_back(
      {"--slowest", cli::Takes::Value, "SHARE",
       std::string(shows) +
           ": what threads did in the slowest intervals (1%: the slowest hundredth) against the "
           "others. Each sample of an event whose payload has a latency (--of), or each second of "
           "two events (--between), ends an interval of its thread. Samples in no interval, and of "
           "other threads, are left out",
       [&slow](std::string_view text) -> Result<> {
         const auto share = parse_slow_share("--slowest", text);
         if (!share) return share.error();
         slow.share = *share;
         return Done{};
       }});
  rows.push_back({"--slow-where", cli::Takes::Value, "EXPR",
                  "instead of --slowest: intervals whose event matches the expression, as in --where: "
                  "'lat_ns > 10ms && name == \"fsync\"'",
                  [&slow](std::string_view text) -> Result<> {
                    auto condition = parse_where("--slow-where", text);
                    if (!condition) return std::move(condition.error());
                    slow.condition = std::move(*condition);
                    return Done{};
                  }});
  rows.push_back(
      cli::text("--of", "EVENT[.FIELD]",
                "with --slowest and --slow-where, the event that ends intervals, and its latency: a field "
                "whose unit is a time (default: the only event with one; its value)",
                slow.of));
  rows.push_back(cli::text(
      "--between", "FIRST,SECOND",
      "instead of --of: intervals from each event FIRST to the next event SECOND with the same --key",
      slow.pairs.events));
  rows.push_back({"--key", cli::Takes::Value, "FIELD[,FIELD]",
                  "the field that two events of --between have in common, and its name in SECOND if that "
                  "differs; several as dev+sector (default: the thread)",
                  [&slow](std::string_view text) -> Result<> {
                    slow.pairs.keys = parse_name_list(text);
                    return slow.pairs.keys.empty() ? use_error("--key: the name is empty") : Result<>(Done{});
                  }});
}

Result<> check_slow(const SlowQuestion& slow) {
  if (slow.share > 0 && slow.condition != nullptr)
    return use_error("--slowest and --slow-where both select the slow intervals: give one of them");
  const bool has_pairs = !slow.pairs.events.empty();
  if ((!slow.of.empty() || has_pairs) && !slow.is_asked_for())
    return use_error(std::string(has_pairs ? "--between" : "--of") +
                     " needs --slowest 1% or --slow-where, which select the slow intervals");
  if (!slow.of.empty() && has_pairs)
    return use_error("--of and --between both define the intervals: give one of them");
  if (!has_pairs && !slow.pairs.keys.empty())
    return use_error(
        "--key needs --between FIRST,SECOND: it names the field that both events have in common");
  return Done{};
}

Result<SlowIntervals> SlowIntervals::find(Session& session, const SlowQuestion& question) {
  const std::vector<std::string> names = event_names(session.events());
  SlowIntervals found(session, question);
  auto has_found = question.pairs.events.empty() ? found.find_latency(names) : found.find_pairs(names);
  if (!has_found) return std::move(has_found.error());
  const auto has_thread_and_time = [](const format::Event& one) {
    return one.attr.samples(abi::kSampleTid) && one.attr.samples(abi::kSampleTime);
  };
  if (!has_thread_and_time(session.events()[found.event_]))
    return use_error((found.pairs_ ? "--between " : "--of ") + found.name_ +
                     ": the event was recorded without threads or times");
  if (question.condition == nullptr) return found;
  if (auto bound = question.condition->bind(session.events(), session.features()); !bound)
    return std::move(bound.error());
  return found;
}

Result<> SlowIntervals::find_pairs(const std::vector<std::string>& names) {
  schemas_ = std::make_unique<EventSchemas>(session_->events(), session_->features());
  auto pairs = EventPairs::find_events(question_->pairs, session_->events(), names, *schemas_);
  if (!pairs) return std::move(pairs.error());
  event_ = pairs->second();
  name_ = printable(names[pairs->first()]) + " to " + printable(names[event_]);
  pairs_.emplace(std::move(*pairs));
  return Done{};
}

Result<> SlowIntervals::find_latency(const std::vector<std::string>& names) {
  EventSchemas schemas(session_->events(), session_->features());
  std::string event = question_->of, field;
  if (const auto dot = event.rfind('.');
      !event.empty() && dot != std::string::npos && !find_event(event, names)) {
    field = event.substr(dot + 1);
    event.resize(dot);
  }
  const auto only = event.empty() ? std::nullopt : find_event(event, names);
  if (!event.empty() && !only) return not_one_event("--of", event, names);

  std::string choices;
  std::vector<std::pair<std::size_t, const PayloadField*>> fitting;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PayloadSchema* const schema = only && *only != i ? nullptr : schemas.schema_of(i);
    if (schema == nullptr) continue;
    const PayloadField* const usual = latency_of(*schema);
    for (const PayloadField& one : schema->fields) {
      if (!time_unit(&one)) continue;
      choices +=
          fmt::format("{}{}.{}", choices.empty() ? "" : ", ", printable(names[i]), printable(one.name));
      if (field.empty() ? &one == usual : one.name == field) fitting.emplace_back(i, &one);
    }
  }
  if (fitting.size() != 1 && choices.empty())
    return use_error(
        fmt::format("{}: no payload has a latency, a field whose unit is a time; tacho record -e syscall, "
                    "calls, lock and others write them",
                    event.empty() ? "the slowest intervals" : "--of " + printable(event)));
  if (fitting.size() != 1)
    return use_error(fmt::format("{}: several events have a latency; choose with --of: {}",
                                 event.empty() ? "the slowest intervals" : "--of " + printable(question_->of),
                                 choices));

  event_ = fitting[0].first;
  field_ = *fitting[0].second;
  unit_ = *time_unit(&field_);
  name_ = printable(names[event_]) + "." + printable(field_.name);
  return Done{};
}

bool SlowIntervals::take(const ResolvedSample& sample) {
  if (pairs_) {
    if (sample.event_index != pairs_->first() && sample.event_index != event_) return false;
    if (const auto latency = pairs_->take_sample(sample)) add(sample, *latency);
    return true;
  }
  if (sample.event_index != event_) return false;
  const auto latency = read_number(field_, sample.fields->raw, sample.order);
  std::uint64_t ns = 0;
  if (!latency || *latency < 0 || __builtin_mul_overflow(static_cast<std::uint64_t>(*latency), unit_, &ns)) {
    ++without_latency_;
  } else {
    add(sample, ns);
  }
  return true;
}

void SlowIntervals::add(const ResolvedSample& ended, std::uint64_t latency) {
  const std::uint64_t end = ended.fields->time;
  const bool is_slow =
      question_->condition != nullptr && question_->condition->holds(ended, &session_->resolver());
  intervals_.push_back({end - std::min(end, latency), end, latency, ended.tid(), is_slow});
}

void SlowIntervals::see(const ResolvedSample& sample, RowId row, std::uint64_t weight) {
  const format::EventAttr& attr = sample.event().attr;
  if (attr.samples(abi::kSampleTid) && attr.samples(abi::kSampleTime))
    seen_.push_back({sample.fields->time, weight, row, sample.tid()});
}

// Other intervals as long as the shortest slow one are slow, too.
void SlowIntervals::choose() {
  if (question_->condition == nullptr && !intervals_.empty()) {
    std::vector<std::uint64_t> latencies;
    latencies.reserve(intervals_.size());
    for (const SlowInterval& interval : intervals_) latencies.push_back(interval.latency);
    const double wanted = std::ceil(question_->share * static_cast<double>(latencies.size()));
    const auto last =
        latencies.begin() + std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(wanted), 1) - 1;
    std::ranges::nth_element(latencies, last, std::greater<>());
    for (SlowInterval& interval : intervals_) interval.is_slow = interval.latency >= *last;
  }
  least_slow_ = ~std::uint64_t{0};
  for (const SlowInterval& interval : intervals_) {
    if (!interval.is_slow) continue;
    ++slow_intervals_;
    least_slow_ = std::min(least_slow_, interval.latency);
  }
}

const std::vector<SlowInterval>& SlowIntervals::choose_slow() {
  choose();
  return intervals_;
}

// For each thread, with intervals sorted by start and samples by time: a sample is inside an interval if one
// that began before it has not ended.
void SlowIntervals::split(const Take& take) {
  choose();
  std::ranges::sort(intervals_, [](const SlowInterval& a, const SlowInterval& b) {
    return std::tie(a.tid, a.begin) < std::tie(b.tid, b.begin);
  });
  std::ranges::sort(seen_, [](const Seen& a, const Seen& b) {
    return std::tie(a.tid, a.time, a.row) < std::tie(b.tid, b.time, b.row);
  });
  struct Reached {
    std::optional<std::uint64_t> slow, any;  // ns
    static bool covers(const std::optional<std::uint64_t>& end, std::uint64_t time) {
      return end && *end >= time;
    }
  };
  Reached reached;
  auto next = intervals_.begin();
  std::uint32_t tid = 0;
  for (const Seen& sample : seen_) {
    if (sample.tid != tid) reached = {};
    tid = sample.tid;
    for (; next != intervals_.end() && std::tie(next->tid, next->begin) <= std::tie(tid, sample.time);
         ++next) {
      if (next->tid != tid) continue;
      reached.any = std::max(reached.any.value_or(0), next->end);
      if (next->is_slow) reached.slow = std::max(reached.slow.value_or(0), next->end);
    }
    if (Reached::covers(reached.slow, sample.time)) {
      ++slow_samples_;
      take(sample.row, Side::Slow, sample.weight);
    } else if (Reached::covers(reached.any, sample.time)) {
      ++other_samples_;
      take(sample.row, Side::Other, sample.weight);
    }
  }
}

std::vector<std::string> SlowIntervals::legend() const {
  const std::size_t others = intervals_.size() - slow_intervals_;
  const std::size_t outside = seen_.size() - slow_samples_ - other_samples_;
  const std::string from =
      slow_intervals_ == 0 ? "" : ", from " + quantity_text(static_cast<double>(least_slow_), "ns") + " up";
  return {
      fmt::format("slow: {} of {} of {}{}: {}", slow_intervals_, cli::counted(intervals_.size(), "interval"),
                  name_, from, cli::counted(slow_samples_, "sample")),
      fmt::format("others: {}: {}; in no interval of its thread: {}, not drawn",
                  cli::counted(others, "interval"), cli::counted(other_samples_, "sample"),
                  cli::counted(outside, "sample"))};
}

std::vector<std::string> SlowIntervals::notes() const {
  std::vector<std::string> notes;
  if (without_latency_ > 0)
    notes.push_back(cli::counted(without_latency_, "sample") + " of " + name_ + " have no latency: left out");
  if (intervals_.empty()) {
    notes.push_back(pairs_ ? "no interval: no two events " + name_ + " with one key"
                           : "no interval: the event of " + name_ +
                                 " has no samples, or none that the options take");
  } else if (slow_intervals_ == 0) {
    notes.emplace_back("no interval is slow: the condition holds for none");
  } else if (slow_intervals_ == intervals_.size()) {
    notes.push_back("all intervals are slow: " + name_ +
                    " is the same in all, or the condition holds for all");
  } else if (slow_samples_ == 0) {
    notes.emplace_back(
        "no sample was taken in a slow interval: record more of them (-F), of the same threads");
  }
  return notes;
}

}  // namespace tacho::report
