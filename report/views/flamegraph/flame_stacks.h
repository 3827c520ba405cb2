// Where the stacks of a flame graph come from: the samples of a capture, or folded text.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/profile/frame_names.h"
#include "report/profile/slow_intervals.h"
#include "report/query/waits.h"
#include "report/samples/session.h"
#include "report/views/flamegraph/flame_tree.h"

namespace tacho::report {

// What stands below the functions of a stack, outermost first.
enum class FlameRoot : std::uint8_t { Comm, Pid, Tid, Cpu, Cgroup, Event };
// "comm,cpu"; "none": nothing.
Result<std::vector<FlameRoot>> parse_flame_roots(std::string_view text);

struct FlameSource {
  std::vector<FlameRoot> roots{FlameRoot::Comm};
  std::string event, weight;  // as tacho folded takes them; empty: its defaults
  std::string per;            // an event that is counted and not drawn; empty: none
  WaitOptions waits;
  SlowQuestion slow;             // where it is asked for, weights before are those in the other intervals
  bool is_wall = false;          // the time of threads, on the CPU and off it
  bool is_reversed = false;      // callees first
  bool expands_inlines = false;  // inlined calls of every stack are shown
};

// Gets each distinct stack once or more, root first, by the numbers of its frames. Only differences within a
// source have a weight before.
using TakeStack = std::function<void(std::span<const std::uint32_t> stack, FlameWeight weight)>;

// What a source says of itself.
struct FlameFacts {
  std::string unit;                 // of the weights; empty: unknown
  std::vector<std::string> events;  // whose samples were taken
  std::vector<std::string> legend;  // lines below the title
  std::vector<std::string> notes;   // lines for stderr
  bool has_samples = false;
  std::string per;                 // the name of FlameSource::per
  double units = 0;                // how often it happened: the sum of its samples' periods
  std::vector<FramePlace> places;  // where frames were met first, by number; shorter: not in code
};

// Reads all samples of a session. `run` gives them to a sink: Session::run(), with progress or without.
using RunSession = std::function<void(Sink&)>;
Result<FlameFacts> read_flame_samples(Session& session, const FlameSource& source, FlameFrames& frames,
                                      const RunSession& run, const TakeStack& take);

// Reads lines "root;...;leaf WEIGHT", as tacho folded and the programs called stackcollapse write them; of
// two weights, as difffolded.pl writes them, the first was before. An ending _[k], _[i], _[j] or _[w] says
// what a frame is, and is no part of its name.
struct FoldedText {
  std::size_t lines = 0, faults = 0, first_fault = 0;  // first_fault: the number of a line
  bool has_two_weights = false;
};
FoldedText read_folded_text(std::istream& in, bool is_reversed, FlameFrames& frames, const TakeStack& take);

}  // namespace tacho::report
