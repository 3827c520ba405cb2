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

// DWARF may lack the linkage name of a function. Then the name in the symbol table is used for this function:
enum class UseSymbolName : std::uint8_t {
  Outermost,  // to which the symbol belongs; inlined functions have their DWARF names
  Innermost,  // as addr2line prints for a single address
  // The innermost, as perf does: at a function's first lookup, and later only if function and symbol start at
  // the same address. So the result depends on earlier lookups.
  AsPerf,
};

// One instance of a function: its own code, or an inlined call of it.
struct InlineFunction {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::string_view name;
  bool is_linkage_name = false;  // or perf uses it as one
  std::uint64_t start = 0;       // ELF address of its first range
  std::uint32_t caller = kNone;  // of an inlined one: the function around it
  std::string_view call_file;    // where the caller calls it
  std::uint32_t call_line = 0;
};

inline constexpr std::size_t kDeepestInline = 1024;  // perf's own limit

// Appends the calls at an address, the innermost first. `first` has the source line of the address;
// `innermost` is the number of its function, or kNone. `function_at` returns the InlineFunction of a number,
// which is modified.
template <class FunctionAt>
void list_calls(Call first, std::uint32_t innermost, const LinkerSymbol& symbol,
                UseSymbolName use_symbol_name, std::vector<Call>& calls, FunctionAt&& function_at) {
  if (innermost == InlineFunction::kNone) {
    first.function = symbol.name;
    calls.push_back(first);
    return;
  }
  const auto name_of = [&](const InlineFunction& function) {
    const bool has_own_code = function.caller == InlineFunction::kNone;
    return use_symbol_name == UseSymbolName::Outermost && has_own_code && !function.is_linkage_name &&
                   !symbol.name.empty()
               ? symbol.name
               : function.name;
  };
  InlineFunction* function = &function_at(innermost);
  first.function = name_of(*function);
  if (use_symbol_name != UseSymbolName::Outermost && !function->is_linkage_name && !symbol.name.empty()) {
    first.function = symbol.name;
    // binutils looks each such function up in the symbol table once, and keeps that name only if both start
    // at the same address.
    if (use_symbol_name == UseSymbolName::AsPerf && symbol.start.value == function->start)
      function->name = symbol.name;
    if (use_symbol_name == UseSymbolName::AsPerf) function->is_linkage_name = true;
  }
  calls.push_back(first);
  while (function->caller != InlineFunction::kNone && calls.size() <= kDeepestInline) {
    InlineFunction& caller = function_at(function->caller);
    calls.push_back({name_of(caller), function->call_file, function->call_line});
    function = &caller;
  }
}

}  // namespace tacho::symbolize
