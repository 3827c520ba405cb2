// Gathers the symbols of a capture for `tacho pack`, and counts the frames that have a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "format/extensions/symbol_pack.h"
#include "report/query/code_gatherer.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "symbolize/files/file_access.h"

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
