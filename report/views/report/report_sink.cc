#include "report/views/report/report_sink.h"

#include <algorithm>
#include <utility>

namespace tacho::report {

ReportSink::ReportSink(Session& session, const ReportOptions& options, bool has_colour)
    : session_(&session),
      options_(&options),
      has_colour_(has_colour),
      mode_(mode_of(session, options)),
      needs_records_(mode_ != ReportMode::Samples || branch_history_of(session, options).is_wanted ||
                     options.shows_thread_values ||
                     names_key_with(options.columns, SortKey::Needs::Cgroups) ||
                     asks_for_parallelism(options)) {}

Result<> ReportSink::arrange() {
  auto made = make_report_plan(*session_, *options_, mode_, needs_records_, std::move(early_));
  if (!made) return std::move(made.error());
  plan_ = std::move(*made);
  return Done{};
}

Sink::Flow ReportSink::on_sample(const ResolvedSample& sample) {
  if (!plan_) {
    if (auto arranged = arrange(); !arranged) {
      failure_ = arranged.error();
      return Flow::Stop;
    }
  }
  if (!plan_->event_switch.accepts(sample)) return Flow::Continue;
  const auto& cpus = options_->filter.cpus;
  if (!cpus.empty() && std::ranges::find(cpus, sample.fields->cpu) == cpus.end()) return Flow::Continue;
  if (plan_->waits) {
    if (const auto wait = plan_->waits->take_sample(sample)) add_wait(*wait);
  } else if (mode_ == ReportMode::Branches) {
    plan_->branches->add_branches(*plan_->profile, sample);
    if (plan_->cycles) plan_->cycles->add_branches(sample);
  } else if (mode_ == ReportMode::Memory) {
    plan_->profile->add_sample(sample, std::max<std::uint64_t>(sample.fields->weight, 1));
  } else if (const auto weight = plan_->weight->of(sample)) {
    add_sample(sample, *weight);
  }
  if (plan_->names) plan_->names->name_new();
  return Flow::Continue;
}

Sink::Flow ReportSink::on_non_sample(const NonSampleRecord& other) {
  if (plan_)
    plan_->facts.take_record(*other.record);
  else
    early_.take_record(*other.record);
  if (options_->shows_thread_values) values_.add_record(other);
  return Flow::Continue;
}

SumShape ReportSink::shape() const {
  SumShape shape = plan_->sum_shape;
  shape.merge_by = merge_by();
  return shape;
}

RowId ReportSink::row_of(const SumGroup& row) {
  const RowId id = plan_->profile->row_for({.event = row.event,
                                            .location = row.location,
                                            .thread = row.thread,
                                            .comm = row.comm,
                                            .stack = row.stack});
  if (plan_->names) plan_->names->name_new();
  return id;
}

void ReportSink::count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) {
  plan_->profile->count(row, event,
                        {.period = plan_->weight->of_sum(event, period, samples), .samples = samples});
}

// Adds the sample, with the call chain that the options select.
void ReportSink::add_sample(const ResolvedSample& sample, std::uint64_t weight) {
  if (!plan_->branch_chains && !options_->shows_other_chains)
    return plan_->profile->add_sample(sample, weight);
  ResolvedSample counted = sample;
  if (plan_->branch_chains) counted.stack = plan_->branch_chains->stack_of(sample);
  if (options_->shows_other_chains) {
    if (counted.stack == nullptr) {
      counted.stack = last_stack_;
    } else {
      last_stack_ = counted.stack;
    }
  }
  plan_->profile->add_sample(counted, weight);
}

void ReportSink::add_wait(const Wait& wait) {
  plan_->profile->add_sample({.event = wait.event,
                              .location = wait.location,
                              .facts = id_of<FactsId>(wait.kept),
                              .thread = wait.thread,
                              .comm = wait.comm,
                              .stack = plan_->wait_chains->stack_of(wait)},
                             wait.weight);
  if (plan_->wait_chains->bytes() > kMostChainBytes) plan_->waits->leave_wakers_out();
}

const ReportTable* ReportSink::rows_so_far() {
  if (empty() || mode_ != ReportMode::Samples || plan_->waits) return nullptr;
  if (!plan_->names) plan_->make_names();
  plan_->names->name_all();
  plan_->functions->show_parameters();
  if (!table_) table_ = ReportTable(*plan_, values_, has_colour_);
  return &*table_;
}

const ReportTable& ReportSink::finish() {
  if (!plan_->names) plan_->make_names();
  plan_->names->name_all();
  plan_->functions->show_parameters();
  if (plan_->cycles) plan_->cycles->settle(session_->resolver());
  if (!table_) table_ = ReportTable(*plan_, values_, has_colour_);
  return *table_;
}

void ReportSink::report(format::Diagnostics& diagnostics) const {
  if (!plan_) return;
  plan_->facts.report(diagnostics);
  plan_->weight->unweighed().report(diagnostics);
}

std::optional<Error> ReportSink::failure() const {
  if (failure_ || !plan_ || plan_->weight->unreadable() == 0) return failure_;
  return use_error("--weight: " + std::to_string(plan_->weight->unreadable()) +
                   " samples have no number named '" + options_->weight +
                   "'; tacho header lists the fields of payloads");
}

std::vector<std::string> ReportSink::notes() const {
  std::vector<std::string> lines;
  if (!plan_) return lines;
  const std::optional<Waits>& waits = plan_->waits;
  if (waits) {
    lines.emplace_back("tacho report: rows are waits, weighted by nanoseconds");
    for (const std::string& note : waits->notes()) lines.push_back("tacho report: " + note);
  }
  const std::string chosen = waits ? std::string() : plan_->weight->chosen_by_role();
  if (!chosen.empty()) {
    lines.push_back("tacho report: rows are weighted by " + printable(chosen) +
                    ", as the event says (role:weight); --weight period or samples changes that");
  }
  if (plan_->profile->left_out() > 0)
    lines.push_back("tacho report: " + late_events_text(plan_->profile->left_out()));
  if (const auto split = split_group(plan_->groups)) lines.push_back("tacho report: " + *split);
  return lines;
}

}  // namespace tacho::report
