// Gathers facts of the addresses of samples: symbols for `tacho pack`, and counts of what a capture
// lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/extensions/symbol_pack.h"
#include "report/decode/instructions.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "symbolize/files/file_access.h"
#include "symbolize/pack_maker.h"
#include "symbolize/packed_names.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

// How many frames have a name.
struct NamedFrames {
  std::uint64_t frames = 0, named_frames = 0;  // lines that tacho script prints for call chains or samples
  std::uint64_t addresses = 0, named_addresses = 0;  // distinct addresses of these frames
  double share() const {                             // 0 to 1
    return frames == 0 ? 1 : static_cast<double>(named_frames) / static_cast<double>(frames);
  }
};

// Counts how often each code address is a frame of a sample.
class AddressHits {
 public:
  // Counts the frames of the sample's stack, or without a stack the sample's own address.
  void add_sample(const ResolvedSample& sample);
  // The same for `times` samples with one stack.
  void add_stack(const Stack& stack, std::uint64_t times);
  void add_location(const Location& location, std::uint64_t times);

  // Resolves every address. `at_each` is called for each with the number of its frames, after
  // resolver.frame().
  using AtEach = std::function<void(const Location& location, std::uint64_t frames, bool is_named)>;
  NamedFrames count_named(Resolver& resolver, const AtEach& at_each = {}) const;

 private:
  void hit(LocationId location, std::uint64_t times);
  std::vector<std::uint64_t> hits_;  // by location
};

// The number of samples lost while recording, over all runs of the recorder in this capture.
std::uint64_t all_lost_samples(Session& session);

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

// For `tacho pack`: every address that samples hit, with its function, inlined calls, file and line.
struct GatheredSymbols {
  format::SymbolPack pack;
  std::size_t addresses = 0;  // distinct addresses of code that samples hit, without those of data (-d)
  std::size_t named = 0;      // of these, the ones with a function
  // Addresses without a name that symbols would give one, by program or library; "" for JIT code without a
  // perf map.
  std::map<std::string, std::size_t> nameless;
  // Each jitdump reduced to the functions that were hit; they are not in the pack.
  std::vector<symbolize::JitCode::Reduced> jitdumps;
  NamedSources sources;               // with PackLevel::Code: of the functions
  symbolize::SourceSums source_sums;  // with PackLevel::Inlines: of all files that are named
};

// Sets the session options that packing requires.
void set_for_gathering(SessionOptions& options);

struct GatherRules {
  format::PackLevel level = format::PackLevel::Inlines;
  // Access to the files that names are read from; may be null. Files for unwinding use the session's access.
  symbolize::FileAccess* access = nullptr;
  // Use only names from the capture's own pack and jitdumps.
  bool only_packed = false;
};
// Reads the whole capture.
GatheredSymbols gather_symbols(Session& session, const GatherRules& rules);

}  // namespace tacho::report
