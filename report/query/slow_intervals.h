// Which samples a thread had in the slowest of its intervals, and which in the others. An event whose payload
// has a latency ends an interval of the thread that it was taken in: from that long before to the event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sample_condition.h"
#include "report/samples/session.h"

namespace tacho::report {

struct SlowQuestion {
  double share = 0;  // of all intervals: 0.01 are the slowest 1 %; 0: see `condition`
  std::shared_ptr<SampleCondition> condition;  // of the events: which intervals are slow; null: see `share`
  std::string of;                              // EVENT or EVENT.FIELD; empty: the only event with a latency
  bool is_asked_for() const { return share > 0 || condition != nullptr; }
};

// "1%", "0.1%": a share above 0 and below 1.
Result<double> parse_slow_share(std::string_view option, std::string_view text);

class SlowIntervals {
 public:
  // Once the events are known. An error of the use: there is no such latency, or there are several. The
  // session must outlive this.
  static Result<SlowIntervals> find(Session& session, const SlowQuestion& question);

  // The event whose samples end intervals.
  std::size_t event() const { return event_; }
  void end(const ResolvedSample& sample);
  // A sample of another event, which counts `weight`; `row` comes back with it.
  void see(const ResolvedSample& sample, std::uint32_t row, std::uint64_t weight);

  // After the last sample: of each that lies in an interval whether that is a slow one. Intervals may lie in
  // each other: what lies in a slow one is slow.
  enum class Side : std::uint8_t { Slow, Other };
  using Take = std::function<void(std::uint32_t row, Side side, std::uint64_t weight)>;
  void split(const Take& take);

  // After split(), lines for people: what the sides are, and why one of them may be empty.
  std::vector<std::string> legend() const;
  std::vector<std::string> notes() const;

 private:
  // 32 bytes for each, as long as the capture is read.
  struct Interval {
    std::uint64_t begin = 0, end = 0;  // ns; the latency is the field's, which `begin` may have cut off
    std::uint64_t latency = 0;
    std::uint32_t tid = 0;
    bool is_slow = false;
  };
  struct Seen {
    std::uint64_t time = 0, weight = 0;
    std::uint32_t row = 0, tid = 0;
  };
  SlowIntervals(Session& session, const SlowQuestion& question) : session_(&session), question_(&question) {}
  void choose();

  Session* session_;
  const SlowQuestion* question_;
  std::size_t event_ = 0;
  std::string name_;  // "syscall: lat_ns", safe to print
  PayloadField field_;
  std::uint64_t unit_ = 1;  // ns
  std::vector<Interval> intervals_;
  std::vector<Seen> seen_;
  std::uint64_t without_latency_ = 0;
  std::size_t slow_intervals_ = 0, slow_samples_ = 0, other_samples_ = 0;
  std::uint64_t least_slow_ = 0;  // ns
};

}  // namespace tacho::report
