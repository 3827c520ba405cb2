// SumView: a view whose samples are added up by several threads. It gets each group of samples once, in the
// order of the groups' first samples, and the sums at the end (sums.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "format/records/event_set.h"
#include "format/records/sample.h"
#include "report/samples/ids.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sink.h"

namespace tacho::report {

// What samples are grouped by, besides the event.
struct SumShape {
  bool by_stack = true;
  bool by_location = true;  // by the location of the sample's ip; always true without by_stack
  bool by_comm = true;
  bool by_thread = false;
  bool needs_stack = false;  // leave out samples without a call chain
  // Which samples of period 0 count as 1: those of BPF programs (ResolvedSample::counted_period()), all,
  // none.
  enum class ZeroPeriods : std::uint8_t { CountForBpf, Count, Keep };
  ZeroPeriods zero_periods = ZeroPeriods::CountForBpf;
  // Addresses: there are as many groups as distinct stacks. Otherwise there are few, and lanes empty tables
  // that get large.
  Sink::MergeBy merge_by = Sink::MergeBy::Address;
};

// Facts of all samples, including samples without a stack, which needs_stack leaves out.
struct SumTotals {
  std::uint64_t samples = 0;
  // ns, of samples with PERF_SAMPLE_TIME; first > last: none has a time.
  std::uint64_t first_time = ~std::uint64_t{0}, last_time = 0;
  SumTotals& operator+=(const SumTotals& other) {
    samples += other.samples;
    first_time = std::min(first_time, other.first_time);
    last_time = std::max(last_time, other.last_time);
    return *this;
  }
};

// A group: the key that its samples share, taken from the first of them.
struct SumGroup {
  std::size_t event = 0;
  const Thread* thread = nullptr;
  std::string_view comm;
  LocationId location{};         // meaningless without by_location
  const Stack* stack = nullptr;  // null: there is no call chain
  bool has_payload_stack = false;
};

// A ResolvedSample made of a group's key (pid, tid, event, thread, comm, stack), for code that takes samples.
class SumSample {
 public:
  // `group` and `events` must outlive it.
  SumSample(const SumGroup& group, const format::EventSet& events) {
    raw_.pid = group.thread->pid;
    raw_.tid = group.thread->tid;
    sample_.fields = &raw_;
    sample_.events = &events;
    sample_.event_index = sample_.record_event = group.event;
    sample_.thread = group.thread;
    sample_.comm = group.comm;
    sample_.stack = group.stack;
  }
  SumSample(const SumSample&) = delete;
  SumSample& operator=(const SumSample&) = delete;
  const ResolvedSample& sample() const { return sample_; }

 private:
  format::Sample raw_;
  ResolvedSample sample_;
};

class SumView {
 public:
  virtual ~SumView() = default;
  virtual SumShape shape() const = 0;
  // The view's row of a group. Several groups may have one row. A group comes again after SumJoin emptied the
  // tables.
  virtual RowId row_of(const SumGroup& group) = 0;
  // A group's sums, when SumJoin empties the tables: all groups are counted one after another, and later no
  // row that row_of() returned before.
  virtual void count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) = 0;
  // After the last sample.
  virtual void end(const SumTotals&) {}
};

}  // namespace tacho::report
