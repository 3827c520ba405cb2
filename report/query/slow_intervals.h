// Splits samples into those taken during slow intervals of their thread and the others (--slowest). An event
// with a latency in its payload (a request, a call) ends an interval of its thread, which began that long
// before.
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
  double share = 0;                            // --slowest: 0.01 takes the slowest 1 % of all intervals
  std::shared_ptr<SampleCondition> condition;  // --slow-where: an interval is slow if its event matches
  std::string of;                              // EVENT or EVENT.FIELD; empty: the only event with a latency
  bool is_asked_for() const { return share > 0 || condition != nullptr; }
};

// "1%", "0.1%": a share above 0 and below 1.
Result<double> parse_slow_share(std::string_view option, std::string_view text);

class SlowIntervals {
 public:
  // To be called once the session's events are known. Refused when no event, or more than one, has such a
  // latency. The session must outlive this.
  static Result<SlowIntervals> find(Session& session, const SlowQuestion& question);

  // The event whose samples end intervals.
  std::size_t event() const { return event_; }
  void end(const ResolvedSample& sample);
  // A sample of another event. split() passes `row` and `weight` on.
  void see(const ResolvedSample& sample, std::uint32_t row, std::uint64_t weight);

  // To be called after the last sample. Calls `take` for every sample inside an interval. Intervals may be
  // nested: a sample is slow if any of the intervals around it is.
  enum class Side : std::uint8_t { Slow, Other };
  using Take = std::function<void(std::uint32_t row, Side side, std::uint64_t weight)>;
  void split(const Take& take);

  // After split(): lines that describe the two sides, and why one of them may be empty.
  std::vector<std::string> legend() const;
  std::vector<std::string> notes() const;

 private:
  // 32 bytes, kept for each interval until split().
  struct Interval {
    std::uint64_t begin = 0, end = 0;  // ns; `begin` is never before 0
    std::uint64_t latency = 0;         // ns, of the field
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
