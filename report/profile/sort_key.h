// The sort keys of a report: one row of a table for each key.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "report/profile/function_table.h"
#include "report/profile/sample_facts.h"

namespace tacho::report {

// What a row of a report is about, by the first sample that made it; its keys decide what of this holds
// for all of them.
struct RowFacts {
  const Thread* thread = nullptr;
  std::string_view comm;                 // equal names share their bytes
  std::span<const std::uint64_t> facts;  // what the keys read of the sample
  const Function* function = nullptr;
  char level = '.';                  // as Function::level; where nothing was mapped, that of the frame before
  std::uint64_t address = 0;         // where the first sample was, as -v shows it
  const Function* parent = nullptr;  // the function of the call chain that --parent looks for; null: none
  std::uint64_t samples = 0;         // of the row; known when it is shown
};

struct SortKey;

// A key as a report uses it.
struct KeyUse {
  const SortKey* key = nullptr;
  std::string header;
  std::size_t fact = 0;                // where in RowFacts::facts its own stands
  std::optional<std::size_t> event{};  // a field's event: for the samples of others there is no such column
  const PayloadField* field = nullptr;
  bool is_raw = false;          // "FIELD/raw"
  std::size_t least_width = 0;  // of its column
};

struct KeyShow {
  const KeyUse& use;
  const SampleFacts& facts;
  std::uint64_t fact(const RowFacts& row) const { return row.facts[use.fact]; }
};

// What of a row a key looks at.
enum class KeyOf : std::uint8_t {
  Sample,    // facts: the same for every frame of the sample's call chain
  Comm,      // likewise the thread's name
  Thread,    // likewise the thread
  Function,  // the function
  Place,     // the address in it: a row for each address of a function
  Chain,     // what the call chain holds beside the function (--parent)
};

struct SortKey {
  // How a cell fits into its column. Cut: cut or padded; CutOnly: cut; Padded: never cut.
  enum class Fit : std::uint8_t { Cut, CutOnly, Right, Whole, Padded };
  std::string_view name;
  std::string_view header;
  std::string_view help;
  KeyOf of = KeyOf::Sample;
  // Reads a fact of the sample; null: there is none to read.
  std::uint64_t (*read)(const KeyUse&, SampleFacts&, const ResolvedSample&) = nullptr;
  std::uint64_t (*identity)(const KeyShow&, const RowFacts&) = nullptr;  // equal: the same row
  // Less: stands first among rows of equal weight.
  std::strong_ordering (*order)(const KeyShow&, const RowFacts&, const RowFacts&) = nullptr;
  // Equal: order() sees no difference. Null: as identity().
  std::uint64_t (*ordered_by)(const KeyShow&, const RowFacts&) = nullptr;
  std::string (*show)(const KeyShow&, const RowFacts&) = nullptr;
  // As show(), for a column of this width; null: the width does not matter.
  std::string (*show_in)(const KeyShow&, const RowFacts&, std::size_t width) = nullptr;
  // The least column width that this row asks for; null: that of what is shown. perf measures some columns by
  // other things than what it prints.
  std::size_t (*width)(const KeyShow&, const RowFacts&) = nullptr;
  std::size_t least_width = 0;
  Fit fit = Fit::Cut;
  ReportMode mode = ReportMode::Samples;  // Samples: there is such a key in every mode
  bool has_lines = false;                 // a row for each address of a function, with its line
  bool has_mapped_bytes = false;          // functions must keep these
};

// Whether all that the key looks at is the function.
inline bool is_of_function(const KeyUse& use) {
  return use.key->of == KeyOf::Function || use.key->of == KeyOf::Place;
}

}  // namespace tacho::report
