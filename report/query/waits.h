// Off-CPU waits of threads: which thread waited, in which stack, for how long, and which thread woke it. Each
// wait is reported when it ends.
//
// A wait is one sample (a payload with a duration and the stack that went to sleep, as `-e offcpu` records
// them), or the time between two sched:sched_switch. Wakers are found in samples of the waking thread: of
// sched:sched_waking, or of an event with a field of ROLE("wakes"), the woken thread's number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "report/decode/payload.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"

namespace tacho::report {

struct WaitOptions {
  bool is_asked_for = false;
  unsigned wakers = 0;  // length of the chain of wakers: 2 is the waker and the thread that woke the waker
  Filter who;           // which threads' waits; made by take_who()
  // Report all time off the CPU: also time in the run queue, waits without a stack, and waits that began
  // before the capture or continue after it.
  bool takes_all = false;
};
constexpr unsigned kMostWakers = 16;

// Frames in a printed chain: the one between a stack and its waker's stack, and the ones for an
// interrupt and for a timer's interrupt in place of the interrupted thread.
constexpr std::string_view kWakerMark = "-- waker --", kInterruptMark = "[irq]", kTimerMark = "[timer]";

// Moves the conditions on processes, threads, names and CPUs out of a session's filter. Only the thread that
// waits must match them, when its wait begins. The end of a wait and its waker are in samples of other
// threads, which the session must not filter out.
Filter take_who(Filter& filter);

// The waker of a thread. Pointers are valid as long as the session.
struct Waker {
  const Stack* stack = nullptr;  // null: none was recorded
  std::size_t frames = 0;        // number of frames from the leaf; of an interrupt, its own frames only
  bool is_interrupt = false;     // woken by an interrupt and not by a thread
  std::string_view comm{};       // the thread's name, kInterruptMark or kTimerMark
  std::uint32_t pid = 0, tid = 0;
  bool operator==(const Waker&) const = default;
};

constexpr std::uint32_t kNoCpu = ~std::uint32_t{0};  // not known

struct Wait {
  // From the sample with which the wait began, or which reports the whole wait.
  std::size_t event = 0;
  const Thread* thread = nullptr;
  std::string_view comm{};
  std::uint32_t pid = 0, tid = 0;
  LocationId location{};
  const Stack* stack = nullptr;  // null only with takes_all
  std::uint64_t duration = 0;    // ns, above 0
  std::uint64_t end = 0;         // ns, recording clock: the thread runs again
  std::uint64_t begin() const { return end - std::min(duration, end); }
  // ns of waits of the thread before this one, of which there are no events.
  std::uint64_t skipped = 0;
  // ns, at least `duration`: an estimate for the waits without events, of which a rate limit chose this one.
  std::uint64_t weight = 0;
  std::uint64_t queued = 0;  // ns at the end of the wait that the thread was runnable, in a run queue
  // With takes_all. False: the wait began before the capture, and its duration is 0.
  bool has_begin = true;
  // With takes_all. False: no sample shows that the thread ran again before its next wait; `end` is the start
  // of that wait.
  bool has_end = true;
  // With takes_all: this is only the time in a run queue; another event reports the wait before it, if there
  // was one (`was_woken`).
  bool is_queue = false, was_woken = false;
  std::uint32_t kept = 0;           // what Waits::Keep returned
  std::uint32_t cpu = kNoCpu;       // where the thread runs again
  std::span<const Waker> wakers{};  // the direct waker first; valid until the next sample
};

// The limit of memory for call chains with wakers in a view: a few samples can make chains of many stacks.
inline constexpr std::size_t kMostChainBytes = std::size_t{1} << 28;

class Waits {
 public:
  // `keep` is called once for each sample that begins a wait and returns a number that Wait::kept has, since
  // the sample is gone when the wait ends. Null: 0. The session must outlive this.
  using Keep = std::function<std::uint32_t(const ResolvedSample&)>;
  Waits(Session& session, const WaitOptions& options, Keep keep = nullptr);

  // To be called once the events are known. Refused when the capture has no waits, or no wakers when they are
  // wanted.
  Result<> find_events();
  bool has_switches() const { return has_switches_; }

  // With takes_all: whether the capture separates time in a run queue from time asleep.
  bool has_queues() const { return has_queues_; }
  // With takes_all, after the last sample: waits that continue when the capture ends at `time`, by thread.
  std::vector<Wait> unfinished(std::uint64_t time);
  // With takes_all: the waits so far whose end is in no sample.
  std::vector<Wait> take_without_end() { return std::exchange(lost_, {}); }

  // The wait that this sample ends, if any. To be called for all samples of the session, in their order.
  std::optional<Wait> take_sample(const ResolvedSample& sample);
  // With takes_all: the same for records, of which PERF_RECORD_SWITCH ends waits where no event does.
  std::optional<Wait> take_record(const NonSampleRecord& event);

  // From now on waits get no wakers: the chains so far have used up kMostChainBytes.
  void leave_wakers_out() { keeps_wakers_ = false; }

  // Lines for stderr: what the waits lack.
  std::vector<std::string> notes() const;

 private:
  // Stack: a sample of context-switches, before the record of the switch.
  enum class What : std::uint8_t { Nothing, Switch, Wake, Wait, Queue, Stack };
  struct EventFacts {
    What what = What::Nothing;
    const PayloadField* state = nullptr;    // Switch: state of the thread that leaves the CPU
    const PayloadField* leaver = nullptr;   // Switch: that thread; null: the sample's
    const PayloadField* thread = nullptr;   // Switch: the thread that runs next; Wake: the woken thread
    const PayloadField* time = nullptr;     // Wait, Queue: duration
    const PayloadField* queued = nullptr;   // Wait: the part of it in a run queue
    const PayloadField* weight = nullptr;   // Wait: its time, and that of waits that it stands for
    const PayloadField* skipped = nullptr;  // Wait: time of waits before it without events
    const PayloadField* why = nullptr;      // Queue: why the thread did not run
    const PayloadField* waker = nullptr;    // Wake: the waker's name; may be null
  };
  // The chain of wakers of a thread: its waker, the waker of that one, and so on.
  struct Woken {
    std::vector<Waker> by;
    bool is_new = false;  // happened after the thread went to sleep
  };
  struct Asleep {
    std::uint64_t since = 0;     // ns
    std::uint64_t woken_at = 0;  // ns; 0: not woken yet
    Wait wait;                   // duration and wakers are not set yet
  };

  EventFacts facts_of(std::size_t event, const std::string& name);
  void find_switch_records();
  void leave(const format::SwitchRecord& change, std::uint32_t thread, const NonSampleRecord& event);
  bool is_wanted(const ResolvedSample& sample) const;
  Wait begun_by(const ResolvedSample& sample) const;
  std::optional<Wait> take_wait(const ResolvedSample& sample, const EventFacts& facts);
  // Fields of the kernel's tracepoints have tids of the initial pid namespace, samples have those of the
  // recorder's. Waits from sched_switch are kept by the former: outside of the recorder's namespace, samples
  // of all threads have tid 0.
  void learn_tids(const ResolvedSample& sample, std::uint32_t kernel_tid);
  std::uint32_t kernel_tid_of(const ResolvedSample& sample) const;  // 0: not known
  void leave(const ResolvedSample& sample, const EventFacts& facts);
  std::optional<Wait> take_queue(const ResolvedSample& sample, const EventFacts& facts);
  std::optional<Wait> arrive(std::uint32_t thread, std::uint64_t time);
  std::optional<Wait> first_seen(std::uint32_t thread, std::uint64_t time);
  void note_wake(std::uint32_t thread, std::uint64_t time);
  void wake(const ResolvedSample& sample, std::uint32_t thread);
  // `thread`: its number in woken_.
  Wait ended(Wait wait, std::uint32_t thread, std::uint64_t duration, std::uint64_t end);
  std::optional<Int128> number(const PayloadField* field, const ResolvedSample& sample) const;
  std::string_view waker_name(const ResolvedSample& sample, const PayloadField* field);
  Waker waker_of(const ResolvedSample& sample);

  Session* session_;
  WaitOptions options_;
  Keep keep_;
  EventSchemas schemas_;
  std::vector<EventFacts> events_;
  bool has_switches_ = false, has_queues_ = false, keeps_wakers_ = true;
  bool has_switch_records_ = false;  // these alone say when threads wait
  bool is_in_namespace_ = false;     // the two kinds of tids differ
  std::unordered_map<std::uint32_t, std::uint32_t> kernel_tids_, own_tids_;  // of each other, if they differ
  std::unordered_map<std::uint32_t, Asleep> asleep_;                         // by thread
  std::unordered_map<std::uint32_t, Wait> leaving_;                          // What::Stack, by thread
  std::unordered_map<std::uint32_t, Woken> woken_;
  // With takes_all: threads that were seen on a CPU, and the first wake-up of the others.
  std::unordered_set<std::uint32_t> seen_;
  std::unordered_map<std::uint32_t, std::uint64_t> woken_unseen_;
  std::vector<Wait> lost_;                 // for take_without_end()
  std::vector<Waker> ended_by_;            // wakers of the wait that was returned last
  std::unordered_set<std::string> names_;  // names of wakers from payloads
  enum class Part : std::uint8_t { Unknown, Code, Timer, Entry };
  Part part_of(LocationId location);
  IdMap<LocationId, Part> parts_;  // which part of an interrupt's stack it is
  std::uint64_t waits_ = 0, with_waker_ = 0, without_stack_ = 0, shortened_ = 0;
  bool is_of_all_ = false;         // the capture has switches of idle CPUs, so it was recorded with -a
  std::uint64_t without_end_ = 0;  // waits after which no sample shows the thread running again
};

}  // namespace tacho::report
