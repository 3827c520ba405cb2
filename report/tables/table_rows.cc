#include "report/tables/table_rows.h"

#include <algorithm>
#include <cassert>

namespace tacho::report {
namespace {

constexpr std::string_view kCaptures[] = {
    "capture_id", "file",     "host",   "service", "release", "host_class", "kernel",  "arch",
    "cpus",       "start_ns", "end_ns", "clock",   "command", "recorder",   "samples", "lost"};
constexpr std::string_view kSamples[] = {"capture_id", "host", "service", "event",    "ts_ns", "cpu", "pid",
                                         "tid",        "comm", "cgroup",  "stack_id", "value", "unit"};
constexpr std::string_view kStacks[] = {"stack_id", "frame_ids", "depth"};
constexpr std::string_view kFrames[] = {"frame_id", "inline_depth", "build_id",    "address", "module",
                                        "function", "signature",    "source_file", "line",    "kind"};
constexpr std::string_view kEvents[] = {"capture_id", "host", "service", "event",    "ts_ns", "cpu",
                                        "pid",        "tid",  "comm",    "stack_id", "value", "payload"};
constexpr std::string_view kLosses[] = {"capture_id", "event", "cgroup", "cpu", "lost"};

constexpr TableLayout kLayouts[kTables] = {{"captures", kCaptures}, {"samples", kSamples},
                                           {"stacks", kStacks},     {"frames", kFrames},
                                           {"events", kEvents},     {"losses", kLosses}};

}  // namespace

std::span<const TableLayout, kTables> table_layouts() { return kLayouts; }

void RowWriter::head() {
  if (form_ == RowFormat::Json) return;
  for (const std::string_view column : layout_->columns) {
    if (column != layout_->columns.front()) buffer_.character(',');
    buffer_.text(column);
  }
  buffer_.character('\n');
}

void RowWriter::begin_value() {
  assert(column_ < layout_->columns.size());
  if (form_ == RowFormat::Csv) {
    if (column_ > 0) buffer_.character(',');
  } else {
    buffer_.text(column_ > 0 ? ",\"" : "{\"");
    buffer_.text(layout_->columns[column_]);
    buffer_.text("\":");
  }
  ++column_;
}

void RowWriter::number(std::uint64_t value) {
  begin_value();
  buffer_.decimal(value);
}

void RowWriter::signed_number(std::int64_t value) {
  begin_value();
  buffer_.signed_decimal(value);
}

// `safe` has no control characters.
void RowWriter::quoted(std::string_view safe) {
  buffer_.character('"');
  for (const char c : safe) {
    if (form_ == RowFormat::Csv && c == '"') buffer_.character('"');
    if (form_ == RowFormat::Json && (c == '"' || c == '\\')) buffer_.character('\\');
    buffer_.character(c);
  }
  buffer_.character('"');
}

void RowWriter::text(std::string_view value) {
  begin_value();
  if (!is_plain(value)) return quoted(printable(value));
  const bool is_bare = form_ == RowFormat::Csv && value.find_first_of(",\"\\") == std::string_view::npos;
  is_bare ? buffer_.text(value) : quoted(value);
}

void RowWriter::word(std::string_view value) {
  begin_value();
  if (form_ == RowFormat::Csv) return buffer_.text(value);
  quoted(value);
}

void RowWriter::list(std::span<const std::uint64_t> values) {
  begin_value();
  buffer_.text(form_ == RowFormat::Csv ? "\"[" : "[");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) buffer_.character(',');
    buffer_.decimal(values[i]);
  }
  buffer_.text(form_ == RowFormat::Csv ? "]\"" : "]");
}

void RowWriter::json(std::string_view value) {
  begin_value();
  form_ == RowFormat::Csv ? quoted(value) : buffer_.text(value);
}

void RowWriter::end_row() {
  assert(column_ == layout_->columns.size());
  buffer_.text(form_ == RowFormat::Csv ? "\n" : "}\n");
  column_ = 0;
}

}  // namespace tacho::report
