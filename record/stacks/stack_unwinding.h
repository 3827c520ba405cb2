// User stacks unwound in the kernel (--call-graph ehframe): the BPF program with its tables and mappings
// kept up to date, its walks joined to samples, and the counts of whole stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/unwinder/stack_walker.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/records/event_attr.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/kernel/perf_ring.h"
#include "record/plan/plan.h"
#include "record/stacks/callchain_merger.h"
#include "record/stacks/unwind_tables.h"

namespace tacho::record {

// The line for the end of a recording: how many stacks are whole, and why the others are not. Empty without
// samples.
std::string described(const StackCounts& counts);
// Whether that needs no message: 95 % are whole, or there are none.
bool are_mostly_whole(const StackCounts& counts);
// The same for a capture's header.
format::StringPairs facts_of(const StackCounts& counts);
// The difference of two counts.
StackCounts operator-(StackCounts counts, const StackCounts& before);
// Tables and memory, for -v.
std::string described(const TableFacts& facts);

// Where the program that walks stacks runs, and the events that its walks come through.

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
  // Link of the program to an event, by event, CPU and task: replaced when the CPU was offline meanwhile.
  std::map<std::tuple<std::size_t, int, int>, format::Fd> links_;
  std::map<std::size_t, bpf::EventFilter> conditions_;  // by event, with --filter
};

// --call-graph ehframe: users' stacks walked in the kernel, by a BPF program and tables of the binaries' own
// unwind information. This keeps the program's tables and mappings up to date while a recording runs, and
// puts the stacks into their samples.
//
//   auto walker = StackUnwinding::load(plan, host, log);                // before the events are opened
//   auto stacks = StackUnwinding::create(*walker, plan, events, host);  // attached; nothing is sampled yet
//   stacks->begin(processes);                                           // what runs already
//   stacks->take(ring, records, begin);                                 // for each ring, again and again
//   stacks->end_pass(records);                                    // after all rings

inline constexpr std::uint64_t kTableBudget = std::uint64_t{64} << 20;  // bytes of unwind tables

class StackUnwinding {
 public:
  using Log = std::function<void(std::string_view)>;

  // The program, loaded; nothing when no event wants it. Where it reads mappings itself, this relaxes the
  // sideband's wake-ups: call it before the events are opened.
  static Result<std::optional<bpf::StackWalker>> load(Plan& plan, const Host& host, const Log& log);
  // Attaches it to the events; null without a program. `plan`, `events` and their rings must stay where they
  // are.
  static Result<std::unique_ptr<StackUnwinding>> create(std::optional<bpf::StackWalker> walker,
                                                        const Plan& plan, KernelEvents& events,
                                                        const Host& host);
  StackUnwinding(const StackUnwinding&) = delete;
  StackUnwinding& operator=(const StackUnwinding&) = delete;
  ~StackUnwinding();

  // A CPU came online: opens its walk events again, and joins them to `opened`, its new events.
  Result<> reopen_cpu(int cpu, std::span<const OpenEvent> opened, const Plan& plan, KernelEvents& events,
                      const Host& host);
  // For programs that run it themselves (kernel/kernel_events.h).
  bpf::StackWalker& walker();

  // Reads the mappings of running processes, once the sideband is on; then waits for their tables for a
  // moment, so that the first samples are as good as the last.
  void begin(std::span<const int> processes);

  // Tables of what these processes run are built from now on; none: of what we run ourselves.
  void look_at(std::span<const int> processes);
  // A program that will be started soon: builds its table meanwhile, and its libraries' as far as they are
  // found before `stop` is true.
  void expect(const std::string& path, const std::function<bool()>& stop);

  // `records` from `begin` on came from `ring`: samples get their stacks, and mappings are noted. Bytes
  // that are no records stay as they are.
  void take(const PerfRing& ring, std::vector<std::byte>& records, std::size_t begin);
  // The same of a copy of a ring that is written over and over.
  void take_copy(std::vector<std::byte>& records, std::size_t begin);
  // Every ring was read: applies the mappings. Appends samples of earlier passes whose stacks were finished
  // meanwhile.
  void end_pass(std::vector<std::byte>& records);
  // The number of the pass that ended last, and whether samples that were taken by then are still to come.
  std::uint64_t last_pass() const;
  bool holds_samples_until(std::uint64_t pass) const;
  // They will come as they are.
  void give_up();
  // Whether a round may end here: no sample will come that is older than the end of the last round. The
  // caller ends it then.
  bool end_round();
  // The next round is the first one of another file.
  void begin_file();

  // Whether bpf(2) is needed as long as it runs, to write mappings for the program: it does not read them
  // itself (before Linux 6.1).
  bool tells_of_mappings() const;

  StackCounts counts() const;  // from any thread
  TableFacts tables() const;

 private:
  struct State;
  explicit StackUnwinding(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The events of a plan, open in the kernel, with their users' stacks.

struct UnwoundEvents {
  KernelEvents events;
  std::unique_ptr<StackUnwinding> stacks;  // null: no event has unwound ones
};

// `walker`: none when nothing is unwound. Where unwinding is refused and was not asked for by name (-g),
// the kernel walks stacks by frame pointers; the plan says so then. `plan` must stay at its address.
Result<UnwoundEvents> open_with_stacks(std::optional<bpf::StackWalker> walker, Plan& plan, const Host& host,
                                       const std::function<bool()>& stop);

}  // namespace tacho::record
