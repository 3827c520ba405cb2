// What keys say of a row, for programs: numbers as numbers, names without what perf puts around them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/profile/entries.h"
#include "report/views/report/report_columns.h"

namespace tacho::report {

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

}  // namespace tacho::report
