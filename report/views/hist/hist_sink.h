// Collects the values of a field by group and prints a histogram for each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/expression.h"
#include "report/command.h"
#include "report/intervals.h"
#include "report/output/text_output.h"
#include "report/profile/distribution.h"
#include "report/profile/field_key.h"
#include "report/query/expressions.h"
#include "report/query/field_choice.h"

namespace tacho::report {

// The maximum number of rows. There can be any number of linear rows, but only some thousand logarithmic
// ones.
enum class Rows : std::uint8_t { Thousand, All };

// Prints a distribution as rows with bars, in the form of bcc's tools. `label` is the heading of the values:
// "bytes", "latency (ns)". If there are too many rows, a line replaces the last ones.
void write_distribution(TextBuffer& out, std::string_view label, const std::vector<Bucket>& buckets,
                        Rows rows = Rows::Thousand);

// A row of a table of values (texts, enums) with their counts.
struct ValueCount {
  std::string value;  // as it is printed
  std::uint64_t count = 0;
};

// --linear: the width of rows, in the field's own unit, or in ns or bytes when the option has a unit.
struct RowWidth {
  std::uint64_t value = 0;
  cli::NumberUnit unit = cli::NumberUnit::None;
};

// "1000", "100us".
Result<RowWidth> parse_row_width(std::string_view text);

struct HistOptions {
  ReadingOptions reading;
  std::string event, field;
  std::string by;                   // names of keys; empty: default_keys(); kNoKey: none
  RowWidth step;                    // 0: rows are powers of two
  std::uint64_t rows = 0;           // rows for each power of two, a power of two; 0: not given
  std::uint64_t top = 0;            // 0: all
  PairQuestion pairs;               // of --between
  std::uint64_t interval = 0;       // ns; 0: one histogram
  std::vector<double> percentiles;  // 0 to 100
  bool is_json = false;             // print an object for each histogram
};

class HistSink : public Sink {
 public:
  HistSink(Session& session, TextOutput& out, const HistOptions& options);

  Flow on_sample(const ResolvedSample& sample) override;
  // To be called about ten times a second while a capture grows: prints an interval of --interval that is
  // over.
  void write_finished_interval();
  // Prints the last interval, and with --follow --interval the whole capture after it.
  void finish();

  bool is_empty() const { return is_first_; }
  std::string samples_without_times() const { return intervals_.samples_without_times(session_->events()); }
  std::vector<std::string> notes() const;
  std::optional<Error> error;

 private:
  // The values of one group.
  struct Group {
    Group(std::uint64_t step, int bits) : distribution(step, bits) {}
    Distribution distribution;                               // of numbers
    std::map<KeyValue, std::uint64_t, KeyValueLess> counts;  // of fields with is_counted_by_value()
    std::uint64_t total = 0;
    Summary values;  // for percentiles
  };
  using Keys = std::vector<KeyValue>;
  using Groups = std::map<Keys, Group, KeyValuesLess>;

  Result<> choose();
  Result<ChosenField> choose_pairs(const std::vector<std::string>& names);
  std::optional<ChosenField> choose_own(const std::vector<std::string>& names);
  Result<> check_scale(const PayloadField& field) const;
  Result<std::uint64_t> step_for(const PayloadField& field) const;

  void note_truncated_payload(const std::string& event, const std::string& field) const;
  bool add_sample(Groups& groups, const ResolvedSample& sample, std::optional<std::uint64_t> between) const;
  void add_number(Group& group, Int128 number, std::uint64_t count) const;

  bool has_whole() const { return options_->reading.follows && intervals_.is_on(); }
  void write();
  std::vector<const Groups::value_type*> in_order() const;
  std::string heading(const Keys& keys, const Group& group) const;
  void write_group(const Keys& keys, const Group& group) const;
  std::vector<ValueCount> value_counts(const Group& group, Names names) const;
  void write_json(const Keys& keys, const Group& group) const;
  std::string percentiles_text(const Group& group) const;

  Session* session_;
  TextOutput* out_;
  const HistOptions* options_;
  EventSchemas schemas_;
  std::uint64_t step_;
  int bits_;
  ChosenField chosen_;                   // its field is null: not chosen yet
  const PayloadField* count_ = nullptr;  // CountedFields::count
  std::string event_;                    // name of the chosen event
  std::vector<FieldKey> keys_;
  std::optional<EventPairs> pairs_;
  std::string first_event_;        // with --between: name of the first event
  PayloadField between_;           // with --between: describes the time between the events
  const OwnValue* own_ = nullptr;  // a value that every sample has; null: a field, or times between events
  PayloadField own_field_;         // describes it
  PayloadSchema no_payload_;       // schema of events without a payload
  std::vector<std::string> notes_;
  Groups groups_, whole_;
  Intervals intervals_;
  Readings readings_;  // of samples that hold counts
  bool is_first_ = true, is_whole_ = false;
};

// The value of --by that makes a single histogram.
inline constexpr std::string_view kNoKey = "none";

}  // namespace tacho::report
