// The states of threads in a page, as columns of numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "report/output/field_sinks.h"
#include "report/output/packed_data.h"
#include "report/profile/wall_times.h"
#include "report/samples/filter.h"
#include "report/views/page/page_samples.h"

namespace tacho::report {

// What a page has of a wait.
struct PageWait {
  std::optional<std::uint32_t> sample;  // number in the page of the sample that has its stack
  Waker waker;                          // comm empty and tid 0: not known
};
using WaitOfPage = std::function<PageWait(std::uint32_t kept, std::uint32_t facts)>;

// States of threads are numbers of "state_names" in the head of the page. The columns:
//   state.thread, .start, .count  of each thread: its number, when it began, how many intervals follow
//   state.length, .state  of each interval
//   state.sample  of each interval: the number of its sample plus 1; 0: none
//   state.waker   of each interval; 0: none, 1: an interrupt, 2: a timer, else the number of a thread plus 3
//   state.cpu     of each interval: the CPU that the thread got when the wait ended, plus 1; 0: none
//   state.sums    of each thread: ns in each state, over all its time (tacho folded --wall)
//
// Times outside of [first, last] are left out, but for the sums.
std::vector<PackedColumn> state_columns(const WallTimes& times, PageSamples& samples,
                                        const Filter::TimeRange& range, const WaitOfPage& wait_of);
void describe_states(JsonFields& to);

// Finds the waits in the samples of a page. Without waits in the capture there is none.
class PageStates {
 public:
  // Moves conditions on threads and times out of the session's filter: the reader of the samples must apply
  // them. Nullptr: the capture has no waits, or options leave out samples that say how they end.
  static std::unique_ptr<PageStates> find(Session& session);

  // Takes each sample after the page; `number`: its number in the page.
  void take_sample(const ResolvedSample& sample, std::optional<std::uint32_t> number);
  void take_record(const NonSampleRecord& event) { times_.take(event); }
  // After the last sample.
  std::vector<PackedColumn> columns(PageSamples& samples);

 private:
  PageStates(Session& session, const WaitOptions& options, const Filter::TimeRange& range);
  std::uint32_t facts_of(const Wait& wait);

  Filter::TimeRange range_;
  std::uint32_t last_ = 0;  // the number in the page of the sample that is taken, plus 1; 0: none
  std::vector<Waker> wakers_{{}};
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string_view>, std::uint32_t> waker_numbers_;
  WallTimes times_;
};

}  // namespace tacho::report
