// A two-dimensional histogram: the number of samples in each box of time and value. Boxes are widened while
// samples come, so that one pass suffices, for a pipe too, and memory is bounded by the number of boxes.
// HeatSource: the numbers that a map shows, and their scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/intervals.h"
#include "report/profile/distribution.h"
#include "report/query/expressions.h"
#include "report/samples/session.h"

namespace tacho::report {

// The least sizes of boxes. Columns and linear rows have these sizes, or 2, 5, 10, 20, ... times these if
// there would be too many.
struct HeatScale {
  static constexpr int kMostBits = 3;
  std::uint64_t interval = 1000;                // ns of a column, at least
  bool is_linear = false;                       // rows of equal height
  std::uint64_t step = 1;                       // of linear rows, at least
  int bits = kMostBits;                         // of logarithmic rows: at most 2^bits for each power of two
  std::optional<Bucket> shown_range;            // values that have rows even without samples
  std::size_t most_columns = 0, most_rows = 0;  // at least 10
};

struct HeatMap {
  std::uint64_t begin = 0, interval = 0;  // ns: of the first column, of each
  std::size_t columns = 0;
  std::vector<Bucket> rows;           // the lowest values first; `count`: of all columns
  std::vector<std::uint64_t> counts;  // a column after the other, the lowest row first
  std::uint64_t total = 0, most = 0;  // most: of a box

  std::uint64_t at(std::size_t column, std::size_t row) const { return counts[column * rows.size() + row]; }
  std::uint64_t begin_of(std::size_t column) const { return begin + column * interval; }
  bool is_empty() const { return total == 0; }
};

class HeatGrid {
 public:
  explicit HeatGrid(const HeatScale& scale)
      : scale_(scale), interval_(scale.interval), step_(scale.step), fine_(rows_of(step_)) {}

  void add_value(std::uint64_t time, Int128 value, std::uint64_t count);
  HeatMap finish() const { return finish(scale_.most_columns, scale_.most_rows); }
  // The map of a scale with fewer columns and rows, at least a tenth of this scale's.
  HeatMap finish(std::size_t most_columns, std::size_t most_rows) const;

 private:
  // A box of the internal grid, which has up to ten times as many columns and rows as the map.
  struct Key {
    std::uint64_t column = 0;
    Int128 row = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return (key.column * 0x9e3779b97f4a7c15U) ^ (static_cast<std::uint64_t>(key.row) * 0xc2b2ae3d27d4eb4fU);
    }
  };
  Distribution rows_of(std::uint64_t step) const {
    return scale_.is_linear ? Distribution(step) : Distribution(0, scale_.bits);
  }
  void widen();
  Distribution shown_rows(std::size_t most_rows) const;

  HeatScale scale_;
  std::uint64_t interval_, step_;                       // at present
  Distribution fine_;                                   // rows at present
  std::unordered_map<Key, std::uint64_t, Hash> cells_;  // samples of each box
  std::uint64_t first_ = 0, last_ = 0;                  // ns
  Int128 lowest_ = 0, highest_ = 0;                     // values
  std::uint64_t total_ = 0;
};

// Which samples and which of their values a heat map shows.
struct HeatRequest {
  std::string event, field;  // of --event and --field; empty: not given
  bool is_offset = false;
  std::string input;         // the capture, for messages
  std::uint64_t period = 0;  // ns: offsets are in this; 0: in a second, or less where the capture is short
};

// The period of offsets that suits a capture: a second, or in one below ten seconds the part of a second that
// makes 30 to 66 columns.
std::uint64_t usual_period(Session& session);

// The samples of a heat map and their values: a field of the payload or of every sample, or the offset of the
// sample's time in its second or another period.
class HeatSource {
 public:
  // To be called when the session's events are known. By default the roles and units of payloads choose the
  // field; without such a field values are offsets. A usage error lists the fields. The session must outlive
  // this, and this must not be moved.
  Result<> find_events(const HeatRequest& request, Session& session);

  bool takes(std::size_t event) const { return event < taken_.size() ? taken_[event] : takes_unknown_; }
  // The sample's value; nullopt: the payload ends before the field. Fractions are truncated.
  std::optional<Int128> value_of(const ResolvedSample& sample) const;
  std::uint64_t count_of(const ResolvedSample& sample) const { return report::count_of(count_, sample); }

  bool is_offset() const { return field_ == nullptr && own_ == nullptr; }
  std::uint64_t period() const { return is_offset() ? period_ : 0; }  // ns; 0: values are no offsets
  // Whether values are offsets because no field was named and none is the default.
  bool is_offset_by_default() const { return is_offset_by_default_; }
  bool reads_payloads() const { return field_ != nullptr; }
  const PayloadField* field() const { return field_; }           // null: not a field of a payload
  const OwnValue* own() const { return own_; }                   // null: not a value that every sample has
  const std::string& name() const { return name_; }              // "lat_ns", "offset"
  const std::string& unit() const { return unit_; }              // of the values; empty: none
  const std::string& event_name() const { return event_name_; }  // of a payload's field
  EventSchemas& schemas() { return *schemas_; }

  // The condition of --where for values from `low` to `high`: "lat_ns >= 1024 && lat_ns <= 2047". Empty:
  // offsets, both limits are open, or the field's name cannot be part of an expression.
  std::string condition(Int128 low, Int128 high) const;

 private:
  std::optional<EventSchemas> schemas_;
  std::vector<bool> taken_;     // by event
  bool takes_unknown_ = false;  // events that a pipe describes after find_events()
  const PayloadField* field_ = nullptr;
  const OwnValue* own_ = nullptr;
  const PayloadField* count_ = nullptr;  // number of values that a sample represents
  std::uint64_t period_ = 0;
  std::string name_, unit_, event_name_;
  bool is_offset_by_default_ = false;
};

// The most rows of a map in characters.
inline constexpr std::size_t kTextRows = 32;

// The scale that suits the values, of at most so many columns and rows. `offsets`: rows of a period.
HeatScale usual_scale(const HeatSource& source, std::size_t most_columns, std::size_t most_rows,
                      std::uint64_t offsets);
// The scale of a map in characters.
HeatScale text_scale(const HeatSource& source, std::size_t most_columns, std::size_t most_rows);

// Counts the samples of a source.
class MapSink : public Sink {
 public:
  // What is passed must outlive it.
  MapSink(Session& session, const HeatSource& source, const HeatScale& scale)
      : session_(session), source_(source), grid_(scale) {}

  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override;
  const HeatGrid& grid() const { return grid_; }
  std::string samples_without_times() const { return times_.samples_without_times(session_.events()); }

 private:
  Session& session_;
  const HeatSource& source_;
  HeatGrid grid_;
  Intervals times_{1};  // for samples_without_times() only
};

}  // namespace tacho::report
