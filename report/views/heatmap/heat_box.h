// Explains a box of a heat map (--box): threads, functions, stacks and field values that are more frequent in
// the box than outside, ranked by G2.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/intervals.h"
#include "report/output/text_output.h"
#include "report/profile/distribution.h"
#include "report/profile/field_key.h"
#include "report/profile/function.h"
#include "report/profile/function_table.h"
#include "report/profile/named_rows.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"
#include "report/views/heatmap/heat_forms.h"
#include "report/views/heatmap/heat_map.h"

namespace tacho::report {

// Numbers of samples in the box and outside of it.
struct Tally {
  std::uint64_t inside = 0, outside = 0;
  bool operator==(const Tally&) const = default;
  Tally& operator+=(const Tally& other) {
    inside += other.inside;
    outside += other.outside;
    return *this;
  }
  void add_samples(bool is_inside, std::uint64_t count) { (is_inside ? inside : outside) += count; }
};

// The log-likelihood ratio G2 of the 2x2 table of `part` and `whole`: how unlikely this many samples in the
// box are by chance. Chance exceeds 10.83 once in a thousand.
double log_likelihood_ratio(const Tally& part, const Tally& whole);
constexpr double kLeastG2 = 10.83;

// A property that is more frequent in the box than outside.
struct Finding {
  enum class Kind : std::uint8_t { Thread, Field, Function, Stack };
  Kind kind = Kind::Thread;
  std::string name;                 // of a thread, a field, a function; of a stack its functions, root first
  std::string value;                // of a field; a thread's "pid/tid"; a function's module
  std::vector<std::string> frames;  // of a stack, root first
  std::vector<std::string> same_counts;  // functions with the same counts: callers and callees of this one
  std::size_t depth = 0;                 // of a function: its largest depth in a stack
  Tally tally;
  double g2 = 0;
};

class BoxSink : public Sink {
 public:
  // The session and the source must outlive this.
  BoxSink(Session& session, HeatSource& source, const HeatBox& box)
      : session_(session),
        source_(source),
        box_(box),
        functions_(session, ChainKey::Function, Grain::Names),
        stacks_(functions_, {ChainOrder::Caller}) {}

  Flow on_sample(const ResolvedSample& sample) override;
  // After the run: the statistically significant findings, largest G2 first. Functions with equal counts are
  // one finding.
  std::vector<Finding> findings(Names names);

  const Tally& all() const { return all_; }
  bool has_stacks() const { return has_stacks_; }  // of samples in the box
  // By number: whether the event has samples in the box.
  const std::vector<bool>& events_inside() const { return events_inside_; }
  // Names of fields with more values than are ranked: the values that came last are left out.
  const std::vector<std::string>& overfull() const { return overfull_; }
  std::string samples_without_times() const { return times_.samples_without_times(session_.events()); }

 private:
  static constexpr std::size_t kMostNumbers = 4096, kMostTexts = 65536;
  // The values of one field. Each number is counted, until there are too many, and also its power of two.
  struct Facet {
    explicit Facet(FieldKey field) : key(std::move(field)) {}
    FieldKey key;
    bool has_ranges = false;
    bool is_overfull = false;
    std::map<KeyValue, Tally, KeyValueLess> values;
    std::map<Int128, Tally> ranges;  // by the number of a Distribution's bucket
  };
  struct ThreadKey {
    std::uint32_t pid = 0, tid = 0;
    const char* comm = nullptr;  // equal names share their bytes
    auto operator<=>(const ThreadKey&) const = default;
  };
  struct ThreadCount {
    std::string_view comm;
    Tally tally;
  };

  std::vector<Facet>& facets_of(std::size_t event);
  void add_fields(const ResolvedSample& sample, bool is_inside, std::uint64_t count);
  void add_stack(const ResolvedSample& sample, bool is_inside, std::uint64_t count);
  void find_fields(std::vector<Finding>& found, Names names);
  void find_functions(std::vector<Finding>& found, Names names) const;
  // Appends a finding if it is significant; null: it is not.
  Finding* add_finding(std::vector<Finding>& found, Finding finding) const;
  std::string name_of(FunctionId function, Names names) const;

  Session& session_;
  HeatSource& source_;
  HeatBox box_;
  Tally all_;
  std::deque<std::vector<Facet>> facets_;  // by event
  std::vector<bool> has_facets_;
  PayloadSchema no_payload_;
  std::map<ThreadKey, ThreadCount> threads_;
  FunctionTable functions_;
  FunctionStacks stacks_;
  IdMap<StackId, ChainId> chain_of_stack_{kNo<ChainId>};
  IdVector<ChainId, Tally> chains_;
  std::map<FunctionId, Tally> by_function_;  // functions of samples without a call chain
  Distribution powers_;
  bool has_stacks_ = false;
  std::vector<bool> events_inside_;
  std::vector<std::string> overfull_;
  Intervals times_{1};  // for samples_without_times() only
};

// What the text and the JSON object have beside the findings.
struct BoxFacts {
  HeatBox box;
  std::string flamegraph;      // the command that draws the box's samples; empty: there is none
  std::string samples;         // the command that prints them
  std::size_t top = 0;         // rows; 0: all
  std::size_t line_width = 0;  // in characters; 0: any
};
void write_box_text(TextOutput& out, const HeatFacts& facts, const BoxFacts& box, const Tally& all,
                    const std::vector<Finding>& findings);
void write_box_json(TextOutput& out, const HeatFacts& facts, const BoxFacts& box, const Tally& all,
                    const std::vector<Finding>& findings);

}  // namespace tacho::report
