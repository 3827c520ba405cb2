// A report for programs: rows with all their columns, as raw numbers. docs/report-forms.md says what is in
// each form.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/entries.h"
#include "report/views/report/report_options.h"
#include "report/views/report/report_text.h"

namespace tacho::report {

// What keys say of a row, for programs: numbers as numbers, names without what perf puts around them.

struct RawValue {
  enum class Kind : std::uint8_t { Missing, Number, Address, Text };
  Kind kind = Kind::Missing;
  std::uint64_t number = 0;  // of Number and Address
  std::string text;          // of Text: as it came from the capture, unless the facts' options say otherwise
};

// docs/report-forms.md says what each key's value is.
RawValue raw_value(const KeyUse& use, const SampleFacts& facts, const RowFacts& row);

// A key that the rows of one of the columns' reports have.
struct RawColumn {
  const KeyUse* use = nullptr;
  std::string name;  // of the key or of the capture's field; no two are equal
};
std::vector<RawColumn> raw_columns(const ReportColumns& columns);
// Whether the rows of a block of events have it.
bool is_of_block(const KeyUse& use, const EventBlock& block);

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
