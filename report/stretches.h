// Stretches of time of equal length, one after another, for views that show each by itself (--interval).
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

// The row for --interval: seconds, or a number with ns, us, ms or s. `help` says what each stretch has.
// Sets nanoseconds; `length` must outlive the parsing.
cli::Option interval_option(std::string help, std::uint64_t& length);

// The first stretch begins with the first sample, or what that counts (see Readings); stretches without
// samples are left out.
class Stretches {
 public:
  // `length`: nanoseconds; 0: everything is one stretch.
  explicit Stretches(std::uint64_t length) : length_(length) {}

  bool are_asked_for() const { return length_ != 0; }
  std::uint64_t length() const { return length_; }  // ns
  // Seconds, of the present one's begin.
  double begin() const { return static_cast<double>(begin_) / 1e9; }

  // Whether a sample is in a stretch: one of an event that was recorded without times is in none, and is
  // counted.
  bool has(const ResolvedSample& sample) {
    if (length_ == 0 || (*sample.events)[sample.record_event].attr.samples(format::abi::kSampleTime))
      return true;
    ++timeless_[sample.event_index];
    return false;
  }
  // "3 samples of 'page-faults' have no times ..."; empty: all have.
  std::string what_has_no_times(const format::EventSet& events) const;

  // A sample of this time (ns) comes: calls `write` for what came before, where that is another stretch.
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

  // The present stretch began so much earlier (ns) than was known, if it began at `time`.
  void begin_earlier(std::uint64_t time, std::uint64_t by) {
    if (is_begun_ && begin_ == time) begin_ -= std::min(by, begin_);
  }

  // While a capture grows: a stretch that is over by the clock on the wall is not held back until a later
  // sample comes. To be called where the stretch has samples.
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
  Clock::time_point begun_;  // when that was, here
  bool is_begun_ = false;
  std::map<std::size_t, std::uint64_t> timeless_;  // samples, by number of the event
};

// Samples of one event that stand for many values each. A recorder reads these from the kernel all at once,
// at an interval, and they have the time of the reading; what they count came before it. No sample says how
// long before: a reading in which nothing was counted leaves no sample, and filters leave samples out. The
// shortest time between two readings so far is taken for it. The last reading comes when the recording ends,
// a short time after the one before.
class Readings {
 public:
  // The time (ns) at which a sample of this time counts: the middle of what its reading is of, so that it
  // does not matter when exactly it was read. How long the first reading was of is known when the second
  // comes: as long as that.
  std::uint64_t time_of(std::uint64_t time, Stretches& stretches) {
    if (time == last_) return middle_;
    if (count_ > 0 && time > last_) shortest_ = std::min({shortest_, time - last_, stretches.length()});
    const std::uint64_t since = count_ == 0 || time < last_ ? 0 : shortest_;
    if (count_ == 1) stretches.begin_earlier(last_, since);
    count_ = std::min(count_ + 1, 2);
    last_ = time;
    return middle_ = time - since / 2;
  }

  bool is_one() const { return count_ == 1; }

 private:
  std::uint64_t last_ = 0, middle_ = 0;
  std::uint64_t shortest_ = ~std::uint64_t{0};  // ns
  int count_ = 0;                               // of readings: none, one, more
};

// What to say where stretches of this length (ns) are no multiple of the interval in which the recorder read
// what `event` counts, as its command line tells that, or where it read once; empty: nothing.
std::string note_on_readings(std::string_view event, const format::Environment& environment,
                             const Readings& readings, std::uint64_t length);

}  // namespace tacho::report
