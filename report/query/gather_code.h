// The code of functions that samples hit, gathered to be packed: instructions, the source line of each, and
// the names of what they call and use. So annotated code is the same elsewhere.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "report/decode/instructions.h"
#include "report/query/code_places.h"
#include "report/samples/resolver.h"
#include "symbolize/pack_maker.h"

namespace tacho::report {

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

}  // namespace tacho::report
