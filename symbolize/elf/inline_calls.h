// Chains of inlined calls, and the rules for their names. Used for DWARF and for symbol packs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "format/records/address.h"

namespace tacho::symbolize {

// One function at an address: the innermost inlined one, its caller, and so on up to the function that was
// not inlined. Strings belong to the source.
struct Call {
  std::string_view function;  // the linker's name if the language mangles names; empty: unknown
  std::string_view file;      // with its folder; empty: unknown
  std::uint32_t line = 0;     // of the address (innermost function) or of the call (others); 0: unknown
};

// The function that the symbol table has at an address.
struct LinkerSymbol {
  std::string_view name;
  format::ElfAddress start;
};

// For which functions without a linkage name in DWARF the symbol's name is used.
enum class StandIn : std::uint8_t {
  OwnCode,  // the outermost, to which the symbol belongs; inlined functions have their DWARF names
  Always,   // the innermost, as addr2line prints for a single address
  AtFirst,  // the innermost, as perf does: at a function's first lookup, and later only if function and
  // symbol start at the same address; so the result depends on earlier lookups
};

// One instance of a function: its own code, or an inlined call of it.
struct InlineFunction {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::string_view name;
  bool is_linkers = false;       // `name` is the linker's, or perf uses it as such
  std::uint64_t start = 0;       // ELF address of its first range
  std::uint32_t caller = kNone;  // of an inlined one: the function around it
  std::string_view call_file;    // where the caller calls it
  std::uint32_t call_line = 0;
};

inline constexpr std::size_t kDeepestInline = 1024;  // perf's own limit

// Appends the calls at an address, the innermost first. `place` has the address's line; `innermost` is the
// number of its function, or kNone. `function_at` returns the InlineFunction of a number, which is modified.
template <class FunctionAt>
void list_calls(Call place, std::uint32_t innermost, const LinkerSymbol& symbol, StandIn stand_in,
                std::vector<Call>& calls, FunctionAt&& function_at) {
  if (innermost == InlineFunction::kNone) {
    place.function = symbol.name;
    calls.push_back(place);
    return;
  }
  const auto name_of = [&](const InlineFunction& function) {
    const bool has_own_code = function.caller == InlineFunction::kNone;
    return stand_in == StandIn::OwnCode && has_own_code && !function.is_linkers && !symbol.name.empty()
               ? symbol.name
               : function.name;
  };
  InlineFunction* function = &function_at(innermost);
  place.function = name_of(*function);
  if (stand_in != StandIn::OwnCode && !function->is_linkers && !symbol.name.empty()) {
    place.function = symbol.name;
    // binutils looks each such function up in the symbol table once, and keeps that name only if both start
    // at the same address.
    if (stand_in == StandIn::AtFirst && symbol.start.value == function->start) function->name = symbol.name;
    if (stand_in == StandIn::AtFirst) function->is_linkers = true;
  }
  calls.push_back(place);
  while (function->caller != InlineFunction::kNone && calls.size() <= kDeepestInline) {
    InlineFunction& caller = function_at(function->caller);
    calls.push_back({name_of(caller), function->call_file, function->call_line});
    function = &caller;
  }
}

}  // namespace tacho::symbolize
