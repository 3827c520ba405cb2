// Call chains of waits with their wakers: below the stack that went to sleep stands a mark, then the
// stack that woke it, from its leaf on, and the waker's name; then the same of who had woken that one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/profile/marked_stacks.h"
#include "report/query/waits.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

class WaitChains {
 public:
  static constexpr std::uint32_t kPlace = 0;  // in names_of(): the frame is a place like any

  // The wait's chain, leaf first like all stacks: so what stands behind the mark comes first here. It has a
  // number of its own: a run takes all stacks from here, or none. Valid as long as this.
  const Stack* stack_of(const Wait& wait);

  // The bytes that chains take: each distinct one its frames.
  std::size_t bytes() const { return stacks_.bytes(); }

  // Of each frame of such a stack: kPlace, or what name() calls it. Empty: all are places.
  std::span<const std::uint32_t> names_of(const Stack& stack) const { return stacks_.words_of(stack); }
  // Lives as long as the session.
  std::string_view name(std::uint32_t number) const { return names_[number - 1]; }

 private:
  std::uint32_t number_of(std::string_view name);
  void add(std::uint32_t location, std::uint32_t name) {
    frames_.push_back(location);
    frame_names_.push_back(name);
  }

  MarkedStacks stacks_;  // with their frames' names
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::vector<std::uint32_t> frames_, frame_names_;  // of the wait at hand
};

}  // namespace tacho::report
