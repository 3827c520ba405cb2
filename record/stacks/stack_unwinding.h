// User stacks unwound in the kernel (--call-graph ehframe), joined to their samples, and counts of complete
// stacks.
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
#include "record/host/foreign_reader.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/kernel/perf_ring.h"
#include "record/plan/adaptation.h"
#include "record/plan/plan.h"
#include "record/stacks/callchain_merger.h"
#include "record/stacks/unwind_tables.h"

namespace tacho::record {

// The message at the end of a recording: how many stacks are complete, and why others are not. Empty: there
// were no samples.
std::string stack_counts_text(const StackCounts& counts);
// Whether no message is needed: 95 % are complete, or there are none.
bool are_mostly_whole(const StackCounts& counts);
// The same for a capture's header.
format::StringPairs stack_counts_facts(const StackCounts& counts);
// The difference of two counts.
StackCounts operator-(StackCounts counts, const StackCounts& before);
// Tables and memory, for -v.
std::string table_facts_text(const TableFacts& facts);

// The kind of program that walks the stack when the event happens.
bpf::StackHook hook_of(const PlannedEvent& event);

// An event of the recorder that writes walks into a ring of samples.
struct WalksEvent {
  format::Fd fd;
  format::EventAttr attr;
  std::uint64_t id = 0;
};
// Opens it on the CPU and in the ring of `open`; walks of that CPU go there from now on.
Result<WalksEvent> open_walks(bpf::StackWalker& walker, const OpenEvent& open, const PlannedEvent& planned,
                              const Host& host);

// The attachments of the program that walks stacks to events.
class WalkHooks {
 public:
  // `walker` must outlive this.
  explicit WalkHooks(bpf::StackWalker& walker) : walker_(&walker) {}

  // Makes the kernel run the program for each event of `open`.
  Result<> attach(const OpenEvent& open, const PlannedEvent& planned, const Host& host);

 private:
  Result<> attach_behind_condition(const OpenEvent& open, const PlannedEvent& planned, bpf::StackHook hook);

  bpf::StackWalker* walker_;
  std::vector<format::Fd> holders_;                           // events that keep the program on tracepoints
  std::vector<format::Fd> held_;                              // links of the program to these events
  std::set<std::pair<std::uint32_t, std::uint64_t>> hooked_;  // tracepoints and probes
  // Links of the program to events, by event, CPU and task: replaced after a CPU was offline.
  std::map<std::tuple<std::size_t, int, int>, format::Fd> links_;
  std::map<std::size_t, bpf::EventFilter> conditions_;  // by event, with --filter
};

// A BPF program unwinds user stacks in the kernel, with tables made of the binaries' unwind information. This
// class keeps the program's tables and mappings up to date while a recording runs, and puts the stacks into
// their samples.
//
//   auto walker = StackUnwinding::load(plan, host, log);                // before the events are opened
//   auto stacks = StackUnwinding::create(*walker, plan, events, host);  // attached; nothing is sampled yet
//   stacks->read_running(processes);                                    // processes that run already
//   stacks->take_records(ring, records, begin);                         // for each ring, in each pass
//   stacks->end_pass(records);                                          // after all rings

inline constexpr std::uint64_t kTableBudget = std::uint64_t{64} << 20;  // bytes of unwind tables

class StackUnwinding {
 public:
  using Log = std::function<void(std::string_view)>;

  // Before the events are opened: if the program reads mappings itself, the sideband needs fewer wake-ups.
  struct Loaded {
    std::optional<bpf::StackWalker> walker;  // nullopt: no event needs it
    Adaptation adaptation;
  };
  static Result<Loaded> load(const Plan& plan, const Host& host, const Log& log);
  // Attaches it to the events; null without a program. The rings of `events` must not move. `plan`: as the
  // kernel accepted it.
  // `reader`: of the processes' mapped files.
  static Result<std::unique_ptr<StackUnwinding>> create(std::optional<bpf::StackWalker> walker,
                                                        const Plan& plan, KernelEvents& events,
                                                        const Host& host,
                                                        std::shared_ptr<ForeignReader> reader);
  StackUnwinding(const StackUnwinding&) = delete;
  StackUnwinding& operator=(const StackUnwinding&) = delete;
  ~StackUnwinding();

  // A CPU came online: opens its walk events again, and connects them to `opened`, its new events.
  Result<> reopen_cpu(int cpu, std::span<const OpenEvent> opened, const Plan& plan, KernelEvents& events,
                      const Host& host);
  // Samples of clocks that the kernel dropped: `due` (KernelEvents::due_samples()) less those that reached
  // the program, and one for each process that ended. While another BPF program is active on the CPU,
  // bpf_overflow_handler() drops a sample without counting it (bpf_prog_active). 0: so few that late ticks
  // may explain them.
  std::uint64_t left_out_of(std::uint64_t due) const;
  // For programs that call it themselves (kernel/kernel_events.h).
  bpf::StackWalker& walker();

  // Reads the mappings of running processes, after the sideband is enabled; then waits for their tables for a
  // short time, so that the first samples have complete stacks.
  void read_running(std::span<const int> processes);

  // Builds tables of the files that these processes run, from now on; empty: of the recorder's own.
  void look_at(std::span<const int> processes);
  // Builds the table of a program that will be started soon, and tables of its libraries as far as they are
  // found before `stop` is true.
  void expect(const std::string& path, const std::function<bool()>& stop);

  // Processes `records` from `begin` on, which came from `ring`: samples get their stacks, and mappings are
  // noted. Bytes that are no records stay unchanged.
  void take_records(const PerfRing& ring, std::vector<std::byte>& records, std::size_t begin);
  // The same for a copy of a ring that is overwritten.
  void take_copied_records(std::vector<std::byte>& records, std::size_t begin);
  // All rings were read: applies the mappings. Appends samples of earlier passes whose stacks are finished.
  void end_pass(std::vector<std::byte>& records);
  // The last pass that ended, and whether samples up to it are still held.
  std::uint64_t last_pass() const;
  bool holds_samples_until(std::uint64_t pass) const;
  // Held samples are written with unfinished stacks by the next end_pass().
  void give_up_stacks();
  // Whether a round may end here, because no sample older than the end of the last round will come. The
  // caller then ends it.
  bool try_end_round();
  // The next round is the first one of another file.
  void begin_file();

  // Whether bpf(2) is needed for the whole recording, to write mappings for the program (before Linux 6.1 it
  // cannot read them itself).
  bool writes_mappings() const;

  StackCounts counts() const;  // from any thread
  TableFacts tables() const;

 private:
  struct State;
  explicit StackUnwinding(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The events of a plan, open in the kernel, with their user stacks.
struct UnwoundEvents {
  Plan plan;  // as the kernel accepted it
  KernelEvents events;
  std::unique_ptr<StackUnwinding> stacks;  // null: no event has unwound stacks
};

// `walker`: nullopt: nothing is unwound. If unwinding is refused and ehframe is only the default (-g), the
// kernel walks stacks by frame pointers.
Result<UnwoundEvents> open_with_stacks(std::optional<bpf::StackWalker> walker, const Plan& plan,
                                       const Host& host, const std::shared_ptr<ForeignReader>& reader,
                                       const std::function<bool()>& stop);

}  // namespace tacho::record
