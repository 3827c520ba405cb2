// Call chains of waits.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/profile/marked_stacks.h"
#include "report/query/waits.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Call chains of waits with their wakers: below the stack that went to sleep comes a mark, then the waker's
// stack, from its leaf on, and the waker's name; then the same for the waker's waker.
class WaitChains {
 public:
  // The wait's chain, leaf first like all stacks; so the frames after the mark come first here. Its id is of
  // this object: a run uses stacks of one object only. Valid as long as this.
  const Stack* stack_of(const Wait& wait);

  // The memory of the distinct chains.
  std::size_t bytes() const { return stacks_.bytes(); }

  // For each frame of such a stack: its name, or kNo for an ordinary address.
  std::span<const WaitNameId> names_of(const Stack& stack) const { return stacks_.marks_of(stack); }
  // Lives as long as the session.
  std::string_view name(WaitNameId id) const { return names_[id]; }

 private:
  WaitNameId id_of_name(std::string_view name);
  void add_frame(LocationId location, WaitNameId name) {
    frames_.push_back(location);
    frame_names_.push_back(name);
  }

  MarkedStacks<WaitNameId> stacks_;  // with their frames' names
  IdVector<WaitNameId, std::string_view> names_;
  std::unordered_map<std::string_view, WaitNameId> by_name_;
  std::vector<LocationId> frames_;       // of the current wait
  std::vector<WaitNameId> frame_names_;  // likewise
};

}  // namespace tacho::report
