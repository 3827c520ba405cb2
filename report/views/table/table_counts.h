// The rows of a table while samples come: counted by their keys, put into order, and made cells.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/output/text_output.h"
#include "report/views/table/table_source.h"
#include "report/views/table/table_text.h"

namespace tacho::report {

class TableCounts {
 public:
  using Keys = std::vector<KeyValue>;
  struct Row {
    const TableEvent* event = nullptr;  // the event of the keys
    TableRow row;
  };
  using Rows = std::map<Keys, Row, KeyValuesLess>;

  // `columns`, `sort`: as the options say, or empty. Once the session's events are known, which must outlive
  // this; it must not be moved afterwards.
  Result<> find(const TableQuestion& question, const std::string& columns, const std::string& sort,
                Session& session);

  // Null: the event is not in the table.
  TableEvent* event(std::size_t index) { return source_.event(index); }
  Keys keys_of(const TableEvent& event, const ResolvedSample& sample) const;
  static void add(Rows& rows, Keys&& keys, TableEvent& event, const ResolvedSample& sample);

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
