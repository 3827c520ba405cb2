// By what a report's rows are told apart and sorted: one row of a table for each key.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"
#include "report/output/printable.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// What rows need of a place in code; made once for each location.
struct CodePlace {
  std::uint32_t module = 0;  // equal module names have equal numbers; 0: nothing was mapped there
  std::uint32_t symbol = 0;  // equal functions have equal numbers, and so have equal addresses without one
  std::string_view module_name;  // short: "libc.so.6"
  std::string_view function;     // empty: unknown
  std::uint64_t start = 0,
                end = 0;  // of the function, or the address (perf's, relative to the mapping) when unknown
  char level = '.';       // k kernel, . user, H hypervisor
};

// What a row is about. The first sample that made it decides what the keys do not.
struct RowFacts {
  std::string_view comm;  // equal names share their bytes
  const Thread* thread = nullptr;
  const CodePlace* place = nullptr;
  std::uint32_t cpu = ~0U;
  std::string_view trace;  // a tracepoint's text; equal texts share their bytes
};

struct SortKey {
  std::string_view names;  // spellings, the first one is ours: "sym,symbol"
  std::string_view header;
  std::string_view help;
  std::uint64_t (*identity)(const RowFacts&);  // equal: the same row
  // Less: stands first among rows of equal weight.
  std::strong_ordering (*order)(const RowFacts&, const RowFacts&);
  // Decides where order() sees no difference.
  std::strong_ordering (*tie)(const RowFacts&, const RowFacts&);
  std::string (*show)(const RowFacts&, Names);
  // The least column width that this row asks for; perf measures some columns by other things than what it
  // prints.
  std::size_t (*width)(const RowFacts&, Names);
  bool is_cut;  // text is cut to the column's width and padded even in the last column
};

std::span<const SortKey> sort_keys();
// "comm,dso,sym" -> keys; an unknown name is an error that lists the known ones.
Result<std::vector<const SortKey*>> parse_sort_keys(std::string_view list);

}  // namespace tacho::report
