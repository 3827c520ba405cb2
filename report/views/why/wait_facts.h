// What a thread waits for, as the recorder `offcpu` saw it when the wait began, and the thread that woke it.
// Equal facts have one number, so memory follows distinct facts, not waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "report/decode/payload.h"
#include "report/query/waits.h"
#include "report/samples/session.h"

namespace tacho::report {

// Names of the enumerators of the recorder's field `object`.
enum class WaitObject : std::uint8_t {
  Unknown,
  Futex,  // without a readable owner: a condition, a semaphore, a join, or a lock
  Mutex,
  RwLock,
  File,
  Accepted,   // a socket whose other side connected to this host's port or path, and sends requests
  Connected,  // a socket that connected to the other side, which sends answers
  Listening,
  Pipe,
  Epoll,
  OtherFile,
};

// A wait of this time is not one for a process that lives for a moment.
inline constexpr std::uint64_t kLongWait = 50'000'000;  // ns

struct WaitFacts {
  WaitObject object = WaitObject::Unknown;
  WaitObject ready = WaitObject::Unknown;     // of epoll: what ended the wait; unknown: time, or a signal
  std::uint64_t lock = 0;                     // address of the futex; 0: none
  LocationId variable = kNo<LocationId>;      // of that address
  std::uint32_t pid = 0;                      // of the process that waits
  std::uint32_t holder_tid = 0;               // 0: not known
  std::string_view holder, name, disk, call;  // comm; file or peer; its disk; system call. Empty: not known
  bool is_throttled = false;                  // the cgroup's CPU quota was used up
  bool is_stopped = false;                    // by a signal or a debugger
  bool began_before = false;                  // the recording
  bool is_unfinished = false;                 // it went on when the recording ended
  std::uint32_t runner_pid = 0;               // 0: none
  std::string_view runner;                    // comm of the thread that had the CPU; empty: an idle CPU
  Waker waker;                                // comm empty: not known
  bool is_long = false;                       // it took kLongWait at least
};

class WaitFactsTable {
 public:
  // The session must outlive this.
  explicit WaitFactsTable(Session& session);

  // Waits::Keep: the number of what the sample's payload says.
  std::uint32_t keep(const ResolvedSample& sample);
  // WallObserver::facts_of: the number of that with the wait's waker.
  std::uint32_t facts_of(const Wait& wait);
  // Of a number of facts_of().
  const WaitFacts& operator[](std::uint32_t number) const { return facts_[number]; }
  // Whether a payload says what is waited for.
  bool has_objects() const { return has_objects_; }

 private:
  struct Fields {
    const PayloadField *object = nullptr, *ready = nullptr, *lock = nullptr, *holder_tid = nullptr,
                       *holder = nullptr, *name = nullptr, *disk = nullptr, *call = nullptr,
                       *throttled = nullptr, *state = nullptr, *began_before = nullptr, *unfinished = nullptr,
                       *runner_pid = nullptr, *runner = nullptr;
  };
  const Fields* fields_of(std::size_t event);
  std::string_view text_of(const PayloadField* field, const ResolvedSample& sample);
  std::uint64_t number_of(const PayloadField* field, const ResolvedSample& sample) const;

  using PayloadKey = std::tuple<WaitObject, WaitObject, std::uint64_t, std::uint32_t, std::uint32_t,
                                const char*, const char*, unsigned, std::uint32_t, const char*, const char*>;
  using WakerKey =
      std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, const char*, const Stack*, std::size_t, bool>;

  EventSchemas schemas_;
  std::map<std::size_t, Fields> fields_;  // by event
  bool has_objects_ = false;
  std::unordered_set<std::string> texts_;
  std::deque<WaitFacts> kept_;   // of payloads
  std::deque<WaitFacts> facts_;  // with wakers
  std::map<PayloadKey, std::uint32_t> by_payload_;
  std::map<WakerKey, std::uint32_t> by_waker_;
};

}  // namespace tacho::report
