#include "record/events/branch_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "cli/nearest.h"

namespace tacho::record {
namespace {

struct Filter {
  std::string_view name;
  std::uint64_t bits;
};

// linux/perf_event.h, PERF_SAMPLE_BRANCH_*; the names are perf's.
constexpr std::uint64_t kUser = 1 << 0, kKernel = 1 << 1, kHypervisor = 1 << 2, kAny = 1 << 3;
constexpr std::uint64_t kCallStack = 1 << 11, kNoFlags = 1 << 14, kNoCycles = 1 << 15, kHwIndex = 1 << 17;
constexpr Filter kFilters[] = {
    {"u", kUser},           {"k", kKernel},         {"hv", kHypervisor},    {"any", kAny},
    {"any_call", 1 << 4},   {"any_ret", 1 << 5},    {"ind_call", 1 << 6},   {"abort_tx", 1 << 7},
    {"in_tx", 1 << 8},      {"no_tx", 1 << 9},      {"cond", 1 << 10},      {"stack", kCallStack},
    {"ind_jmp", 1 << 12},   {"call", 1 << 13},      {"no_flags", kNoFlags}, {"no_cycles", kNoCycles},
    {"save_type", 1 << 16}, {"hw_index", kHwIndex}, {"priv", 1 << 18},
};

}  // namespace

Result<std::uint64_t> parse_branch_filter(std::string_view text) {
  std::uint64_t bits = 0;
  for (;;) {
    const std::string_view name = text.substr(0, text.find(','));
    const auto row = std::ranges::find(kFilters, name, &Filter::name);
    if (row == std::end(kFilters)) {
      std::vector<std::string> names;
      for (const Filter& filter : kFilters) names.emplace_back(filter.name);
      std::string tail = cli::suggestion(name, names);
      if (tail.empty()) tail = fmt::format("; known: {}", fmt::join(names, ", "));
      return use_error(fmt::format("unknown branch filter '{}'{}", name, tail));
    }
    bits |= row->bits;
    if (name.size() == text.size()) break;
    text.remove_prefix(name.size() + 1);
  }
  constexpr std::uint64_t kSides = kUser | kKernel | kHypervisor;
  return (bits & ~kSides) == 0 ? bits | kAny : bits;
}

std::uint64_t call_stack_branches() { return kUser | kCallStack | kNoFlags | kNoCycles | kHwIndex; }

}  // namespace tacho::record
