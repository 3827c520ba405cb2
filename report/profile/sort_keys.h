// All sort keys, found by name.
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
#include "report/profile/sort_key.h"

namespace tacho::report {

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
struct OtherPlace {
  const Location* location = nullptr;
  const Function* function = nullptr;
  // Relative to the module in user code, where no module is the address itself.
  std::uint64_t address = 0;
  char level = '.';

  bool has_name() const { return !function->name().empty(); }
  // Where the function or variable begins, as an address of the process.
  std::uint64_t runtime_start() const;
};
OtherPlace place_at(Show show, std::uint64_t location);
// "[k] do_syscall_64", and "[.] sink+0x4" of a variable that contains `address`.
std::string show_place(Show show, const OtherPlace& place, std::uint64_t address, char level,
                       std::size_t width);
// The column that place_at()'s function asks for.
std::size_t place_width(Show show, const OtherPlace& place);
std::string show_place_module(Show show, const OtherPlace& place);
// Modules by name, descending; addresses without a module first. perf sorts other addresses of a sample so.
Order module_order_down(Show show, const OtherPlace& a, const OtherPlace& b);
// As perf subtracts addresses: those of the kernel are below 0.
Order address_order(std::uint64_t a, std::uint64_t b);

}  // namespace tacho::report
