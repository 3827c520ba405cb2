// Samples as chosen columns: aligned text, CSV or JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/output/text_output.h"
#include "report/query/expressions.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/views/script/script_text.h"

namespace tacho::report {

// A cell of `tacho script --columns`: a value before it is written to a line.
struct ColumnValue {
  enum class Kind : std::uint8_t { Nothing, Text, Number };
  Kind kind = Kind::Nothing;
  std::string text;  // not escaped
};

// The columns of `tacho script --columns`: values of the sample itself, and fields of its payload or
// tracepoint.
class Columns {
 public:
  // Makes the columns of a comma-separated list. "auto": columns for the events' fields; "all": these, and
  // CPU, thread and event. The session's events must be known. It is a usage error if no event has a field.
  // `session` must outlive the result.
  static Result<Columns> find_columns(std::string_view list, Session& session);

  std::size_t size() const { return columns_.size(); }
  const std::string& name(std::size_t column) const { return columns_[column].name; }
  // Whether a column is right-aligned: numbers are.
  bool is_number(std::size_t column) const { return columns_[column].is_number; }
  // A width that nearly every value fits into, for output that begins before many lines are known.
  std::size_t usual_width(std::size_t column) const;
  // Whether samples of an event get a line: if `list` names fields, only events with one of them do.
  bool has_line(std::size_t event) const { return event < has_line_.size() && has_line_[event]; }
  ColumnValue cell(std::size_t column, const ResolvedSample& sample);

 private:
  enum class What : std::uint8_t { Own, Event, Symbol, Dso, Fields };
  struct Column {
    std::string name;
    What what = What::Own;
    const OwnValue* own = nullptr;
    std::vector<const PayloadField*> fields;  // by event; null: it has no such field
    std::vector<NumberText> number_texts;     // by event; empty: numbers are written as they are
    bool is_number = false;
  };

  explicit Columns(Session& session);
  Result<> add_column(std::string_view name);
  struct Described {
    std::vector<std::string> fields;
    std::size_t count = 0, of = 0;  // events with fields, and all events that the filter takes
  };
  Described described_fields() const;
  void add_usual(bool is_all);
  std::size_t add_field(std::string_view name);
  std::vector<std::string> known_names();
  ColumnValue field_cell(const Column& column, const ResolvedSample& sample);
  std::string element_text(const PayloadField& field, const FieldValue& value, const ResolvedSample& sample);

  Session* session_;
  std::vector<std::string> event_names_;
  std::vector<const PayloadSchema*> schemas_of_;  // by event; null: none, or the filter refuses the event
  std::vector<bool> is_taken_;                    // by event: whether the filter takes it
  std::shared_ptr<EventSchemas> schemas_;
  std::vector<Column> columns_;
  std::vector<bool> has_line_;  // by event
};

enum class ColumnsForm : std::uint8_t { Text, Csv, Json };

// Samples as lines of columns: aligned text, CSV, or JSON.
//
// Widths of text columns come from the first kLinesAhead lines, which are kept until then or until flush(). A
// wider value that comes later widens its column from there on.
class ColumnsText {
 public:
  // `room`: the width of a line of text; 0: no limit.
  ColumnsText(Columns columns, ColumnsForm form, Names names, std::size_t room)
      : columns_(std::move(columns)),
        form_(form),
        names_(names),
        room_(room),
        widths_(columns_.size()),
        needed_(columns_.size()) {}

  void write(TextOutput& out, const ResolvedSample& sample);
  // Writes the lines that are kept. Call it at the end, and before a long wait.
  void flush(TextOutput& out);

 private:
  static constexpr std::size_t kLinesAhead = 1000;
  static constexpr std::size_t kWidest = 40;  // columns are not padded to more characters
  using Line = std::vector<ColumnValue>;

  void write_text(TextOutput& out, std::vector<std::string> cells);
  void write_csv(TextOutput& out, const Line& line);
  void write_json(TextOutput& out, const Line& line);
  std::vector<std::string> shown(const Line& line) const;
  void fit(std::vector<std::string>& cells, std::vector<std::size_t>& widths) const;
  void widen(const std::vector<std::string>& cells);

  Columns columns_;
  ColumnsForm form_;
  Names names_;
  std::size_t room_;
  std::vector<std::size_t> widths_, needed_;  // needed_: of the values so far
  std::vector<std::vector<std::string>> kept_;
  bool is_begun_ = false;  // the headings are written
};

}  // namespace tacho::report
