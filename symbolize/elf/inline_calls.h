// Chains of inlined calls, and the rules for their names. DWARF and symbol packs share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "format/records/address.h"

namespace tacho::symbolize {

// One function that covers an address: the innermost inlined one, its caller, and so on to the function that
// was not inlined. Texts are owned by the source.
struct Call {
  std::string_view function;  // as the linker knows it where the language mangles names; empty: unknown
  std::string_view file;      // with its folder; empty: unknown
  std::uint32_t line = 0;  // of the address in the innermost function, of the call in the others; 0: unknown
};

// The function that the symbol table has at an address.
struct LinkerSymbol {
  std::string_view name;
  format::ElfAddress start;
};

// Where the symbol's name stands for a function of which DWARF has no linkage name.
enum class StandIn : std::uint8_t {
  OwnCode,  // for the outermost function, whose code the symbol is of; inlined ones have their DWARF names
  Always,   // for the innermost: what addr2line answers when it is asked for this address alone
  AtFirst,  // for the innermost as perf, which asks for many: the first time a function is met, and later
            // only if both start at the same place; so an answer depends on the questions before
};

// One instance of a function: its own code, or an inlined call of it.
struct InlineFunction {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::string_view name;
  bool is_linkers = false;       // `name` is, or will for perf's purposes be taken as, the linker's
  std::uint64_t start = 0;       // of its first range, an ELF address
  std::uint32_t caller = kNone;  // only of inlined ones: the function around it
  std::string_view call_file;    // where that calls it
  std::uint32_t call_line = 0;
};

inline constexpr std::size_t kDeepestInline = 1024;  // perf's own limit

// Adds the calls at a place, the innermost first. `place` has its line; `innermost` is the number of the
// function there, or kNone. `function_at` gives the InlineFunction that has a number, to be changed.
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
    // binutils asks the symbol table once for each such function, and keeps the answer only if both start at
    // the same place.
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
