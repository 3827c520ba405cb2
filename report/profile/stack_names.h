// What a picture of stacks asks for, and how it names the frames.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/profile/frame_names.h"
#include "report/profile/slow_intervals.h"
#include "report/query/root_frames.h"
#include "report/query/waits.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"
#include "report/samples/tables.h"

namespace tacho::report {

// The stacks that a user asks for.
struct StackSource {
  std::vector<RootFrame> roots{RootFrame{}};  // by name of thread
  std::string event, weight;                  // see StackEvents
  WaitOptions waits;
  SlowQuestion slow;
  bool is_wall = false;          // the time of threads, on the CPU and off it
  bool expands_inlines = false;  // inlined calls of every stack are shown

  bool is_of_times() const { return is_wall || waits.is_asked_for; }  // not of samples
};

// The names of a picture.
class StackNames {
 public:
  virtual ~StackNames() = default;
  // The number of a name that is no code.
  virtual std::uint32_t number_of(std::string_view text, FrameKind kind) = 0;
  // The names of code in stacks whose first root frame, below the event, has this text.
  virtual FrameNames& code_below(std::string_view root) = 0;
  // Names of code become names of a waker's code.
  virtual void make_wakers(std::span<std::uint32_t> /*code*/) {}

  virtual std::string thread_name(std::string_view comm, std::uint32_t /*pid*/, std::uint32_t /*tid*/) const {
    return std::string(comm);
  }
  // The same for a sample; nullopt: it is left out. `event`: its name.
  virtual std::optional<std::string> thread_name(const ResolvedSample& sample,
                                                 std::string_view /*event*/) const {
    return thread_name(sample.comm, sample.pid(), sample.tid());
  }
  // Whether all samples of a thread with one name have one thread_name(), and none of them is left out.
  virtual bool has_fixed_name(const ResolvedSample& /*sample*/) const { return true; }
};

// Distinct stacks: the numbers of their names, root first.
using NamedStacks = DistinctLists<NamedStackId, std::uint32_t>;

// Reads all samples of a session into a sink, as Session::run() does, with or without a progress line.
using RunSession = std::function<void(Sink&)>;

}  // namespace tacho::report
