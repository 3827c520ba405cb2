// Splits samples into those taken during slow intervals of their thread, and the others (--slowest). An
// interval ends with an event that has a latency in its payload (a request, a call), and began that long
// before; or it is the time between two plain events with one key (--between).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/profile/field_key.h"
#include "report/samples/filter.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"

namespace tacho::report {

struct SlowQuestion {
  double share = 0;                            // --slowest: 0.01 takes the slowest 1 % of all intervals
  std::shared_ptr<SampleCondition> condition;  // --slow-where: an interval is slow if its event matches
  std::string of;                              // EVENT or EVENT.FIELD; empty: the only event with a latency
  PairQuestion pairs;                          // of two plain events; empty: see `of`
  bool is_asked_for() const { return share > 0 || condition != nullptr; }
};

// Adds --slowest, --slow-where, --of, --between and --key. `shows`: what the view does with the two sides, as
// the start of a sentence.
void add_slow_options(std::vector<cli::Option>& rows, SlowQuestion& slow, std::string_view shows);
// Call it after parsing. A usage error: options do not go together.
Result<> check_slow(const SlowQuestion& slow);

// An operation of a thread.
struct SlowInterval {
  std::uint64_t begin = 0, end = 0;  // ns; `begin` is never before 0
  std::uint64_t latency = 0;         // ns, from the field
  std::uint32_t tid = 0;
  bool is_slow = false;
};

class SlowIntervals {
 public:
  // To be called once the session's events are known. Refused when no event, or more than one, has such a
  // latency. The session must outlive this.
  static Result<SlowIntervals> find(Session& session, const SlowQuestion& question);

  // Whether the sample's event begins or ends intervals: then the sample is used for that. Call it for all
  // samples in order.
  bool take(const ResolvedSample& sample);
  // A sample of another event. split() passes `row` and `weight` on.
  void see(const ResolvedSample& sample, RowId row, std::uint64_t weight);

  // Call it after the last sample. Calls `take` for every sample inside an interval. Intervals may be nested:
  // a sample is slow if any of the intervals around it is.
  enum class Side : std::uint8_t { Slow, Other };
  using Take = std::function<void(RowId row, Side side, std::uint64_t weight)>;
  void split(const Take& take);

  // Instead of split(), for views of times: the intervals, of which the slow ones are known.
  const std::vector<SlowInterval>& choose_slow();
  // "syscall.lat_ns", "a to b"; safe to print.
  const std::string& name() const { return name_; }

  // After split(): lines that describe the two sides, and why one of them may be empty.
  std::vector<std::string> legend() const;
  std::vector<std::string> notes() const;

 private:
  struct Seen {
    std::uint64_t time = 0, weight = 0;
    RowId row{};
    std::uint32_t tid = 0;
  };
  SlowIntervals(Session& session, const SlowQuestion& question) : session_(&session), question_(&question) {}
  Result<> find_pairs(const std::vector<std::string>& names);
  Result<> find_latency(const std::vector<std::string>& names);
  void add(const ResolvedSample& ended, std::uint64_t latency);
  void choose();

  Session* session_;
  const SlowQuestion* question_;
  std::size_t event_ = 0;                  // ends intervals
  std::string name_;                       // "syscall.lat_ns", "a to b", safe to print
  std::unique_ptr<EventSchemas> schemas_;  // for the keys of pairs
  std::optional<EventPairs> pairs_;
  PayloadField field_;
  std::uint64_t unit_ = 1;               // ns
  std::vector<SlowInterval> intervals_;  // kept until split()
  std::vector<Seen> seen_;
  std::uint64_t without_latency_ = 0;
  std::size_t slow_intervals_ = 0, slow_samples_ = 0, other_samples_ = 0;
  std::uint64_t least_slow_ = 0;  // ns
};

}  // namespace tacho::report
