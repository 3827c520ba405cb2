// The samples of a picture of stacks (flamegraph, folded) and their weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/profile/weight.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"

namespace tacho::report {

class StackEvents {
 public:
  // `filter`: the events of --event (event_choice.h); empty: events with the field of --weight, or all, but
  // without events of wakers where there are events of waits. `weight`: of --weight; empty: the field with
  // role:weight, else the period. `as_perl`: as stackcollapse-perf.pl, without a filter: the first event, and
  // all tracepoints, whose lines it does not distinguish. The session must outlive this.
  StackEvents(Session& session, std::string filter, std::string weight, bool as_perl);

  bool takes(const ResolvedSample& sample);
  // Whether weights are fields of payloads or tracepoints, for the events known so far.
  bool reads_fields();
  // Whether each sample counts for 1.
  bool counts_samples() const { return weight_ == "samples"; }
  // The weight of a taken sample. Nothing: its field cannot be read, or is not above 0.
  std::optional<std::uint64_t> weight_of(const ResolvedSample& sample);
  // The event's name as perf script prints it after the period.
  const std::string& name_of(const ResolvedSample& sample) const { return facts_[sample.event_index].name; }

  // An error when no event has the filter's name, or none a field of the weight's; known after reading.
  Result<> check();
  // Notes: choices that no option made, and why there may be no stacks.
  std::vector<std::string> notes(bool has_stacks);

 private:
  // The facts of an event that decide whether its samples are taken.
  struct EventFacts {
    std::string name;
    bool is_asked_for = false;
    bool is_told_by_line = false;          // as_perl: the event is in the line of perf's text
    const PayloadField* weight = nullptr;  // the default weight
    bool has_named_weight = false;         // the field that --weight names
    bool tells_wakes = false;              // an event of wakers
    std::optional<bool> is_taken;          // once that is known for good
    bool has_stacks = false;
  };
  void learn();
  bool names_field() const { return !weight_.empty() && weight_ != "period" && weight_ != "samples"; }
  std::string why_without_stacks();
  const PayloadField* field_with(std::size_t event, std::string_view role);
  std::optional<std::uint64_t> field_weight(const PayloadField& field, const ResolvedSample& sample);

  Session* session_;
  std::string asked_for_, weight_;
  bool as_perl_;
  EventSchemas schemas_;
  std::string first_;              // as_perl: the event that is taken, met first
  std::vector<EventFacts> facts_;  // by the event's index
  bool has_waits_ = false;         // an event that is one
  bool has_named_weight_ = false;  // an event with the field that --weight names
  std::uint64_t unreadable_ = 0;   // samples of events without the field that weighs
  Unweighed unweighed_;            // not yet reported
  bool has_unweighed_ = false;     // any, so far
};

// How a view that shows only names distinguishes addresses: by function, or, with `tells_more` (it shows
// inlined calls or addresses), by address. By address as well with several events, as samples without weight
// need no names; in a pipe, where build ids may come last; and after unwinding, which has inlined calls.
Sink::Places places_of_stacks(Session& session, bool tells_more);

}  // namespace tacho::report
