// The stacks of a flame graph, read from a capture or from folded text.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/compare/function_match.h"
#include "report/profile/frame_address.h"
#include "report/profile/stack_names.h"
#include "report/samples/session.h"
#include "report/views/flamegraph/flame_graph.h"

namespace tacho::report {

// With slow intervals, the weights "before" are of the other intervals.
struct FlameSource : StackSource {
  std::string per;           // --per: an event that is counted and not drawn; empty: none
  bool is_reversed = false;  // callees first
};

// Called once or more for each distinct stack, with the numbers of its frames, root first, and the unit of
// its weight. There is a weight before only for differences within one source.
using StackCallback =
    std::function<void(std::span<const std::uint32_t> stack, FlameWeight weight, std::string_view unit)>;

// An event whose stacks were taken.
struct FlameEvent {
  std::string name, unit;  // unit: of its weights
};

// Facts of a source.
struct FlameFacts {
  std::vector<FlameEvent> events;
  std::vector<std::string> legend;  // lines below the title
  std::vector<std::string> notes;   // lines for stderr
  bool has_samples = false;
  std::string per;   // the name of FlameSource::per
  double units = 0;  // the number of these events: the sum of its samples' periods
  FrameAddresses addresses;
  ModuleBuilds builds;
};

Result<FlameFacts> read_flame_samples(Session& session, const FlameSource& source, FlameFrames& frames,
                                      const RunSession& run, const StackCallback& take);

// Reads lines "root;...;leaf WEIGHT", as tacho folded and the stackcollapse programs write them, or with two
// weights, before and after, as difffolded.pl does. A suffix _[k], _[i], _[j] or _[w] is the kind of a frame,
// no part of its name. Weights have no unit. Memory follows the size of the text: a stack ends where it is
// deeper than 262,144 frames, or has more new names than a text of that size may have.
struct FoldedText {
  std::size_t lines = 0, stacks = 0, faults = 0, first_fault = 0;  // first_fault: the number of a line
  std::size_t cut_stacks = 0;                                      // that end early, here or in the tree
  bool has_two_weights = false;
};
// `take` returns whether it took the stack whole. `before_stack`: called before each stack with the bytes
// read so far.
using FoldedCallback = std::function<bool(std::span<const std::uint32_t> stack, FlameWeight weight)>;
FoldedText read_folded_text(std::istream& in, bool is_reversed, FlameFrames& frames,
                            const FoldedCallback& take,
                            const std::function<void(std::uint64_t bytes)>& before_stack = {});

}  // namespace tacho::report
