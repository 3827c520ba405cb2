// All events of a plan, open in the kernel (perf_event_open), with their rings, and what they lose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "bpf/object/probe_program.h"
#include "bpf/unwinder/stack_walker.h"
#include "bpf/user_object.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/records/event_set.h"
#include "record/host/host.h"
#include "record/kernel/perf_ring.h"
#include "record/plan/plan.h"

namespace tacho::record {

// Lost samples by event, cgroup and CPU (PERF_RECORD_LOST, read format LOST), and which of them earlier
// files reported.

struct Losses {
  std::size_t event = 0;  // index in the plan
  std::uint64_t id = 0;
  std::uint64_t lost = 0;
  std::uint64_t cgroup = 0;                           // the kernel's number; 0: not known
  std::uint64_t first = ~std::uint64_t{0}, last = 0;  // ns; first above last: not known
  int cpu = -1;                                       // where `id` does not say
  bool is_too_deep = false;                           // calls that were nested deeper than the kernel watches
};

// Adds to `all`, which has each event, id, cgroup and CPU once. A loss of 0 adds nothing.
void add_loss(std::vector<Losses>& all, const Losses& loss);

// Losses that earlier files of the same recording have reported.

// An event is lost before it is known of which cgroup it was: so one source's sums by name may go down while
// its total goes up. Reported is the total, once; names get what fits into it.
class ReportedLost {
 public:
  // The part of `all` that was not reported before. `all` has sums since the start, with each id, cgroup and
  // CPU once.
  std::vector<Losses> news(const std::vector<Losses>& all);

 private:
  struct Reported {
    std::uint64_t lost = 0, last = 0;  // and when
  };
  // By event's id, cgroup, CPU, is_too_deep.
  std::map<std::tuple<std::uint64_t, std::uint64_t, int, bool>, Reported> reported_;
  std::map<std::size_t, std::uint64_t> totals_;  // of those, by event
};

// All events of a plan, open in the kernel (perf_event_open), with the rings they write to.

// One descriptor: an event of the plan on one CPU, of one task.
struct OpenEvent {
  std::size_t event = 0;  // index in the plan
  int cpu = -1;
  int task = -1;
  format::Fd fd;
  std::uint64_t id = 0;        // in the capture
  std::size_t ring = 0;        // index of the ring it writes to
  std::uint64_t own_id = 0;    // the kernel's number, another one than `id` when it was opened again
  bool is_of_new_cpu = false;  // `id` is that of the event on another CPU
};

enum class Sampling : std::uint8_t { On, Off };

class KernelEvents {
 public:
  // Opens and maps everything, nothing enabled yet. Settings that an older kernel does not know are taken out
  // of the plan, and rings that this user may not lock are made smaller; both add a line to plan.notes.
  // `stop` is asked between the events, of which there may be many thousands: true gives up, with the code
  // EINTR.
  static Result<KernelEvents> open(Plan& plan, const Host& host, const std::function<bool()>& stop);

  // As they were opened at first: these never change.
  const std::vector<OpenEvent>& open_events() const { return events_; }
  std::vector<PerfRing>& rings() { return rings_; }
  // This ring carries the sideband (mmap, comm, fork, exit), and no other ring does.
  bool holds_sideband(std::size_t ring) const { return holds_sideband_[ring]; }

  // Ids of the events that take every thread where the others follow a target.
  std::vector<std::uint64_t> system_wide_ids() const;

  // A CPU that went offline took its events with it, except per-task ones; now that it is back they are
  // opened again, not enabled yet, and write to its rings, or to new ones where it was offline at the start
  // (Plan::later_cpus). Their records get the ids that the capture knows (PerfRing::renamed()). After an
  // error nothing is open. Call it on the thread that reads the rings.
  struct Reopened {
    std::span<const OpenEvent> events;  // until the next call, or close_cpu()
    std::string left_out;               // events that the kernel refused, and why; empty: none
  };
  Result<Reopened> reopen_cpu(int cpu, const Host& host);
  void close_cpu(int cpu);
  // Enables what reopen_cpu() gave: samples if they are switched on now.
  Result<> enable_cpu(std::span<const OpenEvent> events) const;
  // "CPU 1" and when it went and came back, for the capture's header, in the order of time.
  void note_cpu(int cpu, const std::string& what);
  format::StringPairs noted_cpus() const;

  // Called immediately after samples of events (their indices in the plan) are switched on or off: once for
  // all that are switched together.
  using OnSwitch = std::function<void(std::span<const std::size_t> events, Sampling now)>;
  void when_samples_switch(OnSwitch what) { on_switch_ = std::move(what); }

  Result<> enable_sideband() const;
  // Everything else. Events of a command that we start are enabled by its exec instead.
  Result<> enable_samples() const;
  void disable() const;
  // Switches one event by name, or all (empty) except the sideband. Events that cannot be switched belong to
  // a task that ended. The error names the events.
  Result<> set_samples(Sampling sampling, const std::string& name) const;

  // Whether samples of an event were switched on at that time (CLOCK_MONOTONIC, ns): what programs put into
  // ring buffers the kernel does not switch off.
  bool was_on(std::size_t event, std::uint64_t time) const;
  bool is_on(std::size_t event) const { return was_on(event, ~std::uint64_t{0}); }

  // While a backward ring is read the kernel must not write to it; what happens meanwhile is lost, and
  // counted.
  void pause_backward_rings(bool pause) const;

  // Samples lost so far by each event; events without losses are left out.
  std::vector<Losses> losses() const;
  // Records of processes and mappings that found no room.
  std::uint64_t sideband_losses() const;
  // Whether losses() can know: kernels before 6.0 do not count them by event.
  bool counts_losses() const;
  // Events with their names and ids, as the capture describes them.
  format::EventSet event_set() const;

 private:
  KernelEvents() = default;
  Result<> open_everywhere(Plan& plan, const Host& host, const std::function<bool()>& stop);
  Result<> open_on_cpus(Plan& plan, std::size_t event, int task, const Host& host);
  Result<int> leader_of(const Plan& plan, std::size_t event, int task, int cpu) const;
  Result<> map_rings(const Plan& plan, const Host& host);
  Result<OpenEvent> reopen_one(std::size_t event, int cpu, std::span<const OpenEvent> leaders,
                               const Host& host) const;
  Result<> give_ring(OpenEvent& event, const Host& host);

  // When each event was switched on or off, in this order.
  struct Switched {
    std::uint64_t time = 0;  // CLOCK_MONOTONIC, ns
    bool on = false;
  };
  void note_switch(std::size_t event, bool on, std::vector<std::size_t>& switched) const;
  void call_on_switch(std::span<const std::size_t> switched, Sampling now) const;
  Losses loss_of(const OpenEvent& event) const;
  std::vector<Losses> all_losses(bool of_sideband) const;

  // Events opened again with their CPU. The thread that reads rings writes it; the thread that writes the
  // capture reads it for losses.
  class Again {
   public:
    // Of each event that is open again.
    void each(const std::function<void(const OpenEvent&)>& what) const;
    // `before`: what those lost that were here.
    std::span<const OpenEvent> take(int cpu, std::vector<OpenEvent> events, std::vector<Losses> before);
    void note(std::string cpu, std::string what);
    format::StringPairs notes() const;
    // Losses of the open events, as `of` says, and of events that are gone.
    std::vector<Losses> losses(const std::function<Losses(const OpenEvent&)>& of) const;

   private:
    mutable std::mutex mutex_;
    std::map<int, std::vector<OpenEvent>> by_cpu_;
    std::vector<Losses> before_;
    format::StringPairs notes_;
  };

  std::vector<PlannedEvent> planned_;
  OnSwitch on_switch_;
  std::shared_ptr<std::vector<std::vector<Switched>>>
      switched_;  // by event; written to by the switching thread
  std::vector<OpenEvent> events_;
  std::vector<PerfRing> rings_;
  std::vector<bool> holds_sideband_;  // by ring
  // Descriptors of events that lead a group, by event, task and CPU; owned by events_.
  std::map<std::tuple<std::size_t, int, int>, int> leaders_;
  std::size_t ring_pages_ = 0, sideband_pages_ = 0;
  std::unique_ptr<Again> again_ = std::make_unique<Again>();
  struct LaterRing {
    format::Fd owner;  // an event that writes to it
    std::size_t ring = 0;
  };
  std::map<std::pair<int, bool>, LaterRing> later_rings_;  // by CPU, and whether it is for sideband
};

// Probes with arguments: opened in the kernel, with the programs that write their samples.

class ArgumentProbes {
 public:
  // The probes are hit from here on; their output is taken once the events are enabled. Detached with this
  // object. `followed`: of threads in this table (bpf/attach/follower.h), which must outlive it; nothing:
  // of all threads. `walker`: for the events whose stacks are unwound; null: none are.
  static Result<ArgumentProbes> open(const Plan& plan, const KernelEvents& events, const Host& host,
                                     std::optional<int> followed, bpf::StackWalker* walker);

  // Probes that count, by their index in Plan::argument_probes.
  bpf::MapReader counts(std::size_t probe) const { return probes_[probe].program.counts(); }
  std::uint64_t lost(std::size_t probe) const { return probes_[probe].program.lost(); }

  // Events of a CPU that were opened again, as outputs of the probes.
  Result<> put_outputs(const Plan& plan, std::span<const OpenEvent> events) const;

 private:
  struct One {
    std::size_t event = 0;  // that its samples are of
    format::Fd probe;
    bpf::ProbeProgram program;
    format::Fd link;  // with unwound stacks; destroyed first
  };

  std::vector<One> probes_;
};

// BPF programs that make perf events lose tracepoint samples (bpf/object/kernel_btf.h): found at
// the start and at the end of a recording, reported to the user, and written into the capture, since the
// kernel counts no loss for what they drop.

struct DroppingProgram {
  format::AttachedProgram program;  // of another process: without an object
  std::vector<std::string> events;  // of this recording, on its tracepoint
};

// Programs of this recording, even if no event is on their tracepoint; and programs of other processes on
// tracepoints of the plan's events, as far as the kernel lists them (CAP_PERFMON).
std::vector<DroppingProgram> dropping_programs(const Plan& plan, const KernelEvents& events,
                                               std::span<const bpf::UserObject> objects);

// The line for the user.
std::string warning_of(const DroppingProgram& program);

// The programs of the objects, in the form of captures, with what they drop; then other processes' programs.
std::vector<format::AttachedProgram> attached_programs(std::span<const bpf::UserObject> objects,
                                                       std::span<const DroppingProgram> dropping);

}  // namespace tacho::record
