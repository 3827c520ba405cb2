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

#include "report/profile/function_table.h"
#include "report/profile/sample_facts.h"

namespace tacho::report {

// The sort keys of a report: one row of a table for each key.

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

// All sort keys, found by name.

// In perf's order: a part of a name stands for the first key that begins so.
std::vector<const SortKey*> sort_keys();
// The keys of a word of --sort or --fields: one, or all fields that it names ("SUBSYS:NAME.FIELD", "FIELD",
// with "*" for all of an event; "/raw" behind it: as numbers). A part of a name stands for the first key that
// begins so, as in perf: "sym". Empty: there is none in the report's mode.
std::vector<KeyUse> find_sort_keys(std::string_view word, SampleFacts& facts);
// The names of a mode's own keys, for messages; of Samples: the keys of every mode.
std::string sort_key_names(ReportMode mode);

// The tables, each in perf's order.
std::span<const SortKey> usual_keys();
std::span<const SortKey> branch_keys();
std::span<const SortKey> memory_keys();

// What the tables of sort keys share: cells of common kinds, and the order of facts.

using Order = std::strong_ordering;
using Show = const KeyShow&;
using Row = const RowFacts&;

constexpr std::size_t kAddressWidth = 16;  // hexadecimal digits
constexpr std::size_t kUnknownWidth = 22;  // of "[.] 0x0123456789abcdef"

// A foreign name as the report's options ask for it.
std::string shown(Show show, std::string_view name);
constexpr std::size_t kAnyWidth = ~std::size_t{0};
// `name` behind `text`, cut so that both fit into a column of `width`, as perf cuts names of functions; whole
// where `text` alone is wider.
void add_name(std::string& text, std::string_view name, std::size_t width);

// Facts that are numbers.
std::uint64_t fact_of(Show show, Row row);
Order by_fact(Show show, Row a, Row b);
Order by_fact_down(Show show, Row a, Row b);
Order by_fact_text(Show show, Row a, Row b);  // facts that are numbers of texts
std::string fact_number(Show show, Row row);
std::string fact_text(Show show, Row row);

// "0x4585             d ", which stands before a name with -v.
std::string verbose_start(std::uint64_t address, char source);
// The short name, or with -v the path; empty: no module.
std::string_view module_name(Show show, const symbolize::Module* module);
// The row's own module: by name, what has none last.
Order module_order(Show show, Row a, Row b);
// The row's own function: by name, addresses without one last. RowOrder goes by the address where names are
// equal.
std::uint64_t symbol_identity(Show, Row row);
Order symbol_order(Show show, Row a, Row b);
std::uint64_t symbol_ordered_by(Show, Row row);
// "main.c:12"; without source lines "FUNCTION+OFFSET".
std::string line_of(Show show, const Function& function);
// "4K"; the fact is a number of bytes.
std::string show_page_size(Show show, Row row);

// A place that is a fact of a sample, beside the sample's own: an end of a branch, a data address.
struct FactAddress {
  const Location* location = nullptr;
  const Function* function = nullptr;
  // Relative to the module in user code, where no module is the address itself.
  std::uint64_t address = 0;
  char level = '.';

  bool has_name() const { return !function->name().empty(); }
  // Where the function or variable begins, as an address of the process.
  std::uint64_t runtime_start() const;
};
FactAddress place_at(Show show, std::uint64_t location);
// "[k] do_syscall_64", and "[.] sink+0x4" of a variable that contains `address`.
std::string show_place(Show show, const FactAddress& place, std::uint64_t address, char level,
                       std::size_t width);
// The column that place_at()'s function asks for.
std::size_t place_width(Show show, const FactAddress& place);
std::string show_place_module(Show show, const FactAddress& place);
// Modules by name, descending; addresses without a module first. perf sorts other addresses of a sample so.
Order module_order_down(Show show, const FactAddress& a, const FactAddress& b);
// As perf subtracts addresses: those of the kernel are below 0.
Order address_order(std::uint64_t a, std::uint64_t b);

}  // namespace tacho::report
