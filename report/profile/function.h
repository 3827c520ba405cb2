// A function of a capture, as a FunctionTable interns it.
//
// perf's report compares functions in three ways, so a function has three numbers:
// - `id`: different for functions that are printed differently.
// - `symbol`: equal for functions of one row of `--sort sym`. There modules are compared by short name, and
//   unknown functions by address alone.
// - `chain_key`: equal for functions of one node of a call graph. There modules are compared by identity, and
//   inlined calls by name.
#pragma once

#include <cstdint>
#include <string_view>

#include "report/samples/tables.h"
#include "symbolize/frame.h"

namespace tacho::report {

// Facts that only few functions have.
struct RareFacts {
  // Of a variable, whose rows show an offset: its start, as an address of the process of first_ip.
  std::uint64_t runtime_start = 0;
  std::uint64_t mapped_bytes = 0;  // size of the mapping of its first sample; only with keep_mapped_bytes()
  // "main.c:12"; if the line is unknown, "+20", the offset in the function. Only with the grain Addresses.
  std::string_view line;
  StepId step = kNo<StepId>;
  bool operator==(const RareFacts&) const = default;
};

// Facts of functions with a name.
struct NamedFacts {
  std::string_view name;            // lives as long as the session
  std::string_view shown_name;      // see FunctionTable::show_parameters(); lives as long as the table
  std::uint64_t end = 0;            // see Function::start
  const RareFacts* rare = nullptr;  // null: none
  NameId name_id = kNo<NameId>;     // Function::name_id
};

// A capture may have millions of functions, most without a name, so each byte counts.
struct Function {
  const symbolize::Module* module = nullptr;  // null: nothing is mapped there
  // Its range, relative to its module as frames are printed. `start` of an unknown function is its address (0
  // with the grain Names): as sampled for frames of call chains, else relative to the module.
  std::uint64_t start = 0;
  std::uint64_t first_ip = 0;         // its first sampled address; with the grain Addresses: its address
  const NamedFacts* named = nullptr;  // null: none
  std::uint32_t module_rank = 0;      // perf prints the module of higher rank first; 0: none
  NameId name_id = kNo<NameId>;       // kNo: unknown
  std::uint32_t module_number = 0;    // equal short names have equal numbers; 0: nothing is mapped there
  SymbolId symbol{};                  // equal: one row of --sort symbol
  ChainKeyId chain_key{};             // equal: one node of a call graph
  char level = '.';                   // k kernel, . user, H hypervisor
  char source = '!';                  // the source of the name, see symbolize::Frame
  bool is_inlined : 1 = false;
  bool is_data : 1 = false;     // the symbol is a variable
  bool has_line : 1 = false;    // line() is a source line
  bool is_unnamed : 1 = false;  // no symbol: name() is the module and the start
  bool is_guess : 1 = false;    // from a perf map that may be another process's

  // Whether it is unknown if the name belongs to the code that ran.
  bool is_unsure() const {
    return named != nullptr && !named->name.empty() &&
           (is_guess || (module != nullptr && module->is_unsure()));
  }

  // In perf's short form. Empty: unknown.
  std::string_view name() const { return named == nullptr ? std::string_view() : named->name; }
  // The same with parameters, where another function has this name.
  std::string_view shown_name() const { return named == nullptr ? std::string_view() : named->shown_name; }
  bool has_symbol() const { return !name().empty() && !is_unnamed; }
  std::uint64_t end() const { return named == nullptr ? 0 : named->end; }
  std::uint64_t runtime_start() const { return rare() == nullptr ? 0 : rare()->runtime_start; }
  std::uint64_t mapped_bytes() const { return rare() == nullptr ? 0 : rare()->mapped_bytes; }
  std::string_view line() const { return rare() == nullptr ? std::string_view() : rare()->line; }
  StepId step() const { return rare() == nullptr ? kNo<StepId> : rare()->step; }
  const RareFacts* rare() const { return named == nullptr ? nullptr : named->rare; }
};
static_assert(sizeof(Function) <= 56);

// perf's letter of a CPU mode: Function::level.
inline char level_of(std::uint8_t cpumode) {
  constexpr std::string_view kLevels = "Hk.Hgu";
  return cpumode < kLevels.size() ? kLevels[cpumode] : 'H';
}

}  // namespace tacho::report
