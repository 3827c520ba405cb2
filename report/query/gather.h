// Collects for `tacho pack` every address that samples hit, with its function, inlined calls, file and line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/extensions/symbol_pack.h"
#include "report/decode/instructions.h"
#include "report/query/capture_gaps.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "symbolize/files/file_gate.h"
#include "symbolize/pack_maker.h"

namespace tacho::report {

// Collects the code of functions that samples hit: instructions, their source lines, and the names of what
// they call and use, so that another machine can annotate them.

class CodeGatherer {
 public:
  // `resolver` and `maker` must outlive this. `arch` is the one in the capture's header.
  CodeGatherer(Resolver& resolver, symbolize::PackMaker& maker, std::string_view arch);

  // Adds the function around an address that was hit; of a very large one, the instructions there only.
  void add(const Location& location, const symbolize::PlaceFacts& facts);
  // Adds a function from a jitdump, which has the names and lines itself.
  void add_made(const Location& location, const symbolize::PlaceFacts& facts);

  // Full paths of the source files of the functions added so far.
  std::set<std::string> take_sources() { return std::move(sources_); }

 private:
  bool add_bytes(const Location& location, const symbolize::PlaceFacts& facts, std::uint64_t start,
                 std::uint64_t size);
  void add_lines(const Location& location, const symbolize::PlaceFacts& facts);
  void add_target(const Location& location, const symbolize::PlaceFacts& facts, std::uint64_t elf_address);

  Resolver& resolver_;
  symbolize::PackMaker& maker_;
  Disassembler wide_, narrow_;
  CodePlaces places_;
  std::set<std::pair<const symbolize::Module*, std::uint64_t>> functions_;  // by start
  std::set<std::string> sources_;
};

struct GatheredSymbols {
  format::SymbolPack pack;
  std::size_t addresses = 0;  // distinct addresses that samples hit
  std::size_t named = 0;      // of these, the ones with a function
  // Addresses without a name that symbols would give one, by program or library; "" for JIT code without a
  // perf map.
  std::map<std::string, std::size_t> nameless;
  // Each jitdump reduced to the functions that were hit; they are not in the pack.
  std::vector<symbolize::JitCode::Reduced> jitdumps;
  std::set<std::string> sources;  // with PackLevel::Code: full paths of the functions' source files
};

// Sets the session options that packing requires.
void set_for_gathering(SessionOptions& options);

struct GatherRules {
  format::PackLevel level = format::PackLevel::Inlines;
  // Access to the files that names are read from; may be null. Files for unwinding use the session's gate.
  symbolize::FileGate* gate = nullptr;
  // Use only names from the capture's own pack and jitdumps.
  bool only_packed = false;
};
// Reads the whole capture.
GatheredSymbols gather_symbols(Session& session, const GatherRules& rules);

}  // namespace tacho::report
