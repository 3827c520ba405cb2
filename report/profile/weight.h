// The weight of a sample (the event's period, 1, or a field of its payload or tracepoint), and the
// samples of a picture of stacks with their weights.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/records/event_set.h"
#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"

namespace tacho::report {

// Samples that a field of the payload cannot weigh. They are left out.
struct Unweighed {
  std::uint64_t damaged = 0;   // the payload is too short for the field
  std::uint64_t negative = 0;  // the field is negative
  void report(format::Diagnostics& diagnostics) const;
};

// The events whose period is a field of the payload, as recorders set it (docs/capture-format.md): the field
// tagged role:weight; for samples counted in the kernel the final value, else the sum, else the count; else
// the value. Other recorders may set other periods, so each sample is compared.
class PeriodFields {
 public:
  // `schemas` must outlive this.
  explicit PeriodFields(EventSchemas& schemas) : schemas_(&schemas) {}

  // Whether see() reads payloads, for the first `events` events.
  bool reads_payloads(std::size_t events);
  void see(const ResolvedSample& sample);
  // Null: the periods so far differ from the field, or there is no sample yet.
  const PayloadField* of(std::size_t event) const {
    return event < events_.size() && events_[event].is_seen ? events_[event].field : nullptr;
  }

 private:
  struct EventFacts {
    const PayloadField* field = nullptr;
    bool is_seen = false;
  };
  EventFacts& facts_of(std::size_t event);
  EventSchemas* schemas_;
  std::vector<EventFacts> events_;
};

// The unit of a weight, as text: "ns", "bytes", "samples", or the event's name. `what`: as for WeightChoice;
// `schema` may be null; `period`: from PeriodFields.
std::string weight_unit(std::string_view what, const format::Event& event, const PayloadSchema* schema,
                        const PayloadField* period);

// The weight of one sample: the event's period, 1, or a field of its payload or tracepoint.
class WeightChoice {
 public:
  // `what`: "period", "samples" or a field's name; empty: the payload's field tagged role:weight, if there is
  // one, else the period. The events must be known, and `schemas` must outlive this. `keeps_zero`: a period
  // of 0 is one, as in perf, also of BPF programs.
  WeightChoice(std::string_view what, std::size_t events, EventSchemas& schemas, bool keeps_zero = false);

  // nullopt: the field is unweighed(), or the event has no such field.
  std::optional<std::uint64_t> of(const ResolvedSample& sample);

  // Whether every sample counts for its period or for 1; and the weight of an event's samples in that case.
  bool is_of_sums() const;
  std::uint64_t of_sum(std::size_t event, std::uint64_t period, std::uint64_t samples) const {
    return event < by_event_.size() && by_event_[event].kind == Kind::One ? samples : period;
  }
  // Whether it reads fields of payloads.
  bool reads_payloads() const;
  std::uint64_t unreadable() const { return unreadable_; }  // samples of events without the field
  const Unweighed& unweighed() const { return unweighed_; }
  // The fields that were chosen because of their role, for a note; empty: none.
  std::string chosen_by_role() const;

 private:
  enum class Kind : std::uint8_t { Period, One, Field, None };
  struct Choice {
    Kind kind = Kind::Period;
    const PayloadField* field = nullptr;
    bool is_by_role = false;
  };
  bool keeps_zero_;
  std::vector<Choice> by_event_;
  std::uint64_t unreadable_ = 0;
  Unweighed unweighed_;
};

struct Bucket {
  Int128 low = 0, high = 0;  // inclusive, from kLowest to kHighest
  std::uint64_t count = 0;
  std::uint64_t left_out = 0;  // number of empty buckets before it that are left out
};

// A histogram: buckets are powers of two, or steps of equal width.
class Distribution {
 public:
  // `step` 0: powers of two, as in bcc: 0 and 1 share the first bucket, then 2-3, 4-7, ...; negative values
  // mirror them: -1, -3 to -2, -7 to -4. With `bits` (up to kMostBits) each power of two has 2^bits buckets
  // of equal width, if it has so many values, and 0 and 1 have one each. Else buckets of `step` values, one
  // of which begins at 0.
  explicit Distribution(std::uint64_t step = 0, int bits = 0)
      : step_(std::min(step, kWidestStep)), bits_(std::clamp(bits, 0, kMostBits)) {}
  static constexpr int kMostBits = 6;

  void add_value(Int128 value, std::uint64_t count = 1);

  // All buckets from the lowest to the highest with a count. Empty ones between are included; with steps and
  // parts of powers, long gaps are left out and counted.
  std::vector<Bucket> buckets() const;
  bool has_steps() const { return step_ != 0; }
  std::uint64_t total() const { return total_; }

  // The index of a value's bucket, ascending with values; and the bucket itself, without a count. Values
  // beyond kLowest and kHighest are in the buckets of these.
  Int128 index_of(Int128 value) const;
  Bucket bucket_at(Int128 index) const;

 private:
  static constexpr std::uint64_t kWidestStep = std::uint64_t{1} << 62;
  std::uint64_t step_;
  int bits_;
  std::map<Int128, std::uint64_t> counts_;  // by bucket index, ascending
  std::uint64_t total_ = 0;
};

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
