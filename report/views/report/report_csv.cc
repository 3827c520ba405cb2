// The rows of a report as CSV (--csv).
#include <fmt/format.h>

#include "report/views/report/report_cells.h"
#include "report/views/report/row_form.h"

namespace tacho::report {
namespace {

using Kind = Column::Kind;

// Lines as RFC 4180 has them: CRLF behind each, and quotes around what could be mistaken.
class ReportCsv : public RowForm {
 public:
  ReportCsv(TextOutput& out, const RowSource& source)
      : out_(&out), source_(source), columns_(raw_columns(*source.columns)) {}

  void begin() override;
  void write(const RowBlock& block) override;
  void end() override {}

 private:
  void write_row(const RowBlock& block, std::uint32_t row, const RowFacts& facts, std::size_t member);
  void cell(std::string_view text);  // a number, or what printable_csv() made
  void number(std::uint64_t value) { cell(fmt::format("{}", value)); }
  void value(const RawValue& value);
  void weights(const RowBlock& block, std::uint32_t row, std::size_t member, Kind kind);
  void line_end() {
    out_->text("\r\n");
    out_->line_end();
    is_first_ = true;
  }

  TextOutput* out_;
  RowSource source_;
  std::vector<RawColumn> columns_;
  bool is_first_ = true;  // of the line's cells
};

void ReportCsv::begin() {
  cell("event");
  for (const RawColumn& column : columns_) cell(printable_csv(column.name, source_.text->names));
  for (const std::string of : {"", "children_"}) {
    if (!of.empty() && !source_.text->has_children) break;
    for (const char* const name : {"samples", "period", "percent"}) cell(of + name);
    if (!source_.has_latency) continue;
    for (const char* const name : {"latency", "latency_percent"}) cell(of + name);
  }
  line_end();
}

void ReportCsv::write(const RowBlock& block) {
  for (const std::uint32_t row : block.rows) {
    const RowFacts facts = block.entries->facts(row);
    for (std::size_t member = 0; member < block.events->members; ++member)
      write_row(block, row, facts, member);
  }
}

void ReportCsv::write_row(const RowBlock& block, std::uint32_t row, const RowFacts& facts,
                          std::size_t member) {
  const auto& event = source_.session->events()[block.events->leader + member];
  cell(printable_csv(event.name, source_.text->names));
  for (const RawColumn& column : columns_) {
    is_of_block(*column.use, *block.events) ? value(raw_value(*column.use, *source_.facts, facts)) : cell("");
  }
  weights(block, row, member, Kind::Overhead);
  if (source_.text->has_children) weights(block, row, member, Kind::Children);
  line_end();
}

void ReportCsv::weights(const RowBlock& block, std::uint32_t row, std::size_t member, Kind kind) {
  const Entries::Totals& totals = block.entries->totals(row, member);
  const Weight& weight = kind == Kind::Overhead ? totals.self : totals.children;
  number(weight.samples);
  number(weight.period);
  cell(fmt::format("{}", percent_of(block.entries->value(kind, row, member), block.totals->weights[member])));
  if (!source_.has_latency) return;
  const Kind latency = kind == Kind::Overhead ? Kind::Latency : Kind::LatencyChildren;
  const std::uint64_t value = block.entries->value(latency, row, member);
  number(value);
  cell(fmt::format("{}", percent_of(value, block.totals->latencies[member])));
}

void ReportCsv::value(const RawValue& value) {
  switch (value.kind) {
    case RawValue::Kind::Number:
      return number(value.number);
    case RawValue::Kind::Address:
      return cell(fmt::format("{:#x}", value.number));
    case RawValue::Kind::Text:
      return cell(printable_csv(value.text, source_.text->names));
    case RawValue::Kind::Missing:
      return cell("");
  }
}

void ReportCsv::cell(std::string_view text) {
  if (!is_first_) out_->character(',');
  is_first_ = false;
  out_->text(text);
}

}  // namespace

std::unique_ptr<RowForm> make_csv_form(TextOutput& out, const RowSource& source) {
  return std::make_unique<ReportCsv>(out, source);
}

}  // namespace tacho::report
