// What a capture lacks: names of the frames of its samples, and samples that were lost.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "report/samples/session.h"

namespace tacho::report {

// How many frames have a name.
struct NamedFrames {
  std::uint64_t frames = 0, named_frames = 0;  // as tacho script prints them: lines of call chains, or places
  std::uint64_t addresses = 0, named_addresses = 0;  // distinct ones of them
  double share() const {                             // 0 to 1
    return frames == 0 ? 1 : static_cast<double>(named_frames) / static_cast<double>(frames);
  }
};

// How often each place is a frame of a sample.
class PlaceHits {
 public:
  // A sample's stack, or where it has none its own place.
  void add(const ResolvedSample& sample);
  // The same of `times` samples with one stack.
  void add(const Stack& stack, std::uint64_t times);
  void add(const Location& place, std::uint64_t times);

  // Looks up the name of each place. `at_each` gets each with its frames; by then resolver.frame() was asked
  // for its name.
  using AtEach = std::function<void(const Location& place, std::uint64_t frames, bool is_named)>;
  NamedFrames count_named(Resolver& resolver, const AtEach& at_each = {}) const;

 private:
  void hit(std::uint32_t place, std::uint64_t times);
  std::vector<std::uint64_t> hits_;  // by the place's number
};

// Samples that were lost while they were recorded, as the runs that are over counted them.
std::uint64_t all_lost_samples(Session& session);

}  // namespace tacho::report
