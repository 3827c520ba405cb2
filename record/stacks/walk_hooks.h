// Where the program that walks stacks runs, and the events that its walks come through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "bpf/event_filter.h"
#include "bpf/stack_walker.h"
#include "format/event_attr.h"
#include "format/file.h"
#include "format/result.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/plan.h"

namespace tacho::record {

// What kind of program runs when the event happens.
bpf::StackHook hook_of(const PlannedEvent& event);

// An event of the recorder's own, which writes walks into a ring of samples.
struct WalksEvent {
  format::Fd fd;
  format::EventAttr attr;
  std::uint64_t id = 0;
};
// On the CPU of `open`, into its ring; walks of that CPU go there from now on.
Result<WalksEvent> open_walks(bpf::StackWalker& walker, const OpenEvent& open, const PlannedEvent& planned,
                              const Host& host);

class WalkHooks {
 public:
  // `walker` must outlive it.
  explicit WalkHooks(bpf::StackWalker& walker) : walker_(&walker) {}

  // Has the kernel run the program whenever `open` happens.
  Result<> attach(const OpenEvent& open, const PlannedEvent& planned, const Host& host);

 private:
  Result<> attach_behind_condition(const OpenEvent& open, const PlannedEvent& planned, bpf::StackHook hook);

  bpf::StackWalker* walker_;
  std::vector<format::Fd> holders_;  // events that hold the program on tracepoints, and
  std::vector<format::Fd> held_;     // what keeps it there
  std::set<std::pair<std::uint32_t, std::uint64_t>> hooked_;  // tracepoints and probes: one program on each
  // What keeps it on an event, by that, its CPU and task: another one when the CPU was off line meanwhile.
  std::map<std::tuple<std::size_t, int, int>, format::Fd> links_;
  std::map<std::size_t, bpf::EventFilter> conditions_;  // by event, with --filter
};

}  // namespace tacho::record
