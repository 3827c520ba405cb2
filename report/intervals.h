// --interval of a view: time is divided into intervals of equal length, and the view prints each by itself.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "format/container/environment.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// The option --interval: seconds, or a number with ns, us, ms or s. `help` says what the view prints for each
// interval. Parsing sets `length` (ns), which must outlive it.
cli::Option interval_option(std::string help, std::uint64_t& length);

// Divides samples by time. The first interval starts at the first sample, or where that sample's reading
// starts (see Readings). Intervals without samples are skipped.
class Intervals {
 public:
  // `length` in ns; 0: no --interval, so all samples are in one interval.
  explicit Intervals(std::uint64_t length) : length_(length) {}

  bool is_on() const { return length_ != 0; }
  std::uint64_t length() const { return length_; }  // ns
  // The start of the current interval, in seconds.
  double begin_seconds() const { return static_cast<double>(begin_) / 1e9; }

  // False for a sample without a time (its event was recorded without them), which is in no interval. Such
  // samples are counted.
  bool has(const ResolvedSample& sample) {
    if (length_ == 0 || (*sample.events)[sample.record_event].attr.samples(format::abi::kSampleTime))
      return true;
    ++timeless_[sample.event_index];
    return false;
  }
  // A note: "3 samples of 'page-faults' have no time ..."; empty when all samples have one.
  std::string samples_without_times(const format::EventSet& events) const;

  // To be called before a sample of this time (ns) is added. When the sample is in a later interval, calls
  // `write` to print the current one.
  template <class Write>
  void move_to(std::uint64_t time, Write&& write) {
    if (length_ == 0) return;
    if (!is_begun_) {
      begin_ = time;
      is_begun_ = true;
      begun_ = Clock::now();
    }
    if (time < begin_ || time - begin_ < length_) return;
    write();
    begin_ += (time - begin_) / length_ * length_;
    begun_ = Clock::now();
  }

  // Moves the start of the current interval `by` ns back if it is at `time`.
  void begin_earlier(std::uint64_t time, std::uint64_t by) {
    if (is_begun_ && begin_ == time) begin_ -= std::min(by, begin_);
  }

  // While a capture grows (--follow): calls `write` when the interval is over by the wall clock, so that it
  // is printed before a later sample comes. To be called when the interval has samples.
  template <class Write>
  void move_by_clock(Write&& write) {
    const auto now = Clock::now();
    if (length_ == 0 || !is_begun_ || now - begun_ < std::chrono::nanoseconds(length_)) return;
    write();
    begin_ += length_;
    begun_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t length_;
  std::uint64_t begin_ = 0;  // ns
  Clock::time_point begun_;  // wall clock when the current interval started
  bool is_begun_ = false;
  std::map<std::size_t, std::uint64_t> timeless_;  // samples without a time, by index of the event
};

// The readings of one event whose samples hold counts. A BPF recorder counts in the kernel and reads all its
// counters at once, at an interval; the samples have the time of the reading, but count what happened before
// it. The samples do not say how long before: a reading of nothing leaves no sample, and filters drop some.
// So the shortest time between two readings so far is taken as the interval of the readings. (The last
// reading, at the end of the recording, comes sooner after the one before it.)
class Readings {
 public:
  // The time (ns) to which a sample's counts belong: the middle of the time that its reading covers, so that
  // a reading slightly early or late falls into the same interval. The first reading is taken to cover as
  // much time as the second, once that comes.
  std::uint64_t time_of(std::uint64_t time, Intervals& intervals) {
    if (time == last_) return middle_;
    if (count_ > 0 && time > last_) shortest_ = std::min({shortest_, time - last_, intervals.length()});
    const std::uint64_t since = count_ == 0 || time < last_ ? 0 : shortest_;
    if (count_ == 1) intervals.begin_earlier(last_, since);
    count_ = std::min(count_ + 1, 2);
    last_ = time;
    return middle_ = time - since / 2;
  }

  // All samples came with one reading.
  bool is_one() const { return count_ == 1; }

 private:
  std::uint64_t last_ = 0, middle_ = 0;
  std::uint64_t shortest_ = ~std::uint64_t{0};  // ns
  int count_ = 0;                               // readings so far: 0, 1, or 2 for more
};

// A note when `length` (ns, of the view's --interval) is no multiple of the recorder's --interval, which the
// capture's command line has, or when the recorder read `event` only once. Empty otherwise.
std::string note_on_readings(std::string_view event, const format::Environment& environment,
                             const Readings& readings, std::uint64_t length);

}  // namespace tacho::report
