// The events whose samples make a picture of stacks, and the weights of these samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/profile/weight.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"

namespace tacho::report {

// The samples of a picture of stacks (flamegraph, folded), and their weights.
class StackEvents {
 public:
  // `filter`: --event (event_choice.h); empty: events with the field of --weight, or else all events, but no
  // waker events if there are waits. `weight`: --weight; empty: the field with role:weight, else the period.
  // `as_perl`: as stackcollapse-perf.pl, without a filter: the first event and all tracepoints, whose lines
  // it cannot distinguish. The session must outlive this.
  StackEvents(Session& session, std::string filter, std::string weight, bool as_perl);

  bool takes(const ResolvedSample& sample);
  // Whether weights are fields of payloads or tracepoints, for the events known so far.
  bool reads_fields();
  // Whether each sample counts for 1.
  bool counts_samples() const { return weight_ == "samples"; }
  // The weight of a taken sample. nullopt: its field cannot be read, or is not above 0.
  std::optional<std::uint64_t> weight_of(const ResolvedSample& sample);
  // The event's name as perf script prints it after the period.
  const std::string& name_of(const ResolvedSample& sample) const { return facts_[sample.event_index].name; }

  // After reading: an error if no event has the name in the filter, or none the field of the weight.
  Result<> check();
  // Notes about defaults that were chosen, and about missing stacks. `Several::Apart`: events whose weights
  // have different units are not shown together; Compared: no two events are, which needs no note.
  enum class Several : std::uint8_t { Together, Apart, Compared };
  std::vector<std::string> notes(bool has_stacks, Several several_are = Several::Together);

 private:
  // The facts of an event that decide whether its samples are taken.
  struct EventFacts {
    std::string name;
    bool is_asked_for = false;
    bool is_in_line = false;               // as_perl: perf's line has its name where the script looks
    const PayloadField* weight = nullptr;  // the default weight
    bool has_named_weight = false;         // has the field of --weight
    bool is_of_wakers = false;             // an event of wakers
    std::optional<bool> is_taken;          // set when it is final
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
  std::string first_;              // as_perl: the first event that was met, which is taken
  std::vector<EventFacts> facts_;  // by the event's index
  bool has_waits_ = false;         // some event is a wait
  bool has_named_weight_ = false;  // some event has the field of --weight
  std::uint64_t unreadable_ = 0;   // samples of events without the field of --weight
  Unweighed unweighed_;            // not yet reported
  bool has_unweighed_ = false;     // whether there were any
};

// How a view that shows only names distinguishes addresses: by function; or by address with `shows_more` (it
// shows inlined calls or addresses), with several events (samples without weight need no names), in a pipe
// (build ids may come last), and after unwinding (which has inlined calls).
Sink::MergeBy stack_merge_by(Session& session, bool shows_more);

}  // namespace tacho::report
