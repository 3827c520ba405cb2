#include "report/views/export/export_stacks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

using format::FieldKind;

// A field whose values are amounts that can be added up.
bool is_amount(const PayloadField& field) {
  const bool has_number =
      field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed || field.kind == FieldKind::Float;
  if (!has_number || is_list(field) || is_shown_in_hex(field) || is_named_address(field)) return false;
  if (field.role == "key" || field.role == "function" || field.format == "log2" ||
      field.format.starts_with("linear:"))
    return false;
  constexpr std::string_view kRoles[] = {"value", "weight", "count", "sum", "live", "queued"};
  return !field.unit.empty() || std::ranges::count(kRoles, field.role) > 0;
}

bool is_label(const PayloadField& field) {
  if (is_list(field) && field.kind != FieldKind::Text) return false;
  return field.role == "key" || field.role == "function" || field.kind == FieldKind::Enum ||
         field.kind == FieldKind::Bool || field.kind == FieldKind::Text;
}

}  // namespace

std::string_view unit_word(std::string_view unit, std::string_view event) {
  if (unit == "ns") return "nanoseconds";
  if (unit == "us") return "microseconds";
  if (unit == "ms") return "milliseconds";
  if (unit == "s") return "seconds";
  if (unit == "bytes") return unit;  // also of an event of that name
  return unit == "samples" || unit == event ? std::string_view("count") : unit;
}

void add_saturated(std::uint64_t& sum, std::uint64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
}

ExportStacks::ExportStacks(Session& session, const ExportChoice& choice)
    : session_(session),
      choice_(choice),
      schemas_(session.events(), session.features()),
      periods_(schemas_),
      merge_by_(stack_merge_by(session, choice.places != ExportPlaces::Functions)),
      code_(session, choice.places),
      profile_({EventBlock{}}, profile_shape()) {
  find_fields();
  is_serial_ = reads_samples();
}

// Of a pipe, events may come later.
void ExportStacks::find_fields() {
  while (by_index_.size() < session_.events().size()) {
    const std::size_t index = by_index_.size();
    Event& event = by_index_.emplace_back();
    const PayloadSchema* const schema = schemas_.schema_of(index);
    if (schema == nullptr) continue;
    const format::Event& described = session_.events()[index];
    event.role_weight = field_with_role(*schema, "weight");
    for (const PayloadField& field : schema->fields) {
      if (is_amount(field)) event.weights.push_back(&field);
      if (!choice_.labels.fields || !described.attr.is_bpf_output() || !is_label(field)) continue;
      auto key = FieldKey::find_field("", field.name, *schema, described.name);
      if (!key) continue;
      event.labels.push_back(std::move(*key));
      event.label_names.push_back(code_.texts().number_of(field.name));
    }
  }
}

ProfileShape ExportStacks::profile_shape() {
  using format::abi::kSampleCgroup;
  using format::abi::kSampleCpu;
  const ExportLabels& labels = choice_.labels;
  ProfileShape shape{.by_comm = labels.comm, .by_thread = labels.pid || labels.tid};
  shape.facts = {
      [](const ResolvedSample& sample) { return std::uint64_t{sample.event_index}; },
      [is_kept = labels.cpu](const ResolvedSample& sample) {
        const bool has_cpu = is_kept && sample.event().attr.samples(kSampleCpu);
        return has_cpu ? std::uint64_t{sample.fields->cpu} + 1 : 0;
      },
      [is_kept = labels.cgroup](const ResolvedSample& sample) {
        return is_kept && sample.event().attr.samples(kSampleCgroup) ? sample.fields->cgroup : 0;
      },
      [this](const ResolvedSample& sample) { return std::uint64_t{fields_of(sample)}; },
  };
  return shape;
}

// Whether one thread must look at each sample, and not at sums of them.
bool ExportStacks::reads_samples() const {
  using format::abi::kSampleCgroup;
  using format::abi::kSampleCpu;
  if (session_.layout().is_pipe) return true;
  for (std::size_t index = 0; index < by_index_.size(); ++index) {
    const format::EventAttr& attr = session_.events()[index].attr;
    const Event& event = by_index_[index];
    if (!event.weights.empty() || !event.labels.empty()) return true;
    if (choice_.labels.cpu && attr.samples(kSampleCpu)) return true;
    if (choice_.labels.cgroup && attr.samples(kSampleCgroup)) return true;
  }
  return false;
}

void ExportStacks::read_stacks(const RunSession& run) {
  run(*this);
  name_new_rows();
  profile_.end_lookups();
  for (std::size_t index = 0; index < by_index_.size(); ++index)
    if (by_index_[index].samples > 0) events_.push_back(described(index));
  merge_rows();
}

Sink::Flow ExportStacks::on_sample(const ResolvedSample& sample) {
  find_fields();
  periods_.see(sample);
  if (sample.event().attr.samples(format::abi::kSampleTime)) {
    if (!std::exchange(has_times_, true)) first_time_ = sample.fields->time;
    last_time_ = sample.fields->time;
  }
  ++samples_;
  cgroups_ = sample.cgroups;
  const RowId row = row_of(sample);
  count(row, sample.event_index, sample.counted_period(), 1);
  count_fields(row, sample);
  return Flow::Continue;
}

SumShape ExportStacks::shape() const {
  SumShape shape;
  shape.by_comm = choice_.labels.comm;
  shape.by_thread = choice_.labels.pid || choice_.labels.tid;
  shape.merge_by = merge_by_;
  return shape;
}

RowId ExportStacks::row_of(const SumGroup& group) {
  const SumSample made(group, session_.events());
  ResolvedSample sample = made.sample();
  sample.location_id = group.location;
  return row_of(sample);
}

void ExportStacks::count(RowId row, std::size_t index, std::uint64_t period, std::uint64_t samples) {
  Event& event = by_index_[index];
  event.samples += samples;
  event.has_other_periods |= period != samples;
  profile_.count(row, 0, {.period = period, .samples = samples});
}

void ExportStacks::end(const SumTotals& totals) {
  samples_ = totals.samples;
  if (totals.first_time > totals.last_time) return;
  first_time_ = totals.first_time;
  last_time_ = totals.last_time;
}

RowId ExportStacks::row_of(const ResolvedSample& sample) {
  const bool has_frames = sample.stack != nullptr && !sample.stack->frames.empty();
  const RowId row = profile_.row_for({.location = has_frames ? LocationId{} : sample.location_id,
                                      .facts = profile_.facts_of(sample),
                                      .thread = sample.thread,
                                      .comm = sample.comm,
                                      .stack = has_frames ? sample.stack : nullptr});
  if (merge_by_ == MergeBy::Address) name_new_rows();  // at once, while others read on
  return row;
}

std::uint32_t ExportStacks::fields_of(const ResolvedSample& sample) {
  if (sample.event_index >= by_index_.size()) return 0;
  const Event& event = by_index_[sample.event_index];
  if (event.labels.empty()) return 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> list;
  for (std::size_t i = 0; i < event.labels.size(); ++i) {
    const FieldKey& key = event.labels[i];
    const KeyValue value = key.named_value(sample, session_.resolver());
    if (std::holds_alternative<std::monostate>(value)) continue;
    list.emplace_back(event.label_names[i], code_.texts().number_of(key.show(value, Names::Raw)));
  }
  const auto [known, is_new] =
      by_fields_.try_emplace(std::move(list), static_cast<std::uint32_t>(field_lists_.size()));
  if (is_new) {
    std::vector<ExportField>& fields = field_lists_.emplace_back();
    for (const auto& field : known->first) fields.push_back({field.first, field.second});
  }
  return known->second;
}

void ExportStacks::count_fields(RowId row, const ResolvedSample& sample) {
  const Event& event = by_index_[sample.event_index];
  if (event.weights.empty()) return;
  while (fields_of_rows_.size() <= index_of(row)) fields_of_rows_.push_back(~std::size_t{0});
  std::size_t& at = fields_of_rows_[row];
  if (at == ~std::size_t{0}) {
    at = field_sums_.size();
    field_sums_.resize(at + event.weights.size());
  }
  for (std::size_t i = 0; i < event.weights.size(); ++i) {
    const auto number = read_number(*event.weights[i], sample.fields->raw, sample.order);
    if (number && *number >= 0)
      add_saturated(field_sums_[at + i], static_cast<std::uint64_t>(*number));
    else
      ++unreadable_;
  }
}

void ExportStacks::name_new_rows() {
  while (stacks_of_rows_.size() < profile_.rows().size()) {
    const auto row = id_of<RowId>(stacks_of_rows_.size());
    stacks_of_rows_.push_back(code_.stack_of(profile_.stack_of(row), profile_.rows()[row].location));
  }
}

// bpf_perf_event_output() writes no period: then it is the number of samples.
bool ExportStacks::has_period(std::size_t index) const {
  return by_index_[index].has_other_periods || !session_.events()[index].attr.is_bpf_output();
}

bool ExportStacks::has_event(std::string_view name) const {
  return std::ranges::find(session_.events(), name, &format::Event::name) != session_.events().end();
}

// Whether tacho import made this event of the samples that another tool counted, of all events or of one.
bool ExportStacks::is_imported_count(const std::string& event) const {
  constexpr std::string_view kCount = ":samples";
  return event == "samples" ||
         (event.ends_with(kCount) && has_event(event.substr(0, event.size() - kCount.size())));
}

// Whether there is such an event for this one: then the samples of the capture are other ones.
bool ExportStacks::has_imported_count(const std::string& event) const {
  return event == "samples" || has_event(event + ":samples");
}

ExportEvent ExportStacks::described(std::size_t index) {
  const Event& event = by_index_[index];
  const format::Event& known = session_.events()[index];
  const PayloadField* const period = period_field(index);
  ExportEvent made{.index = index, .name = printable(known.name), .weights = {{"samples", "samples"}}};
  if (has_period(index)) {
    if (has_imported_count(known.name)) made.weights[0].name = "records";
    made.main_weight = made.weights.size();
    made.weights.push_back({period == nullptr ? made.name : printable(period->name),
                            weight_unit("period", known, schemas_.schema_of(index), period)});
  }
  if (!has_period(index) && is_imported_count(known.name)) made.weights[0].name = made.name;
  for (const PayloadField* const field : event.weights) {
    if (field == period) continue;
    if (field == event.role_weight) made.main_weight = made.weights.size();
    made.weights.push_back(
        {printable(field->name), printable(field->unit.empty() ? field->name : field->unit)});
  }
  return made;
}

std::uint32_t ExportStacks::label_set_of(const ProfileRow& row, std::span<const std::uint64_t> facts) {
  const ExportLabels& labels = choice_.labels;
  ExportLabelSet set{
      .cpu = facts[kCpu], .cgroup = facts[kCgroup], .fields = static_cast<std::uint32_t>(facts[kFields])};
  if (labels.comm) set.comm = row.comm();
  if (labels.pid && row.thread != nullptr) set.pid = row.thread->pid;
  if (labels.tid && row.thread != nullptr) set.tid = row.thread->tid;
  const auto comm = reinterpret_cast<std::uintptr_t>(set.comm.data());  // equal names share their bytes
  return by_label_set_.find_or_make(
      by_label_set_.hash(comm, set.pid, set.tid, set.cpu, set.cgroup, set.fields),
      [&](std::uint32_t known) { return label_sets_[known] == set; },
      [&] {
        label_sets_.push_back(set);
        return static_cast<std::uint32_t>(label_sets_.size() - 1);
      });
}

// Stacks of different addresses may have the same names.
void ExportStacks::merge_rows() {
  std::vector<std::uint32_t> of_index(by_index_.size());
  for (std::uint32_t event = 0; event < events_.size(); ++event) of_index[events_[event].index] = event;
  IndexTable<> by_row;
  for (const RowId id : stacks_of_rows_.ids()) {
    const ProfileRow& given = profile_.rows()[id];
    const auto facts = profile_.facts(given);
    const std::size_t index = facts[kEvent];
    const Row row{of_index[index], label_set_of(given, facts), stacks_of_rows_[id]};
    const ExportEvent& event = events_[row.event];
    const std::uint32_t number = by_row.find_or_make(
        by_row.hash(row.event, row.labels, row.stack),
        [&](std::uint32_t known) {
          const Row& other = rows_[known];
          return other.event == row.event && other.labels == row.labels && other.stack == row.stack;
        },
        [&] {
          rows_.push_back(row);
          values_at_.push_back(values_.size());
          values_.resize(values_.size() + event.weights.size());
          return static_cast<std::uint32_t>(rows_.size() - 1);
        });
    add_values(id, index, std::span(values_).subspan(values_at_[number], event.weights.size()));
  }
}

void ExportStacks::add_values(RowId id, std::size_t index, std::span<std::uint64_t> values) const {
  const Weight& sums = profile_.rows()[id].only;
  const PayloadField* const period = period_field(index);
  const std::vector<const PayloadField*>& fields = by_index_[index].weights;
  std::size_t at = 0;
  add_saturated(values[at++], sums.samples);
  if (has_period(index)) add_saturated(values[at++], sums.period);
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i] != period) add_saturated(values[at++], field_sums_[fields_of_rows_[id] + i]);
}

void ExportStacks::each(const std::function<void(const ExportRow&)>& take) const {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    take({row.event, row.labels, row.stack,
          std::span(values_).subspan(values_at_[i], events_[row.event].weights.size())});
  }
}

std::vector<std::string> ExportStacks::notes() const {
  if (unreadable_ == 0) return {};
  return {std::to_string(unreadable_) + " values of fields are negative or not in the payload, and count 0"};
}

}  // namespace tacho::report
