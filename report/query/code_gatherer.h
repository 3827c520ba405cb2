// The code of functions that samples hit, for `tacho pack`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "report/decode/instructions.h"
#include "report/samples/resolver.h"
#include "symbolize/pack_maker.h"
#include "symbolize/packed_names.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

// Translates the ELF addresses in instruction operands to the addresses that views show and resolve.
class CodeAddresses {
 public:
  // `facts` belong to any address of the same module; `elf_address` is an address in its ELF file. nullopt
  // when no name can be known for it.
  std::optional<std::uint64_t> shown_address(const symbolize::LocationFacts& facts,
                                             std::uint64_t elf_address);

 private:
  // Packed addresses that have symbols: the shown address by the ELF address.
  using ByFile = std::unordered_map<std::uint64_t, std::uint64_t>;
  std::unordered_map<const symbolize::PackedSource*, ByFile> packed_;
};

// An address near a location, in the same mapping.
Location at_address(const Location& location, std::uint64_t ip);

// Source files by their full paths, with a module whose debug information names them.
using NamedSources = std::map<std::string, const symbolize::Module*>;

// Collects the code of functions that samples hit: instructions, their source lines, and the names of what
// they call and use, so that another machine can annotate them.
class CodeGatherer {
 public:
  // `resolver` and `maker` must outlive this. `arch` is the one in the capture's header.
  CodeGatherer(Resolver& resolver, symbolize::PackMaker& maker, std::string_view arch);

  // Adds the function around an address that was hit; of a very large one, the instructions there only.
  void add_location(const Location& location, const symbolize::LocationFacts& facts);
  // Adds a function from a jitdump, which has the names and lines itself.
  void add_made(const Location& location, const symbolize::LocationFacts& facts);

  // The source files of the functions added so far.
  NamedSources take_sources() { return std::move(sources_); }

 private:
  bool add_bytes(const Location& location, const symbolize::LocationFacts& facts, std::uint64_t start,
                 std::uint64_t size);
  void add_lines(const Location& location, const symbolize::LocationFacts& facts);
  void add_target(const Location& location, const symbolize::LocationFacts& facts, std::uint64_t elf_address);

  Resolver& resolver_;
  symbolize::PackMaker& maker_;
  Disassembler wide_, narrow_;
  CodeAddresses addresses_;
  std::set<std::pair<const symbolize::Module*, std::uint64_t>> functions_;  // by start
  NamedSources sources_;
  InstructionBudget budget_;
};

}  // namespace tacho::report
