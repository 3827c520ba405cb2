#include "report/profile/stack_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "report/profile/stack_names.h"

namespace tacho::report {

StackSums::StackSums(Session& session, const StackSource& source, const Choice& choice, StackNames& names,
                     NamedStacks& stacks)
    : session_(&session),
      source_(&source),
      choice_(choice),
      names_(&names),
      stacks_(&stacks),
      events_(session, source.event, source.weight, choice.as_perl),
      fields_(session),
      merge_by_(stack_merge_by(session, source.expands_inlines || choice.shows_more)),
      tells_threads_(choice.as_perl || choice.tells_threads || has_root(RootKind::Pid) ||
                     has_root(RootKind::Tid)),
      is_of_threads_(!has_root(RootKind::Cpu) && !has_root(RootKind::Cgroup) && !has_root(RootKind::Field)),
      profile_({EventBlock{}}, ProfileShape{.by_comm = false}) {}

Result<> StackSums::read(const RunSession& run) {
  if (source_->slow.is_asked_for()) {
    auto found = SlowIntervals::find(*session_, source_->slow);
    if (!found) return std::move(found.error());
    slow_ = std::move(*found);
  }
  run(*this);
  if (auto sound = events_.check(); !sound) return sound;
  if (auto sound = fields_.check("--by", source_->roots); !sound) return sound;
  name_new_rows();
  if (!slow_) return Done{};
  sides_.resize(of_rows_.size());
  slow_->split([this](RowId row, SlowIntervals::Side side, std::uint64_t weight) {
    (side == SlowIntervals::Side::Slow ? sides_[row].slow : sides_[row].other) += weight;
  });
  return Done{};
}

bool StackSums::has_several_events() const {
  return std::ranges::any_of(roots_,
                             [this](const Roots& roots) { return roots.names[0] != roots_[0].names[0]; });
}

void StackSums::each(const std::function<void(const Sum&)>& take) const {
  for (const RowId row : of_rows_.ids()) {
    const Sides sides = slow_ ? sides_[row] : Sides{profile_.rows()[row].only.period, 0};
    if (sides.slow != 0 || sides.other != 0)
      take({of_rows_[row], roots_of(row).event, sides.slow, sides.other});
  }
}

std::vector<std::string> StackSums::notes(StackEvents::Several several_are) {
  std::vector<std::string> notes = events_.notes(of_rows_.size() > 0 || !has_samples_, several_are);
  if (slow_) std::ranges::copy(slow_->notes(), std::back_inserter(notes));
  return notes;
}

// Only periods and sample counts are added up by several threads; weights in fields are read by one. In a
// pipe, the fields of payloads may come late.
SumView* StackSums::sum_view() {
  const bool sees_periods =
      choice_.periods != nullptr &&
      (session_->layout().is_pipe || choice_.periods->reads_payloads(session_->events().size()));
  const bool is_serial =
      choice_.as_perl || slow_ || !is_of_threads_ || sees_periods || events_.reads_fields();
  return is_serial ? nullptr : this;
}

Sink::Flow StackSums::on_sample(const ResolvedSample& sample) {
  has_samples_ = true;
  if (slow_ && slow_->take(sample)) return Flow::Continue;
  if (sample.stack == nullptr || !events_.takes(sample)) return Flow::Continue;
  const auto weight = events_.weight_of(sample);
  if (!weight) return Flow::Continue;
  if (choice_.periods != nullptr) choice_.periods->see(sample);
  const RowId row = row_of(sample);
  if (row == kNo<RowId>) return Flow::Continue;
  profile_.count(row, 0, {.period = *weight, .samples = 1});
  if (slow_) slow_->see(sample, row, *weight);
  return Flow::Continue;
}

SumShape StackSums::shape() const {
  SumShape shape;
  shape.by_location = false;
  shape.by_thread = tells_threads_;
  shape.needs_stack = true;
  shape.zero_periods = SumShape::ZeroPeriods::Count;
  shape.merge_by = merge_by_;
  return shape;
}

RowId StackSums::row_of(const SumGroup& group) {
  const SumSample sample(group, session_->events());
  return events_.takes(sample.sample()) ? row_of(sample.sample()) : kNo<RowId>;
}

void StackSums::count(RowId row, std::size_t, std::uint64_t period, std::uint64_t samples) {
  if (row == kNo<RowId>) return;
  profile_.count(row, 0, {.period = events_.counts_samples() ? samples : period, .samples = samples});
}

RowId StackSums::row_of(const ResolvedSample& sample) {
  const RootsId roots = roots_of(sample);
  if (roots == kNo<RootsId>) return kNo<RowId>;
  const RowId row =
      profile_.row_for(LateSample{.facts = id_of<FactsId>(value_of(roots)), .stack = sample.stack});
  if (merge_by_ == MergeBy::Address) name_new_rows();  // at once, while other threads read on
  return row;
}

StackSums::RootsId StackSums::roots_of(const ResolvedSample& sample) {
  if (!is_of_threads_) return make_roots(sample);
  const ThreadKey key{sample.comm.data(), tells_threads_ ? sample.pid() : 0,
                      tells_threads_ ? sample.tid() : 0, sample.event_index};
  const std::uint64_t hash =
      by_thread_.hash(reinterpret_cast<std::uintptr_t>(key.comm), key.pid, key.tid, key.event);
  const std::uint32_t known =
      by_thread_.find(hash, [&](std::uint32_t thread) { return of_threads_[thread].key == key; });
  if (known != kNo<std::uint32_t>) return of_threads_[known].roots;
  const RootsId roots = make_roots(sample);
  if (names_->has_fixed_name(sample))
    (void)find_or_add(by_thread_, hash, of_threads_, [](const RootsOfThread&) { return false; },
                      {key, roots});
  return roots;
}

StackSums::RootsId StackSums::make_roots(const ResolvedSample& sample) {
  const std::string& event = events_.name_of(sample);
  std::string key = fmt::format("{}", sample.event_index);
  std::vector<std::string> texts;
  for (const RootFrame& root : source_->roots) {
    auto text = root.kind == RootKind::Comm    ? names_->thread_name(sample, event)
                : root.kind == RootKind::Field ? std::optional(fields_.text(root.field, sample))
                                               : std::optional(root_text(root.kind, sample, event));
    if (!text) return kNo<RootsId>;
    (key += '\0') += *text;
    texts.push_back(std::move(*text));
  }
  const auto [known, is_new] = by_text_.try_emplace(std::move(key), id_of<RootsId>(roots_.size()));
  if (!is_new) return known->second;
  const bool has_no_event = choice_.as_perl || has_root(RootKind::Event);
  Roots& roots = roots_.emplace_back();
  roots.event = sample.event_index;
  roots.names.push_back(names_->number_of(has_no_event ? "" : event, FrameKind::Group));
  for (const std::string& text : texts) roots.names.push_back(names_->number_of(text, FrameKind::Group));
  roots.code = &names_->code_below(texts.empty() ? "" : texts.front());
  return known->second;
}

void StackSums::name_new_rows() {
  while (of_rows_.size() < profile_.rows().size()) {
    const auto row = id_of<RowId>(of_rows_.size());
    const Roots& roots = roots_of(row);
    stack_ = roots.names;
    roots.code->append(profile_.stack_of(row)->frames, FrameNames::Order::RootFirst, stack_);
    of_rows_.push_back(stacks_->id_of(stack_));
  }
}

}  // namespace tacho::report
