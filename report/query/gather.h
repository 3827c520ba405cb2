// Every address that the samples of a capture hit, with what is known of it here.
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
#include "report/query/code_places.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "symbolize/files/file_gate.h"
#include "symbolize/pack_maker.h"

namespace tacho::report {

// The code of functions that samples hit, gathered to be packed: instructions, the source line of each, and
// the names of what they call and use. So annotated code is the same elsewhere.

class CodeGatherer {
 public:
  // Both must outlive it. `arch` as in the capture's header.
  CodeGatherer(Resolver& resolver, symbolize::PackMaker& maker, std::string_view arch);

  // The function of a place that was hit, where it is not too large; else the instructions at the place.
  void add(const Location& location, const symbolize::PlaceFacts& facts);
  // A function from a jitdump, whose names and lines travel in that.
  void add_made(const Location& location, const symbolize::PlaceFacts& facts);

  // Source files of functions that were added, with their folders.
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
  std::size_t addresses = 0;  // distinct places that samples hit
  std::size_t named = 0;      // of these, with a function
  // The others that a person could have named: by the program or library, which lacks symbols; "" for code
  // made at run time, which lacks a map.
  std::map<std::string, std::size_t> nameless;
  // Of each jitdump the functions that were hit, in place of names in the pack: by its path.
  std::vector<symbolize::JitCode::Reduced> jitdumps;
  std::set<std::string> sources;  // with the level Code: files of the functions, with their folders
};

// Options that packing needs of a session, whatever the user says.
void set_for_gathering(SessionOptions& options);

struct GatherRules {
  format::PackLevel level = format::PackLevel::Inlines;
  // Of the modules that names are read of; may be null. Those that stacks are unwound with go by the
  // session's own.
  symbolize::FileGate* gate = nullptr;
  // Names that were packed already, and those of jitdumps, and no others.
  bool only_packed = false;
};
// Reads the whole capture.
GatheredSymbols gather_symbols(Session& session, const GatherRules& rules);

}  // namespace tacho::report
