// Counts what a capture lacks: names of frames, and lost samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "report/samples/session.h"
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
class PlaceHits {
 public:
  // Counts the frames of the sample's stack, or without a stack the sample's own address.
  void add(const ResolvedSample& sample);
  // The same for `times` samples with one stack.
  void add(const Stack& stack, std::uint64_t times);
  void add(const Location& place, std::uint64_t times);

  // Resolves every address. `at_each` is called for each with the number of its frames, after
  // resolver.frame().
  using AtEach = std::function<void(const Location& place, std::uint64_t frames, bool is_named)>;
  NamedFrames count_named(Resolver& resolver, const AtEach& at_each = {}) const;

 private:
  void hit(std::uint32_t place, std::uint64_t times);
  std::vector<std::uint64_t> hits_;  // by index of the address
};

// The number of samples lost while recording, over all runs of the recorder in this capture.
std::uint64_t all_lost_samples(Session& session);

// Translates the ELF addresses in instruction operands to the addresses that views show and resolve.

class CodePlaces {
 public:
  // `facts` belong to any address of the same module; `elf_address` is an address in its ELF file. nullopt
  // when no name can be known for it.
  std::optional<std::uint64_t> shown_address(const symbolize::PlaceFacts& facts, std::uint64_t elf_address);

 private:
  // Packed addresses that have symbols: the shown address by the ELF address.
  using ByFile = std::unordered_map<std::uint64_t, std::uint64_t>;
  std::unordered_map<const symbolize::PackedSource*, ByFile> packed_;
};

}  // namespace tacho::report
