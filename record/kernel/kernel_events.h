// The events of a plan, open in the kernel (perf_event_open), with their rings, and their losses.
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
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/records/event_set.h"
#include "record/host/host.h"
#include "record/kernel/losses.h"
#include "record/kernel/perf_ring.h"
#include "record/plan/adaptation.h"
#include "record/plan/plan.h"

namespace tacho::record {

// One descriptor: an event of the plan on one CPU, of one task.
struct OpenEvent {
  std::size_t event = 0;  // index in the plan
  int cpu = -1;
  int task = -1;
  format::Fd fd;
  std::uint64_t id = 0;        // in the capture
  std::size_t ring = 0;        // index of the ring it writes to
  std::uint64_t own_id = 0;    // the kernel's id; differs from `id` if the event was reopened
  bool is_of_new_cpu = false;  // `id` is that of an event on another CPU
};

enum class Sampling : std::uint8_t { On, Off };

class KernelEvents {
 public:
  // Opens all events and maps their rings; nothing is enabled. Flags that an older kernel does not know are
  // left out, and rings are made smaller if the limit of locked memory requires it: adaptation() has both.
  // `stop` is polled, since there may be thousands of events: true ends it with EINTR.
  static Result<KernelEvents> open(const Plan& plan, const Host& host, const std::function<bool()>& stop);
  const Adaptation& adaptation() const { return adaptation_; }

  // The events as opened at the start. They do not change.
  const std::vector<OpenEvent>& open_events() const { return events_; }
  std::vector<PerfRing>& rings() { return rings_; }
  // Whether the ring is one for sideband records (mmap, comm, fork, exit).
  bool holds_sideband(std::size_t ring) const { return holds_sideband_[ring]; }

  // Ids of the events that record all threads although the recording has a target.
  std::vector<std::uint64_t> system_wide_ids() const;

  // Opens the events of a CPU again after it was offline (per-task events go on by themselves). They are not
  // enabled yet. They write to the CPU's rings, or to new ones if it was offline at the start
  // (Plan::later_cpus), and their records get the ids in the capture (PerfRing::renamed()). After an error
  // none is open. Call it on the thread that reads the rings.
  struct Reopened {
    std::span<const OpenEvent> events;  // valid until the next call or close_cpu()
    std::string left_out;               // the refused events, with reasons; empty: none
  };
  Result<Reopened> reopen_cpu(int cpu, const Host& host);
  void close_cpu(int cpu);
  // Enables the events of reopen_cpu(); those of samples only if samples are enabled now.
  Result<> enable_cpu(std::span<const OpenEvent> events) const;
  // Adds a change for the capture's header: "CPU 1" and when it went offline or came back.
  void note_cpu(int cpu, const std::string& what);
  format::StringPairs noted_cpus() const;

  // Called right after samples of events (indices in the plan) were enabled or disabled: once for all that
  // change together.
  using OnSwitch = std::function<void(std::span<const std::size_t> events, Sampling now)>;
  void when_samples_switch(OnSwitch what) { on_switch_ = std::move(what); }

  Result<> enable_sideband() const;
  // Enables all other events. Events of a COMMAND are enabled by its exec instead.
  Result<> enable_samples() const;
  void disable() const;
  // Enables or disables one event by name, or all except the sideband (empty name). An unknown name: the
  // error lists the events. (Events of tasks that ended are ignored.)
  Result<> set_samples(Sampling sampling, const std::string& name) const;

  // Whether samples of an event were enabled at that time (CLOCK_MONOTONIC, ns). For ring buffers of BPF
  // programs, which the kernel does not disable.
  bool was_on(std::size_t event, std::uint64_t time) const;
  bool is_on(std::size_t event) const { return was_on(event, ~std::uint64_t{0}); }

  // Pauses or resumes backward rings: while one is read, the kernel must not write to it. Samples meanwhile
  // are lost, and counted.
  void pause_backward_rings(bool pause) const;

  // Samples lost so far by each event; events without losses are left out.
  std::vector<Losses> losses() const { return all_losses(false); }
  // Number of lost sideband records.
  std::uint64_t sideband_losses() const;
  // Whether the kernel counts losses by event (since 6.0), as losses() needs.
  bool counts_losses() const;
  // Samples that were due until now by the clocks whose user stacks a BPF program walks, as `lost`, and their
  // first event. Nothing: there is none, it is of whole CPUs, or stacks of other events are walked too, whose
  // samples have no fixed period.
  std::optional<Losses> due_samples() const;
  // Events with their names and ids, as the capture describes them.
  format::EventSet event_set() const;

 private:
  explicit KernelEvents(const Plan& plan);
  Result<> open_everywhere(const Plan& plan, const Host& host, const std::function<bool()>& stop);
  void open_uninherited_events(const Plan& plan);
  Result<> open_on_cpus(const Plan& plan, std::size_t event, int task, const Host& host);
  Result<int> leader_of(std::size_t event, int task, int cpu) const;
  Result<> map_rings(const Host& host);
  void halve_rings(std::size_t page_size);
  void note_adaptation(const Plan& plan);
  Result<> map_ring(OpenEvent& event, const PlannedEvent& planned, std::size_t pages, const Host& host);
  void each_open(const std::function<void(const OpenEvent&, const PlannedEvent&)>& what) const;
  std::vector<Losses> losses_of_cpu(int cpu) const;
  Result<OpenEvent> reopen_one(std::size_t event, int cpu, std::span<const OpenEvent> leaders,
                               const Host& host) const;
  Result<> give_ring(OpenEvent& event, const Host& host);

  // The times at which an event was enabled and disabled, in order.
  struct Switched {
    std::uint64_t time = 0;  // CLOCK_MONOTONIC, ns
    bool on = false;
  };
  void note_switch(std::size_t event, bool on, std::vector<std::size_t>& switched) const;
  void call_on_switch(std::span<const std::size_t> switched, Sampling now) const;
  Losses loss_of(const OpenEvent& event) const;
  std::vector<Losses> all_losses(bool of_sideband) const;

  // Events that were reopened. Changed by the thread that reads the rings, read by the writing thread for
  // losses.
  class ReopenedEvents {
   public:
    // Calls `what` for each event that is open.
    void each(const std::function<void(const OpenEvent&)>& what) const;
    // Adds the reopened events of a CPU. `before`: losses of its earlier events.
    std::span<const OpenEvent> replace_events(int cpu, std::vector<OpenEvent> events,
                                              std::vector<Losses> before);
    void add_note(std::string cpu, std::string what);
    format::StringPairs notes() const;
    // Losses of the open events, by `of`, and of closed ones.
    std::vector<Losses> losses(const std::function<Losses(const OpenEvent&)>& of) const;

   private:
    mutable std::mutex mutex_;
    std::map<int, std::vector<OpenEvent>> by_cpu_;
    std::vector<Losses> before_;
    format::StringPairs notes_;
  };

  std::vector<PlannedEvent> planned_;  // as they are opened
  Adaptation adaptation_;
  OnSwitch on_switch_;
  std::shared_ptr<std::vector<std::vector<Switched>>> switched_;  // by event
  std::vector<OpenEvent> events_;
  std::vector<format::Fd> uninherited_;  // see open_uninherited_event()
  std::vector<PerfRing> rings_;
  std::vector<bool> holds_sideband_;  // by ring
  // Descriptors of events that lead a group, by event, task and CPU; owned by events_.
  std::map<std::tuple<std::size_t, int, int>, int> leaders_;
  std::size_t ring_pages_ = 0, sideband_pages_ = 0;
  std::unique_ptr<ReopenedEvents> reopened_ = std::make_unique<ReopenedEvents>();
  struct LaterRing {
    format::Fd owner;  // an event that writes to it
    std::size_t ring = 0;
  };
  std::map<std::pair<int, bool>, LaterRing> later_rings_;  // by CPU, and whether it is for sideband
};

}  // namespace tacho::record
