// The columns of `tacho script --columns`: what a sample has by itself, and fields of its payload or
// tracepoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/query/own_values.h"
#include "report/samples/session.h"
#include "report/views/script/kernel_values.h"

namespace tacho::report {

// One value on its way to a line.
struct ColumnValue {
  enum class Kind : std::uint8_t { Nothing, Text, Number };
  Kind kind = Kind::Nothing;
  std::string text;  // as people write it; of a capture's text its own bytes
};

class Columns {
 public:
  // The columns that `list` names, and "auto" for the ones that the events' own fields suggest. Once the
  // session's events are known. An error of the use: no event has such a field. `session` must outlive this.
  static Result<Columns> find(std::string_view list, Session& session);

  std::size_t size() const { return columns_.size(); }
  const std::string& name(std::size_t column) const { return columns_[column].name; }
  // Whether values stand at the right: numbers do.
  bool is_number(std::size_t column) const { return columns_[column].is_number; }
  // Characters that nearly every value fits into, where many lines are not looked at before the first is
  // written.
  std::size_t usual_width(std::size_t column) const;
  // Whether samples of an event have a line: when fields are asked for, events that have one of them.
  bool has_line(std::size_t event) const { return event < has_line_.size() && has_line_[event]; }
  ColumnValue cell(std::size_t column, const ResolvedSample& sample);
  // Whether addresses beside the samples' own places are named.
  bool names_other_places() const;

 private:
  enum class What : std::uint8_t { Own, Event, Symbol, Dso, Fields };
  struct Column {
    std::string name;
    What what = What::Own;
    const OwnValue* own = nullptr;
    std::vector<const PayloadField*> fields;  // by event; null where it has none
    std::vector<NumberText> number_texts;     // by event; empty: numbers as they are
    bool is_number = false;
  };

  explicit Columns(Session& session);
  Result<> add(std::string_view name);
  void add_usual();
  std::size_t add_field(std::string_view name);
  std::vector<std::string> known_names();
  ColumnValue field_cell(const Column& column, const ResolvedSample& sample);
  std::string element_text(const PayloadField& field, const FieldValue& value, const ResolvedSample& sample);

  Session* session_;
  std::vector<std::string> event_names_;
  std::vector<const PayloadSchema*> schemas_of_;  // by event
  std::vector<bool> is_taken_;                    // likewise: the filter takes it
  std::shared_ptr<EventSchemas> schemas_;
  std::vector<Column> columns_;
  std::vector<bool> has_line_;  // by event
};

}  // namespace tacho::report
