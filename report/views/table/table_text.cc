#include "report/views/table/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "report/output/field_sinks.h"
#include "report/output/terminal.h"
#include "report/output/text_output.h"
#include "report/samples/filter.h"

namespace tacho::report {

namespace {

using Of = TableColumn::Of;

constexpr std::pair<std::string_view, Of> kNames[] = {
    {"count", Of::Count}, {"sum", Of::Sum},     {"mean", Of::Mean},         {"avg", Of::Mean},
    {"min", Of::Least},   {"max", Of::Largest}, {"median", Of::Percentile},
};

// "p99.9" -> 99.9
std::optional<double> percent_of(std::string_view name) {
  if (!name.starts_with('p')) return std::nullopt;
  name.remove_prefix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), percent);
  const bool is_whole = error == std::errc{} && end == name.data() + name.size();
  return is_whole && percent >= 0 && percent <= 100 ? std::optional(percent) : std::nullopt;
}

}  // namespace

ExpressionValue TableColumn::value(const TableRow& row) const {
  switch (of) {
    case Of::Count:
      return ExpressionValue::of(row.samples);
    case Of::Sum:
      return row.values.sum();
    case Of::Mean:
      return row.values.mean();
    case Of::Least:
      return row.values.least();
    case Of::Largest:
      return row.values.largest();
    case Of::Percentile:
      break;
  }
  return row.values.percentile(percent);
}

Result<std::vector<TableColumn>> parse_columns(std::string_view option, std::string_view text) {
  std::vector<TableColumn> columns;
  for (const std::string& name : parse_name_list(text)) {
    const auto row = std::ranges::find(kNames, name, &std::pair<std::string_view, Of>::first);
    if (row != std::end(kNames)) {
      columns.push_back({name, row->second, 50});
    } else if (const auto percent = percent_of(name)) {
      columns.push_back({name, Of::Percentile, *percent});
    } else {
      return use_error(std::string(option) + ": there is no column '" + name +
                       "'; there are count, sum, mean, min, max, median, and percentiles as p99 or p99.9");
    }
  }
  return columns;
}

std::string show_number(const ExpressionValue& value) {
  if (value.kind == ExpressionValue::Kind::Real) return fmt::format("{:.3f}", value.real);
  if (value.kind == ExpressionValue::Kind::Whole) return fmt::format("{}", value.whole);
  return "-";
}

namespace {

constexpr std::size_t kGap = 2;  // blanks between columns

std::string seconds(double time) { return fmt::format("{:.6f}", time); }

void write_csv(TextOutput& out, const TableHead& head, std::optional<double> begin,
               const std::vector<TableLine>& lines, bool is_first) {
  const auto line = [&out](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) out.character(',');
      out.text(cells[i]);
    }
    out.text("\r\n");
    out.line_end();
  };
  if (is_first) {
    std::vector<std::string> cells;
    if (head.has_begin) cells.emplace_back("begin");
    for (const std::string& name : head.keys) cells.push_back(printable_csv(name, Names::Raw));
    cells.insert(cells.end(), head.numbers.begin(), head.numbers.end());
    line(cells);
  }
  for (const TableLine& one : lines) {
    std::vector<std::string> cells;
    if (head.has_begin) cells.push_back(begin ? seconds(*begin) : std::string());
    for (const TableKey& key : one.keys)
      cells.push_back(printable_csv(key.text, Names::Raw));  // safe already
    for (const ExpressionValue& number : one.numbers)
      cells.push_back(number.is_nothing() ? "" : show_number(number));
    line(cells);
  }
}

void json_number(JsonFields& fields, const std::string& name, const ExpressionValue& number) {
  if (number.kind == ExpressionValue::Kind::Real) return fields.real(name, number.real);
  if (number.is_nothing()) return fields.json(name, "null");
  fields.json(name, fmt::format("{}", number.whole));
}

void write_json(TextOutput& out, const TableHead& head, std::optional<double> begin,
                const std::vector<TableLine>& lines) {
  for (const TableLine& one : lines) {
    JsonFields fields(out);
    if (begin) fields.real("begin", *begin);
    for (std::size_t i = 0; i < one.keys.size(); ++i) {
      if (one.keys[i].is_number) {
        fields.json(head.keys[i], one.keys[i].text);
      } else {
        fields.text(head.keys[i], one.keys[i].text);
      }
    }
    for (std::size_t i = 0; i < one.numbers.size(); ++i) json_number(fields, head.numbers[i], one.numbers[i]);
    fields.finish();
    out.character('\n');
    out.line_end();
  }
}

// Text keys are aligned left, numbers right.
void write_text(TextOutput& out, const TableHead& head, std::optional<double> begin,
                const std::vector<TableLine>& lines, bool is_first) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> names = head.keys;
  names.insert(names.end(), head.numbers.begin(), head.numbers.end());
  std::vector<std::size_t> widths;
  for (const std::string& name : names) widths.push_back(name.size());
  std::vector<bool> is_right(names.size(), true);
  for (const TableLine& one : lines) {
    for (std::size_t i = 0; i < one.keys.size(); ++i) is_right[i] = is_right[i] && one.keys[i].is_number;
    auto& row = cells.emplace_back();
    for (const TableKey& key : one.keys) row.push_back(key.text);
    for (const ExpressionValue& number : one.numbers) row.push_back(show_number(number));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<bool> are_names;
  for (const bool right : is_right) are_names.push_back(!right);
  fit_columns(widths, are_names, kGap, head.room);
  const auto line = [&](std::vector<std::string> row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i != 0) out.blanks(kGap);
      if (are_names[i] && head.room != 0) row[i] = cut_in_the_middle(row[i], widths[i]);
      if (is_right[i]) {
        out.padded(row[i], widths[i]);
      } else if (i + 1 == row.size()) {
        out.text(row[i]);  // nothing behind it
      } else {
        out.left(row[i], widths[i]);
      }
    }
    out.character('\n');
    out.line_end();
  };
  if (!is_first) out.character('\n');
  out.text(head.title);
  if (begin) out.text(", from " + seconds(*begin) + " s");
  out.character('\n');
  line(names);
  for (const auto& row : cells) line(row);
}

}  // namespace

void write_table(TextOutput& out, TableForm form, const TableHead& head, std::optional<double> begin,
                 const std::vector<TableLine>& lines, bool is_first) {
  switch (form) {
    case TableForm::Csv:
      return write_csv(out, head, begin, lines, is_first);
    case TableForm::Json:
      return write_json(out, head, begin, lines);
    case TableForm::Text:
      return write_text(out, head, begin, lines, is_first);
  }
}

}  // namespace tacho::report
