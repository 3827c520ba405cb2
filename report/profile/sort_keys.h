// The sort keys of a report, one row of a table for each: of samples, of branches (-b) and of memory
// accesses.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/profile/function.h"
#include "report/profile/sample_facts.h"

namespace tacho::report {

// The facts of a report's row, from the first sample that made it. The keys decide which of these hold for
// all of its samples.
struct RowFacts {
  const Thread* thread = nullptr;
  std::string_view comm;                 // equal names share their bytes
  std::span<const std::uint64_t> facts;  // read from the sample by the keys
  const Function* function = nullptr;
  char level = '.';           // as Function::level; if nothing is mapped, the level of the frame before
  std::uint64_t address = 0;  // of the first sample, as -v shows it
  const Function* parent = nullptr;  // the function of the call chain found by --parent; null: none
  std::uint64_t samples = 0;         // of the row; known when it is printed
};

// The fact of the key "time" for a sample without a time, as Sample::time.
constexpr std::uint64_t kUntimed = ~std::uint64_t{0};

struct SortKey;

// A key in a report.
struct KeyUse {
  const SortKey* key = nullptr;
  std::string header;
  std::size_t fact = 0;                // index of its fact in RowFacts::facts
  std::optional<std::size_t> event{};  // of a field: its event; other events have no such column
  const PayloadField* field = nullptr;
  bool is_raw = false;          // "FIELD/raw"
  std::size_t least_width = 0;  // of its column
};

struct KeyShow {
  const KeyUse& use;
  const SampleFacts& facts;
  std::uint64_t fact(const RowFacts& row) const { return row.facts[use.fact]; }
};

// Facts that are numbers, or numbers of texts.
inline std::uint64_t fact_of(const KeyShow& show, const RowFacts& row) { return show.fact(row); }
inline std::strong_ordering by_fact(const KeyShow& show, const RowFacts& a, const RowFacts& b) {
  return show.fact(a) <=> show.fact(b);
}

// The part of a row that a key reads.
enum class KeyOf : std::uint8_t {
  Sample,    // facts: equal for every frame of the sample's call chain
  Comm,      // the thread's name: the same
  Thread,    // the thread: the same
  Function,  // the function
  Address,   // the address in the function: a row for each address
  Chain,     // the call chain apart from the function (--parent)
};

struct SortKey {
  // How a cell is fitted to its column. Cut: cut or padded; CutOnly: cut; Padded: never cut.
  enum class Fit : std::uint8_t { Cut, CutOnly, Right, Whole, Padded };
  std::string_view name;
  std::string_view header;
  std::string_view help;
  KeyOf of = KeyOf::Sample;
  // Reads the fact of a sample; null: no fact.
  std::uint64_t (*read)(const KeyUse&, SampleFacts&, const ResolvedSample&) = nullptr;
  std::uint64_t (*identity)(const KeyShow&, const RowFacts&) = fact_of;  // equal: the same row
  // Less: first among rows of equal weight.
  std::strong_ordering (*order)(const KeyShow&, const RowFacts&, const RowFacts&) = by_fact;
  // Equal: order() finds no difference. Null: the same as identity().
  std::uint64_t (*ordered_by)(const KeyShow&, const RowFacts&) = nullptr;
  std::string (*show)(const KeyShow&, const RowFacts&) = nullptr;
  // As show(), for a column of this width; null: independent of the width.
  std::string (*show_in)(const KeyShow&, const RowFacts&, std::size_t width) = nullptr;
  // The width that the row needs; null: the width of show(). perf measures other things than what it prints
  // for some columns.
  std::size_t (*width)(const KeyShow&, const RowFacts&) = nullptr;
  std::size_t least_width = 0;
  Fit fit = Fit::Cut;
  ReportMode mode = ReportMode::Samples;  // Samples: the key exists in every mode
  // What a report reads for it, besides samples. This must be known before the events are.
  enum class Needs : std::uint8_t {
    Nothing,
    CallChains,
    SourceLines,
    Switches,
    Cgroups
  } needs = Needs::Nothing;
  bool has_mapped_bytes = false;  // functions need mapped_bytes()
  // Whether it has different values at addresses of one function.
  bool distinguishes_addresses() const { return of == KeyOf::Address || needs == Needs::SourceLines; }
};

// Whether the key reads nothing but the function.
inline bool is_of_function(const KeyUse& use) {
  return use.key->of == KeyOf::Function || use.key->of == KeyOf::Address;
}

// All sort keys in perf's order: an abbreviation is the first key that begins so.
std::vector<const SortKey*> sort_keys();
// The key that a word is or abbreviates; null: it is none.
const SortKey* sort_key_of(std::string_view word);
// The keys for a word of --sort or --fields: one key, or all fields that the word names ("SUBSYS:NAME.FIELD",
// "FIELD", "*" for all fields of an event; "/raw" after it: as numbers). As in perf, an abbreviation ("sym")
// is the first key that begins so. Empty: the report's mode has no such key.
std::vector<KeyUse> find_sort_keys(std::string_view word, SampleFacts& facts);
// The names of a mode's own keys, for messages; of Samples: the keys in every mode.
std::string sort_key_names(ReportMode mode);

using Show = const KeyShow&;
using Row = const RowFacts&;

// An address that is a fact of a sample, other than its own: an end of a branch, or a data address.
struct FactAddress {
  const Location* location = nullptr;
  const Function* function = nullptr;
  // Of user code relative to the module; without a module, the address itself.
  std::uint64_t address = 0;
  char level = '.';

  bool has_name() const { return !function->name().empty(); }
  // The start of the function or variable, as an address of the process.
  std::uint64_t runtime_start() const;
};
FactAddress fact_address(Show show, std::uint64_t location);

}  // namespace tacho::report
