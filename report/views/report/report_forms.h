// A report for programs (CSV, JSON): rows with all their columns, as raw numbers. docs/report-forms.md
// describes both forms.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/field_sinks.h"
#include "report/output/text_output.h"
#include "report/profile/entries.h"
#include "report/views/report/report_columns.h"
#include "report/views/report/report_text.h"

namespace tacho::report {

// The value of a key, for programs: numbers as numbers, names without what perf puts around them.
struct RawValue {
  enum class Kind : std::uint8_t { Missing, Number, Address, Text };
  Kind kind = Kind::Missing;
  std::uint64_t number = 0;  // of Number and Address
  std::string text;          // of Text: as in the capture, unless options change it
};

// docs/report-forms.md lists the values of each key.
RawValue raw_value(const KeyUse& use, const SampleFacts& facts, const RowFacts& row);

// A key that rows of at least one report have.
struct RawColumn {
  const KeyUse* use = nullptr;
  std::string name;  // of the key or of a field of the capture; unique
};
std::vector<RawColumn> raw_columns(const ReportColumns& columns);
// Whether the rows of a block of events have this key.
bool is_of_block(const KeyUse& use, const EventBlock& block);

// What a form prints. The pointers must outlive the form.
struct RowSource {
  Session* session = nullptr;
  const ReportColumns* columns = nullptr;
  const SampleFacts* facts = nullptr;
  const FunctionTable* functions = nullptr;
  CallTree* tree = nullptr;  // built anew for each graph
  std::string_view input;    // the capture's name
  // Graphs, children, and how CSV writes names; JSON is always safe.
  const TextOptions* text = nullptr;
  bool has_latency = false;
};

// One event, or the events of a group side by side.
struct RowBlock {
  const EventBlock* events = nullptr;
  const Entries* entries = nullptr;
  std::span<const EntryId> rows;  // in the report's order
  const FullValues* totals = nullptr;
};

class RowForm {
 public:
  virtual ~RowForm() = default;
  virtual void begin_rows() = 0;
  virtual void write(const RowBlock& block) = 0;
  virtual void end_rows() = 0;
};

std::unique_ptr<RowForm> make_json_form(TextOutput& out, const RowSource& source);
std::unique_ptr<RowForm> make_csv_form(TextOutput& out, const RowSource& source);

// Parts of the JSON form, for other tables of rows.

// The object `capture`: where and how it was recorded. `input`: its name.
void describe_recording(JsonFields& to, Session& session, std::string_view input);
// An object with the totals of an event of the block.
void describe_totals(JsonFields& to, std::string_view name, Session& session, const RowBlock& block,
                     std::size_t member);
// What a row of the block is: `keys`, and how its function's name is known.
void describe_row_keys(JsonFields& to, const std::vector<RawColumn>& columns, const SampleFacts& facts,
                       const RowBlock& block, EntryId row);

// Lines by RFC 4180: CRLF at the end, quotes around values that need them.
class CsvLines {
 public:
  CsvLines(TextOutput& out, Names names) : out_(&out), names_(names) {}

  void text(std::string_view text) { cell(printable_csv(text, names_)); }
  void number(std::uint64_t value) { cell(std::to_string(value)); }
  void real(double value);
  void value(const RawValue& value);
  void empty() { cell(""); }
  void end_line();

 private:
  void cell(std::string_view text);

  TextOutput* out_;
  Names names_;
  bool is_first_ = true;  // of the line's cells
};

}  // namespace tacho::report
