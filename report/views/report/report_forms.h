// A report for programs: rows with all their columns, as raw numbers. docs/report-forms.md says what is in
// each form.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "report/output/text_output.h"
#include "report/views/report/raw_values.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

// Where the rows come from. What is pointed to must outlive the form.
struct RowSource {
  Session* session = nullptr;
  const ReportColumns* columns = nullptr;
  const SampleFacts* facts = nullptr;
  const FunctionTable* functions = nullptr;
  CallTree* tree = nullptr;  // built anew for each graph
  std::string_view input;    // the capture's name
  // Graphs, children, and how names are written in CSV; JSON is always safe.
  const TextOptions* text = nullptr;
  bool has_latency = false;
};

// One event, or the events of a group side by side.
struct RowBlock {
  const EventBlock* events = nullptr;
  const Entries* entries = nullptr;
  std::span<const std::uint32_t> rows;  // in the report's order
  const FullValues* totals = nullptr;
};

class RowForm {
 public:
  virtual ~RowForm() = default;
  virtual void begin() = 0;
  virtual void write(const RowBlock& block) = 0;
  virtual void end() = 0;
};

std::unique_ptr<RowForm> make_json_form(TextOutput& out, const RowSource& source);
std::unique_ptr<RowForm> make_csv_form(TextOutput& out, const RowSource& source);

}  // namespace tacho::report
