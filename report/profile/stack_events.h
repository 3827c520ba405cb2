// Which samples stand in a picture of stacks, and what each one weighs.
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
  // `filter`: the events that are asked for (event_choice.h); empty: those that have the field which --weight
  // names, or all but those that tell who ended waits where the waits are events too. `weight`: what --weight
  // asks for; empty: the field tagged role:weight, else the period. `as_perl`: without a filter the first
  // event met and those of all tracepoints, as no line of perf's tells these apart. The session must outlive
  // this.
  StackEvents(Session& session, std::string filter, std::string weight, bool as_perl);

  bool takes(const ResolvedSample& sample);
  // Whether weights are fields of payloads or tracepoints, of the events that are known by now.
  bool reads_fields();
  // Of a sample that is taken. Nothing: its field cannot be read, or is not above 0.
  std::optional<std::uint64_t> weight_of(const ResolvedSample& sample);
  // As the line of perf's text tells it, behind the period.
  const std::string& name_of(const ResolvedSample& sample) const { return facts_[sample.event_index].name; }

  // The filter names no event of the capture, or the weight no field; known once the capture was read.
  Result<> check();
  // What was decided without being asked for, and why there may be no stacks.
  std::vector<std::string> notes(bool has_stacks);

 private:
  // What decides whether an event's samples are taken.
  struct EventFacts {
    std::string name;
    bool is_asked_for = false;
    bool is_told_by_line = false;          // as_perl: a line of perf's text says whose sample it is
    const PayloadField* weight = nullptr;  // what stacks are weighed by when nobody says
    bool has_named_weight = false;         // the field that --weight names
    bool tells_wakes = false;              // who ended waits, not what was waited for
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

// What tells places apart for a view that shows names alone; `tells_more`: it shows inlined calls or
// addresses too. Of several events some samples are left out, as of payloads that weigh nothing, and so are
// the names of their places: then nothing is named before. A pipe may tell build ids at its end. Unwound
// places have inlined calls.
Sink::Places places_of_stacks(Session& session, bool tells_more);

}  // namespace tacho::report
