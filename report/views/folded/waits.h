// Waits by their time, and who ended them: "comm;root;...;leaf;-- waker --;leaf;...;root;comm NANOSECONDS".
//
// A wait is an event of its own (a payload with a time and the stack that went to sleep, as the recorder
// offcpu makes them), or it lies between two sched:sched_switch. Who woke a thread is told by samples of
// whoever did: of sched:sched_waking, or of an event one of whose fields has ROLE("wakes") (the number of the
// thread).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/command.h"
#include "report/decode/payload.h"
#include "report/samples/by_number.h"
#include "report/samples/session.h"
#include "report/views/folded/folded.h"

namespace tacho::report {

struct WaitOptions {
  bool is_asked_for = false;
  unsigned wakers = 0;  // how many follow one another: who woke, who woke whoever woke, ...
  Filter who;           // whose waits: take_who() made it
};
constexpr unsigned kMostWakers = 16;

// Takes from a session's filter what chooses processes, threads, their names and processors. That is asked of
// who waits, when it begins: the end of a wait, and who woke, are told by samples of others, which the
// session must give.
Filter take_who(Filter& filter);

// Rows for --off-cpu and --wakers; `options` must outlive the parsing.
void add_wait_options(std::vector<cli::Option>& rows, WaitOptions& options);
// The whole view in place of the stacks of one event.
Result<Shown> show_waits(Session& session, TextOutput& out, const WaitOptions& options,
                         const FoldOptions& fold, Names names);

class WaitSink : public Sink {
 public:
  WaitSink(Session& session, const WaitOptions& options, const FoldOptions& fold, Names names);

  // Once the events are known. An error of the use: nothing in the capture is a wait, or tells of wakers.
  Result<> find_events();
  Needs needs() const override { return Needs::Names; }
  Flow on_sample(const ResolvedSample& sample) override;
  void write(TextOutput& out) const {
    if (waits_ > 0) folded_.write(out);
  }
  std::vector<std::string> notes() const;

 private:
  enum class What : std::uint8_t { Nothing, Switch, Wake, Wait };
  struct EventFacts {
    What what = What::Nothing;
    const PayloadField* state = nullptr;   // Switch: in which the thread leaves
    const PayloadField* thread = nullptr;  // Switch: who comes; Wake: who is woken
    const PayloadField* time = nullptr;    // Wait: how long
    const PayloadField* waker = nullptr;   // Wake: the waker's name, where it is told
  };
  using Frames = std::vector<std::uint32_t>;  // names
  // Who woke a thread, and who had woken that one, and so on: what stands behind a marker each.
  struct Woken {
    std::vector<Frames> by;
    bool is_new = false;  // since the thread went to sleep
  };
  struct Asleep {
    std::uint64_t since = 0;  // ns
    Frames stack;
  };

  EventFacts facts_of(std::size_t event, const std::string& name);
  bool is_wanted(const ResolvedSample& sample) const;
  void take_wait(const ResolvedSample& sample, const EventFacts& facts);
  void leave(const ResolvedSample& sample, const EventFacts& facts);
  void arrive(std::uint32_t thread, std::uint64_t time);
  void wake(const ResolvedSample& sample, std::uint32_t thread);
  void add(std::uint32_t thread, Frames stack, std::uint64_t duration);
  std::optional<std::int64_t> number(const PayloadField* field, const ResolvedSample& sample) const;
  std::uint32_t name_of_thread(const ResolvedSample& sample, const PayloadField* told = nullptr);
  Frames waiting_stack(const ResolvedSample& sample);
  Frames waking_stack(const ResolvedSample& sample, bool& is_interrupt);
  const Frames& names_of(std::uint32_t location);
  bool is_interrupt_entry(std::uint32_t location);

  Session* session_;
  WaitOptions options_;
  FoldOptions fold_;
  EventSchemas schemas_;
  FoldedStacks folded_;
  std::uint32_t marker_, interrupt_;  // names
  std::vector<EventFacts> events_;
  bool has_switches_ = false;
  std::unordered_map<std::uint32_t, Asleep> asleep_;  // by thread
  std::unordered_map<std::uint32_t, Woken> woken_;
  struct Place {
    Frames names;  // outermost first
    bool is_named = false, is_interrupt_entry = false;
  };
  ByNumber<Place> places_;
  std::uint64_t waits_ = 0, with_waker_ = 0, without_stack_ = 0;
};

}  // namespace tacho::report
