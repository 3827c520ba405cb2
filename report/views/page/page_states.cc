#include "report/views/page/page_states.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "report/profile/thread_states.h"
#include "report/samples/session.h"

namespace tacho::report {
namespace {

constexpr std::size_t kStates = static_cast<std::size_t>(WallState::Unknown) + 1;

std::uint32_t number_of_waker(const Waker& waker, PageSamples& samples) {
  if (waker.is_interrupt) return waker.comm == kTimerMark ? 2 : 1;
  return waker.tid == 0 ? 0 : samples.thread_number(waker.pid, waker.tid, waker.comm) + 3;
}

// Of each thread the ns in each state; rounded so that they add up to the sum, rounded.
PackedColumn sums_of(const WallTimes& times) {
  std::vector<std::array<double, kStates>> sums(times.threads().size());
  for (const WallRow& row : times.rows()) sums[row.thread][static_cast<std::size_t>(row.state)] += row.time;
  PackedColumn column("state.sums", ColumnForm::Wide);
  for (const auto& of_thread : sums) {
    double sum = 0;
    std::uint64_t written = 0;
    for (const double time : of_thread) {
      sum += time;
      const auto whole = static_cast<std::uint64_t>(std::llround(sum));
      column.add_number(whole - written);
      written = whole;
    }
  }
  return column;
}

WaitOptions options_of(Filter who) {
  WaitOptions options;
  options.who = std::move(who);
  return options;
}

}  // namespace

std::vector<PackedColumn> state_columns(const WallTimes& times, PageSamples& samples,
                                        const Filter::TimeRange& range, const WaitOfPage& wait_of) {
  PackedColumn thread("state.thread", ColumnForm::Numbers), start("state.start", ColumnForm::Signed),
      count("state.count", ColumnForm::Numbers), length("state.length", ColumnForm::Wide),
      state("state.state", ColumnForm::Byte), sample("state.sample", ColumnForm::Differences),
      waker("state.waker", ColumnForm::Numbers), cpu("state.cpu", ColumnForm::Numbers);
  const std::vector<std::vector<StateInterval>> states = thread_states(times);
  const std::uint64_t last = std::max(range.last, range.last + 1);  // after it nothing is shown
  for (std::size_t i = 0; i < states.size(); ++i) {
    const WallThread& one = times.threads()[i];
    const std::uint64_t first = std::max(one.begin, range.first);
    std::uint64_t kept = 0;
    thread.add_number(samples.thread_number(one.pid, one.tid, one.comm));
    start.add_signed(static_cast<std::int64_t>(first - samples.first_time()));
    for (const StateInterval& interval : states[i]) {
      const std::uint64_t begin = std::max(interval.begin, first), end = std::min(interval.end, last);
      if (begin >= end) continue;
      ++kept;
      length.add_number(end - begin);
      state.add_byte(static_cast<char>(interval.state));
      const bool is_wait = interval.kept != 0 || interval.facts != 0;
      const PageWait wait = is_wait ? wait_of(interval.kept, interval.facts) : PageWait{};
      sample.add_signed(wait.sample ? std::int64_t{*wait.sample} + 1 : 0);
      waker.add_number(number_of_waker(wait.waker, samples));
      cpu.add_number(interval.cpu == kNoCpu ? 0 : std::uint64_t{interval.cpu} + 1);
    }
    count.add_number(kept);
  }
  std::vector<PackedColumn> columns;
  for (PackedColumn* column : {&thread, &start, &count, &length, &state, &sample, &waker, &cpu})
    columns.push_back(std::move(*column));
  columns.push_back(sums_of(times));
  return columns;
}

void describe_states(JsonFields& to) {
  to.begin_list("state_names");
  for (std::size_t i = 0; i < kStates; ++i) {
    const std::string_view name = name_of(static_cast<WallState>(i));
    to.text("", std::string(name.substr(1, name.size() - 2)));  // without its brackets
  }
  to.end_list();
}

std::unique_ptr<PageStates> PageStates::find(Session& session) {
  const Filter& filter = session.filter();
  const bool leaves_out = !filter.cpus.empty() || !filter.events.empty() || filter.looks_at_names() ||
                          filter.condition != nullptr || filter.times.size() > 1;
  if (leaves_out) return nullptr;
  const Filter::TimeRange range = filter.times.empty() ? Filter::TimeRange{} : filter.times.front();
  const Filter as_it_was = filter;
  std::unique_ptr<PageStates> found(new PageStates(session, options_of(take_who(session.filter())), range));
  if (found->times_.find_events() && found->times_.has_waits()) return found;
  session.filter() = as_it_was;
  return nullptr;
}

PageStates::PageStates(Session& session, const WaitOptions& options, const Filter::TimeRange& range)
    : range_(range),
      times_(session, options,
             {.keep = [this](const ResolvedSample&) { return last_; },
              .facts_of = [this](const Wait& wait) { return facts_of(wait); }}) {}

void PageStates::take_sample(const ResolvedSample& sample, std::optional<std::uint32_t> number) {
  last_ = number ? *number + 1 : 0;
  times_.take(sample);
}

std::uint32_t PageStates::facts_of(const Wait& wait) {
  if (wait.wakers.empty()) return 0;
  const Waker& waker = wait.wakers.front();
  const std::string_view mark = waker.is_interrupt ? waker.comm : std::string_view();
  const auto [known, is_new] =
      waker_numbers_.try_emplace({waker.pid, waker.tid, mark}, static_cast<std::uint32_t>(wakers_.size()));
  if (is_new) wakers_.push_back(waker);
  return known->second;
}

std::vector<PackedColumn> PageStates::columns(PageSamples& samples) {
  times_.finish();
  Filter::TimeRange range = range_;
  // What follows the last sample of a page that has not all is not in it.
  if (samples.left_out() > 0) range.last = std::min(range.last, samples.last_time());
  return state_columns(times_, samples, range, [this](std::uint32_t kept, std::uint32_t facts) {
    PageWait wait{.waker = wakers_[facts]};
    if (kept != 0) wait.sample = kept - 1;
    return wait;
  });
}

}  // namespace tacho::report
