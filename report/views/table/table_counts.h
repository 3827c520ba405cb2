// The rows of a table: its events with their keys and value, samples counted by key, and the table as text,
// CSV or JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/expression.h"
#include "format/base/result.h"
#include "report/output/text_output.h"
#include "report/profile/field_key.h"
#include "report/query/expressions.h"
#include "report/samples/session.h"

namespace tacho::report {

// The events, keys and value of a table.
struct TableRequest {
  std::string event;  // empty: every event that has the keys and the value
  std::string by;     // names of keys; empty: default_table_keys(), else comm
  std::optional<cli::Expression> value;
  bool only_counts = false;  // the table shows only counts, so it needs no default value
};

// One event of the table.
struct TableEvent {
  std::string name;
  std::vector<FieldKey> keys;
  std::optional<BoundExpression> value;  // nullopt: only counted
  const PayloadField* count = nullptr;   // number of values in a sample; null: each is one value
  ValueOfMany how;                       // how samples are added; `sum` only without --value
};

// Chooses the events of a table and binds its keys and its value to each of them.
class TableSource {
 public:
  // To be called once the session's events are known. A usage error when no event has the fields. Both
  // arguments must outlive this, which must not be moved afterwards.
  Result<> find_events(const TableRequest& question, Session& session);

  // The event at this index; null: not in the table.
  TableEvent* event(std::size_t index);
  // Names of the keys; the first one is "event" when the table has several events.
  const std::vector<std::string>& key_names() const { return key_names_; }
  bool has_values() const;
  // A note about events that lack the keys (not in the table) or the value (only counted); may be empty.
  std::string note_on_events() const;
  // A note when sums are sums of the lowest values of slots; else empty.
  std::string note_on_slots() const;
  // "bigread: bytes in bytes"
  std::string title(Names names) const;

 private:
  Result<TableEvent> bind(const TableRequest& question, const format::Event& event,
                          const PayloadSchema* schema);
  Result<std::optional<BoundExpression>> bind_value(const TableRequest& question, const format::Event& event,
                                                    const PayloadSchema* schema) const;
  void take_default_value(const PayloadSchema* schema);
  bool has_keys(const format::Event& event, const PayloadSchema* schema) const;
  std::vector<std::string> keys_of(const TableRequest& question, const Session& session);

  std::optional<EventSchemas> schemas_;
  PayloadSchema empty_;
  std::vector<bool> chosen_;  // by event: --event has it
  std::vector<std::optional<TableEvent>> events_;
  std::vector<std::string> key_names_;
  std::vector<std::string> left_out_, only_counted_;  // names of events
  std::optional<cli::Expression> default_value_;
  const cli::Expression* value_ = nullptr;
  std::string unit_;
};

// One row: the number of its samples, and the values of the samples that have a value.
struct TableRow {
  std::uint64_t samples = 0;
  Summary values;
};

// A column after the keys: one statistic of a row's values.
struct TableColumn {
  enum class Of : std::uint8_t { Count, Sum, Mean, Least, Largest, Percentile };
  std::string name;  // "p99"
  Of of = Of::Count;
  double percent = 0;  // of a Percentile
  ExpressionValue value(const TableRow& row) const;
};

// A cell of a table: integers as they are, other numbers with three decimals, "-" for nothing.
std::string show_number(const ExpressionValue& value);

enum class TableForm : std::uint8_t { Text, Csv, Json };

struct TableKey {
  std::string text;        // as it is printed
  bool is_number = false;  // JSON gets a number
};

struct TableLine {
  std::vector<TableKey> keys;
  std::vector<ExpressionValue> numbers;
};

struct TableHead {
  std::vector<std::string> keys, numbers;  // names of columns
  std::string title;                       // "bigread: bytes in bytes"; text form only
  std::size_t room = 0;                    // width of the text form; 0: no limit
  bool has_begin = false;                  // CSV: a first column for the start of an interval
};

// Prints the lines of one interval as aligned text, CSV or JSON lines; `begin` (seconds) is set with
// --interval. Names are safe to print already.
void write_table(TextOutput& out, TableForm form, const TableHead& head, std::optional<double> begin,
                 const std::vector<TableLine>& lines, bool is_first);

// The rows of a table: adds samples by their keys, sorts rows, and makes their cells.
class TableCounts {
 public:
  using Keys = std::vector<KeyValue>;
  struct Row {
    const TableEvent* event = nullptr;  // the event of the keys
    TableRow row;
  };
  using Rows = std::map<Keys, Row, KeyValuesLess>;

  // `columns`, `sort`: values of the options; may be empty. To be called when the session's events are known.
  // The session must outlive this, which must not be moved afterwards.
  Result<> find_columns(const TableRequest& question, const std::string& columns, const std::string& sort,
                        Session& session);

  // Null: the event is not in the table.
  TableEvent* event(std::size_t index) { return source_.event(index); }
  Keys keys_of(const TableEvent& event, const ResolvedSample& sample) const;
  static void add_row(Rows& rows, Keys&& keys, TableEvent& event, const ResolvedSample& sample);

  // In the order of `sort`, equal rows in that of their keys.
  std::vector<const Rows::value_type*> in_order(const Rows& rows) const;
  TableLine line_of(const Rows::value_type& row, Names names, TableForm form) const;

  const TableSource& source() const { return source_; }
  const std::vector<TableColumn>& columns() const { return columns_; }
  // Names of keys and columns.
  TableHead head(Names names) const;

 private:
  Result<> find_order(const std::string& sort);

  Session* session_ = nullptr;
  TableSource source_;
  std::vector<TableColumn> columns_;
  std::optional<std::size_t> sort_key_;
  TableColumn sort_column_;
};

}  // namespace tacho::report
