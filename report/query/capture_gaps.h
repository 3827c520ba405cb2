// Counts what a capture lacks: names of frames, and lost samples.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "report/samples/session.h"

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

}  // namespace tacho::report
