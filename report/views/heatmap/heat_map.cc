#include "report/views/heatmap/heat_map.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "cli/expression.h"
#include "cli/message_text.h"
#include "report/query/field_choice.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kFiner = 10;  // internal columns or rows for each one shown
// Factors by which an internal box may be widened.
constexpr std::uint64_t kSteps[] = {1, 2, 5, 10, 20, 50, 100};

// Rows between two values, both included.
std::uint64_t count_of(const Distribution& rows, Int128 low, Int128 high) {
  const Int128 count = rows.index_of(high) - rows.index_of(low) + 1;
  return static_cast<std::uint64_t>(std::min(count, kHighest));
}

// Columns from one time to another, both included.
std::uint64_t count_of(std::uint64_t interval, std::uint64_t first, std::uint64_t last) {
  return last / interval - first / interval + 1;
}

}  // namespace

void HeatGrid::add_value(std::uint64_t time, Int128 value, std::uint64_t count) {
  if (cells_.empty()) {
    first_ = last_ = time;
    lowest_ = highest_ = value;
    if (scale_.shown_range) {
      lowest_ = std::min(value, scale_.shown_range->low);
      highest_ = std::max(value, scale_.shown_range->high);
    }
  }
  const bool is_inside = time >= first_ && time <= last_ && value >= lowest_ && value <= highest_;
  if (!is_inside) {
    first_ = std::min(first_, time);
    last_ = std::max(last_, time);
    lowest_ = std::min(lowest_, value);
    highest_ = std::max(highest_, value);
    widen();
  }
  cells_[{time / interval_, fine_.index_of(value)}] += count;
  total_ += count;
}

// Columns and rows begin at multiples of their length, so each finer box is inside one wider box.
void HeatGrid::widen() {
  const std::uint64_t interval = interval_, step = step_;
  while (count_of(interval_, first_, last_) > kFiner * scale_.most_columns) interval_ *= kFiner;
  while (scale_.is_linear && count_of(rows_of(step_), lowest_, highest_) > kFiner * scale_.most_rows)
    step_ *= kFiner;
  if (interval_ == interval && step_ == step) return;
  const std::uint64_t columns = interval_ / interval;
  const Distribution wider = rows_of(step_);
  for (const auto finer = std::exchange(cells_, {}); const auto& [key, count] : finer)
    cells_[{key.column / columns, wider.index_of(fine_.bucket_at(key.row).low)}] += count;
  fine_ = wider;
}

Distribution HeatGrid::shown_rows(std::size_t most_rows) const {
  if (scale_.is_linear) {
    for (const std::uint64_t by : kSteps) {
      const Distribution rows(step_ * by);
      if (count_of(rows, lowest_, highest_) <= most_rows) return rows;
    }
    return Distribution(step_ * kSteps[std::size(kSteps) - 1]);
  }
  for (int bits = scale_.bits; bits > 0; --bits) {
    const Distribution rows(0, bits);
    if (count_of(rows, lowest_, highest_) <= most_rows) return rows;
  }
  return Distribution();
}

HeatMap HeatGrid::finish(std::size_t most_columns, std::size_t most_rows) const {
  HeatMap map;
  if (cells_.empty()) return map;
  std::uint64_t by = 1;
  for (const std::uint64_t step : kSteps) {
    by = step;
    if (count_of(interval_ * by, first_, last_) <= most_columns) break;
  }
  map.interval = interval_ * by;
  const std::uint64_t first_column = first_ / map.interval;
  map.begin = first_column * map.interval;
  map.columns = count_of(map.interval, first_, last_);
  const Distribution rows = shown_rows(most_rows);
  const Int128 lowest_row = rows.index_of(lowest_);
  // If there are too many powers of two, adjacent ones share a row.
  const std::uint64_t count = count_of(rows, lowest_, highest_);
  const std::uint64_t rows_merged = (count + most_rows - 1) / most_rows;
  for (std::uint64_t row = 0; row < count; row += rows_merged) {
    const std::uint64_t last = std::min(row + rows_merged, count) - 1;
    map.rows.push_back({rows.bucket_at(lowest_row + row).low, rows.bucket_at(lowest_row + last).high, 0});
  }
  map.counts.resize(map.columns * map.rows.size());
  for (const auto& [key, samples] : cells_) {
    const Int128 index = rows.index_of(fine_.bucket_at(key.row).low);
    const std::size_t row = static_cast<std::uint64_t>(index - lowest_row) / rows_merged;
    const std::size_t column = key.column / by - first_column;
    std::uint64_t& box = map.counts[column * map.rows.size() + row];
    box += samples;
    map.rows[row].count += samples;
    map.most = std::max(map.most, box);
  }
  map.total = total_;
  return map;
}

namespace {

// The number of events that have a field of this name; with an empty name: a default field (value_field()).
std::size_t events_with(const std::string& field, const std::vector<bool>& events, EventSchemas& schemas) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const PayloadSchema* const schema = events[i] ? schemas.schema_of(i) : nullptr;
    if (schema == nullptr) continue;
    const auto* const found = field.empty() ? value_field(*schema) : field_named(*schema, field);
    count += found != nullptr ? 1 : 0;
  }
  return count;
}

bool has_cpu(const format::EventSet& events, const std::vector<bool>& taken) {
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (taken[i] && events[i].attr.samples(format::abi::kSampleCpu)) return true;
  return false;
}

// Whether the text is one name in the language of --where.
bool is_name(const std::string& text) {
  const auto parsed = cli::parse_expression("", text);
  return parsed && parsed->nodes.size() == 1 && parsed->root().operation == cli::Operation::Name &&
         parsed->root().text == text;
}

}  // namespace

std::uint64_t usual_period(Session& session) {
  constexpr std::uint64_t kSecond = 1'000'000'000, kTenSeconds = 10 * kSecond, kMostPeriods = 66,
                          kLeast = 1000;
  const auto& times = session.features().environment.sample_time;
  if (!times) return kSecond;
  auto [first, last] = *times;
  if (const auto& chosen = session.filter().times; !chosen.empty()) {
    std::uint64_t begin = last, end = first;
    for (const Filter::TimeRange& range : chosen) {
      begin = std::min(begin, std::max(range.first, first));
      end = std::max(end, std::min(range.last, last));
    }
    first = begin;
    last = end;
  }
  if (last <= first || last - first >= kTenSeconds) return kSecond;
  for (std::uint64_t decade = kLeast; decade < kSecond; decade *= 10)
    for (const std::uint64_t step : {1, 2, 4, 5})
      if ((last - first) / (decade * step) <= kMostPeriods) return decade * step;
  return kSecond;
}

Result<> HeatSource::find_events(const HeatRequest& request, Session& session) {
  const format::EventSet& events = session.events();
  schemas_.emplace(events, session.features());
  const std::vector<std::string> names = event_names(events);
  if (!request.event.empty()) {
    EventChoice choice = choose_events(parse_name_list(request.event), names);
    if (choice.unknown) return not_one_event("--event", *choice.unknown, names);
    taken_ = std::move(choice.chosen);
  } else {
    taken_.assign(names.size(), true);
    takes_unknown_ = true;
  }
  const std::size_t with_field = request.is_offset ? 0 : events_with(request.field, taken_, *schemas_);
  if (request.is_offset || (request.field.empty() && with_field == 0)) {
    is_offset_by_default_ = !request.is_offset;
    period_ = request.period != 0 ? request.period : usual_period(session);
    name_ = "offset";
    unit_ = "ns";
    return Done{};
  }
  const OwnValue* const own = with_field == 0 ? find_own_value(request.field) : nullptr;
  if (own != nullptr) {
    if (own->is_text || own->name == "time")
      return use_error("--field: '" + request.field +
                       "' is no number to show; of the fields of every sample, period, cpu, pid and tid are");
    if (own->name == "cpu" && !has_cpu(events, taken_))
      return use_error("--field: the samples have no CPU; record with -a, -C or --sample-cpu");
    own_ = own;
    name_ = own->name;
    unit_ = own->unit;
    return Done{};
  }
  auto chosen = choose_field(names, *schemas_, request.event, request.field,
                             "tacho heatmap -i " + cli::shell_word(request.input));
  if (!chosen) return std::move(chosen.error());
  const PayloadField& field = *chosen->field;
  if (is_counted_by_value(field))
    return use_error("--field: the values of '" + field.name +
                     "' are texts or names, which have no rows; tacho table --by " + field.name +
                     " counts them");
  if (is_list(field))
    return use_error("--field: '" + field.name + "' is a list; a map shows one number of each sample");
  taken_.assign(taken_.size(), false);
  taken_[chosen->event] = true;
  takes_unknown_ = false;
  field_ = chosen->field;
  count_ = is_total(*chosen->schema, field) ? nullptr : counted_fields(*chosen->schema).count;
  name_ = field.name;
  unit_ = field.unit;
  event_name_ = names[chosen->event];
  return Done{};
}

std::optional<Int128> HeatSource::value_of(const ResolvedSample& sample) const {
  if (field_ != nullptr) return read_number(*field_, sample.fields->raw, sample.order);
  if (own_ == nullptr) return sample.fields->time % period_;
  const auto value = own_->of(sample);
  return value ? number_of(*value) : std::nullopt;
}

std::string HeatSource::condition(Int128 low, Int128 high) const {
  if (is_offset()) return {};
  const std::string name = own_ != nullptr ? "sample." + name_ : name_;
  if (!is_name(name)) return {};
  // Fractions were truncated to whole numbers.
  const bool has_fractions = field_ != nullptr && field_->kind == format::FieldKind::Float;
  std::string text;
  if (low != kLowest)
    text =
        has_fractions && low <= 0 ? name + " > " + decimal_text(low - 1) : name + " >= " + decimal_text(low);
  if (high == kHighest) return text;
  if (!text.empty()) text += " && ";
  return text + (has_fractions && high >= 0 ? name + " < " + decimal_text(high + 1)
                                            : name + " <= " + decimal_text(high));
}

HeatScale usual_scale(const HeatSource& source, std::size_t most_columns, std::size_t most_rows,
                      std::uint64_t offsets) {
  HeatScale scale;
  scale.most_columns = most_columns;
  scale.most_rows = most_rows;
  if (const std::uint64_t period = source.period(); period != 0) {
    scale.interval = period;
    scale.shown_range = Bucket{0, Int128{period} - 1};
    scale.step = std::max<std::uint64_t>(period / offsets, 1);
  }
  scale.is_linear = source.is_offset() || (source.own() != nullptr && source.name() != "period");
  const PayloadField* const field = source.field();
  if (field == nullptr || !has_slots(*field)) return scale;
  // For values that were counted in slots, each slot is a row.
  const Slot slot = slot_of(*field, 0);
  scale.bits = 0;
  scale.is_linear = field->format.starts_with("linear:");
  if (scale.is_linear) scale.step = static_cast<std::uint64_t>(slot.highest - slot.lowest) + 1;
  return scale;
}

HeatScale text_scale(const HeatSource& source, std::size_t most_columns, std::size_t most_rows) {
  constexpr std::uint64_t kOffsets = 20;
  return usual_scale(source, most_columns, most_rows, kOffsets);
}

Sink::Flow MapSink::on_sample(const ResolvedSample& sample) {
  if (!source_.takes(sample.event_index) || !times_.has(sample)) return Flow::Continue;
  if (const auto value = source_.value_of(sample)) {
    grid_.add_value(sample.fields->time, *value, source_.count_of(sample));
  } else {
    session_.diagnostics().add_finding(
        format::Damage::BadRecord, format::Diagnostics::kNoOffset,
        "a payload of '" + source_.event_name() + "' that ends before its field '" + source_.name() + "'");
  }
  return Flow::Continue;
}

}  // namespace tacho::report
