// Waits of threads in a capture, each told once it is over: who waited where, for how long, and who ended it.
//
// A wait is an event of its own (a payload with a time and the stack that went to sleep, as the recorder
// offcpu makes them), or it lies between two sched:sched_switch. Who woke a thread is told by samples of
// whoever did: of sched:sched_waking, or of an event one of whose fields has ROLE("wakes") (the number of the
// thread).
#pragma once

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
#include "report/samples/by_number.h"
#include "report/samples/session.h"

namespace tacho::report {

struct WaitOptions {
  bool is_asked_for = false;
  unsigned wakers = 0;  // how many follow one another: who woke, who woke whoever woke, ...
  Filter who;           // whose waits: of it only what take_who() takes counts
  // Everything that threads do off the CPU: also times in which they could run, waits without a stack, and
  // those that had begun before the capture or go on when it ends.
  bool takes_all = false;
};
constexpr unsigned kMostWakers = 16;

// What stands between a stack and the stack that ended its wait, and in place of the thread that an interrupt
// hit: what a timer ended has its own.
constexpr std::string_view kWakerMark = "-- waker --", kInterruptMark = "[irq]", kTimerMark = "[timer]";

// Takes from a session's filter what chooses processes, threads, their names and processors. That is asked of
// who waits, when it begins: the end of a wait, and who woke, are told by samples of others, which the
// session must give.
Filter take_who(Filter& filter);

// Who woke. What it points to lives as long as the session.
struct Waker {
  const Stack* stack = nullptr;  // null: none was recorded
  std::size_t frames = 0;        // of the stack, from the leaf: an interrupt's are those it did not hit
  bool is_interrupt = false;     // then no thread's
  std::string_view comm{};       // of its thread, or the mark of an interrupt
  std::uint32_t pid = 0, tid = 0;
  bool operator==(const Waker&) const = default;
};

struct Wait {
  // Of the sample that the wait began with, or that tells of all of it.
  std::size_t event = 0;
  const Thread* thread = nullptr;
  std::string_view comm{};
  std::uint32_t pid = 0, tid = 0;
  std::uint32_t place = 0;       // number of its location
  const Stack* stack = nullptr;  // with takes_all it may be null, else never
  std::uint64_t duration = 0;    // ns, above 0
  std::uint64_t end = 0;         // ns, of the recording's clock: the thread is back
  std::uint64_t queued = 0;      // ns, the last ones of it, in which the thread could run
  // With takes_all. Not: it had begun before the capture, and its duration is 0.
  bool has_begin = true;
  // With takes_all. Not: the thread went to sleep again, and nobody told that it had come back before; `end` is
  // then.
  bool has_end = true;
  // With takes_all: of it only the time in which the thread could run is known, as another event tells of a
  // wait that came before. `was_woken`: there was one.
  bool is_queue = false, was_woken = false;
  std::uint32_t kept = 0;           // see Waits
  std::span<const Waker> wakers{};  // the last one first; valid until the next sample
};

// Of all call chains with wakers that a view keeps: a few samples can make chains of many others' stacks.
inline constexpr std::size_t kMostChainBytes = std::size_t{1} << 28;

class Waits {
 public:
  // `keep`: asked once of each sample that a wait begins with, for a number that comes back with the wait, as
  // the sample itself is gone by then. Null: 0. The session must outlive this.
  using Keep = std::function<std::uint32_t(const ResolvedSample&)>;
  Waits(Session& session, const WaitOptions& options, Keep keep = nullptr);

  // Once the events are known. An error of the use: nothing in the capture is a wait, or tells of wakers.
  Result<> find_events();
  bool has_switches() const { return has_switches_; }

  // With takes_all: of threads that could run, which are told apart from those that wait.
  bool has_queues() const { return has_queues_; }
  // With takes_all, after the last sample: waits that went on when the capture ended, at `time`, by thread.
  std::vector<Wait> unfinished(std::uint64_t time);

  // With takes_all: those of which no sample tells the end, up to the last one that take() was given.
  std::vector<Wait> take_without_end() { return std::exchange(lost_, {}); }

  // The wait that this sample ends; nothing: none. All samples of the session come here, in their order.
  std::optional<Wait> take(const ResolvedSample& sample);

  // Waits that end from now on have no wakers: the chains of those before take kMostChainBytes.
  void leave_wakers_out() { keeps_wakers_ = false; }

  // What a reader of the waits should know, as lines.
  std::vector<std::string> notes() const;

 private:
  enum class What : std::uint8_t { Nothing, Switch, Wake, Wait, Queue };
  struct EventFacts {
    What what = What::Nothing;
    const PayloadField* state = nullptr;   // Switch: in which the thread leaves
    const PayloadField* thread = nullptr;  // Switch: who comes; Wake: who is woken
    const PayloadField* time = nullptr;    // Wait, Queue: how long
    const PayloadField* queued = nullptr;  // Wait: how much of it the thread could run
    const PayloadField* why = nullptr;     // Queue: why the thread did not run
    const PayloadField* waker = nullptr;   // Wake: the waker's name, where it is told
  };
  // Who woke a thread, and who had woken that one, and so on.
  struct Woken {
    std::vector<Waker> by;
    bool is_new = false;  // since the thread went to sleep
  };
  struct Asleep {
    std::uint64_t since = 0;     // ns
    std::uint64_t woken_at = 0;  // ns; 0: it was not yet
    Wait wait;                   // without its duration and its wakers
  };

  EventFacts facts_of(std::size_t event, const std::string& name);
  bool is_wanted(const ResolvedSample& sample) const;
  Wait begun_by(const ResolvedSample& sample) const;
  std::optional<Wait> take_wait(const ResolvedSample& sample, const EventFacts& facts);
  void leave(const ResolvedSample& sample, const EventFacts& facts);
  std::optional<Wait> take_queue(const ResolvedSample& sample, const EventFacts& facts);
  std::optional<Wait> arrive(std::uint32_t thread, std::uint64_t time);
  std::optional<Wait> first_seen(std::uint32_t thread, std::uint64_t time);
  void note_wake(std::uint32_t thread, std::uint64_t time);
  void wake(const ResolvedSample& sample, std::uint32_t thread);
  Wait ended(Wait wait, std::uint64_t duration, std::uint64_t end);
  std::optional<std::int64_t> number(const PayloadField* field, const ResolvedSample& sample) const;
  std::string_view waker_name(const ResolvedSample& sample, const PayloadField* told);
  Waker waker_of(const ResolvedSample& sample);

  Session* session_;
  WaitOptions options_;
  Keep keep_;
  EventSchemas schemas_;
  std::vector<EventFacts> events_;
  bool has_switches_ = false, has_queues_ = false, keeps_wakers_ = true;
  std::unordered_map<std::uint32_t, Asleep> asleep_;  // by thread
  std::unordered_map<std::uint32_t, Woken> woken_;
  // With takes_all: threads that were seen on a CPU, and when others were woken first.
  std::unordered_set<std::uint32_t> seen_;
  std::unordered_map<std::uint32_t, std::uint64_t> woken_unseen_;
  std::vector<Wait> lost_;  // for take_without_end()
  std::vector<Waker> ended_by_;            // of the wait that was told last
  std::unordered_set<std::string> names_;  // that payloads tell
  enum class Part : std::uint8_t { Unasked, Code, Timer, Entry };
  Part part_of(std::uint32_t location);
  ByNumber<Part> parts_;  // what a location is of an interrupt's stack
  std::uint64_t waits_ = 0, with_waker_ = 0, without_stack_ = 0, shortened_ = 0;
  bool is_of_all_ = false;         // idle processors switch, too: of all threads, as with -a
  std::uint64_t without_end_ = 0;  // the thread went to sleep again, and nobody told that it had come back
};

}  // namespace tacho::report
