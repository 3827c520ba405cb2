// The state of each thread at each moment of the recording: running, runnable, or waiting, and for what.
//
// Off-CPU time comes from events (query/waits.h). All other time of a thread is CPU time, which samples of a
// clock or counter divide among call chains. So the times of a thread add up to its life: from its fork or
// the start of the recording (the first sample) to its exit or the end of the recording.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/profile/wait_chains.h"
#include "report/query/waits.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"

namespace tacho::report {

enum class WallState : std::uint8_t {
  OnCpu,
  Runnable,
  Io,       // waits for a disk
  Lock,     // waits for a lock or a condition
  Sleep,    // waits for a point in time
  Poll,     // waits for one of several files
  Network,  // waits for a socket
  Pipe,
  Child,     // waits for a child process
  Idle,      // an idle kernel thread
  Blocked,   // waits for anything else
  NoReason,  // off the CPU, and nothing says why: no event, or one without a stack
  Before,    // waited, for an unknown reason, when the recording began
  Unknown,   // no event shows its state
};
// "[on-CPU]", "[blocked: lock]"
std::string_view name_of(WallState state);

struct WallThread {
  std::uint32_t pid = 0, tid = 0;
  std::string_view comm{};           // its last name
  std::uint64_t begin = 0, end = 0;  // ns, of the recording clock
  double life = 0;                   // ns: the part of that time that options select
};

struct WallRow {
  std::uint32_t thread = 0;  // number in threads()
  WallState state = WallState::Unknown;
  const Stack* stack = nullptr;  // made by WaitChains; null: unknown
  double time = 0;               // ns
  std::uint32_t facts = 0;       // what WallObserver::facts_of() returned for its waits; 0 for other rows
};

// A wait, or a sample on the CPU: a part of the time of a row.
struct WallSpan {
  std::uint64_t begin = 0, end = 0;  // ns, of the recording clock; of a sample both are its time
  std::uint32_t row = 0;             // index in rows()
  // Waits that this one stands for, with itself. 0: no single wait: a sample, or waits without events.
  std::uint32_t waits = 0;
  std::uint32_t kept = 0;      // what WallObserver::keep returned for its sample; 0: it has none
  std::uint32_t cpu = kNoCpu;  // of a wait: where the thread runs again
};

// A part of a thread's time outside of waits in which no event or sample says that it was on the CPU.
struct WallGap {
  std::uint64_t begin = 0, end = 0;  // ns, of the recording clock
  std::uint32_t thread = 0;          // number in threads()
  WallState state = WallState::Unknown;
};

// For a view that looks at single waits. Waits with different facts have rows of their own, which have no
// wakers in their chains; and spans and gaps are kept, with 32 bytes each.
struct WallObserver {
  // Called for each sample that begins a wait, and on the CPU. Its number is in Wait::kept and
  // WallSpan::kept.
  Waits::Keep keep;
  std::function<std::uint32_t(const Wait&)> facts_of;  // called for each wait, with its wakers
};

class WallTimes {
 public:
  // Moves the conditions on times, threads and processes out of the session's filter. The session must
  // outlive this.
  WallTimes(Session& session, const WaitOptions& waits, WallObserver observer = {});

  // Call it when the events are known. A usage error: no event shows the state of threads.
  Result<> find_events();

  // Takes all samples and records of the session in order; then call finish().
  void take(const ResolvedSample& sample);
  void take(const NonSampleRecord& event);
  void finish();

  const std::vector<WallThread>& threads() const { return threads_; }
  const std::vector<WallRow>& rows() const { return rows_; }
  // With an observer: in the order of their ends, as far as events tell.
  const std::vector<WallSpan>& spans() const { return spans_; }
  // With an observer. Where a gap and a wait overlap, the thread waited.
  const std::vector<WallGap>& gaps() const { return gaps_; }
  // Whether events say when threads wait.
  bool has_waits() const { return has_waits_; }
  const WaitChains& chains() const { return chains_; }
  // The ns in [begin, end) that options select.
  double chosen(std::uint64_t begin, std::uint64_t end) const;
  // The first event whose samples say what has the CPU; empty: none.
  std::string name_of_clock() const;
  // Notes for the reader of the times.
  std::vector<std::string> notes() const;

 private:
  // A thread, while samples come. All times in ns.
  struct Track {
    std::uint32_t number = 0;        // in tracks_
    const Thread* thread = nullptr;  // null: it occurs only in events of other threads
    std::uint32_t pid = 0, tid = 0;
    bool is_forked = false;            // in the recording
    std::uint64_t begin = 0, end = 0;  // 0: before the recording; after it
    bool has_waits = false;
    bool was_off_before = false;  // the first wait had begun before the recording
    // Sleeps that events of the run queue imply, and sleeps that events describe.
    bool has_unseen_sleeps = false, has_seen_sleeps = false;
    std::uint64_t known_from = 0;  // the start of its first wait
    // Its state before its first wait; Before: it waited, or ran as far as samples show.
    WallState lead = WallState::OnCpu;
    std::uint64_t covered = 0;  // the end of the last wait so far
    double off = 0;             // waits so far
    // Time of waits that have no events, and its estimate from the weights of waits that have.
    double skipped = 0, estimate = 0;
    double lost = 0;  // from waits without an end to the next wait
    // Between waits: it ran as far as samples show, or waited for something that was not recorded.
    double vague = 0;
    std::uint64_t sampled = 0;    // sum of the periods of its samples on the CPU
    bool left_cpu = false;        // another thread was sampled on the CPU where it was sampled before
    std::optional<Wait> queue{};  // see add_queue()
  };
  Track& track_of(std::uint32_t tid);
  void add(const Wait& wait);
  void add_known(Track& track, const Wait& wait);
  void add_lost(const Wait& wait);
  void add_queue(Track& track);
  void begin_at(Track& track, std::uint64_t time, WallState lead);
  // Returns the index of the row; kNoRow: there is nothing to count.
  std::uint32_t count(const Track& track, WallState state, const Stack* stack, double time,
                      std::uint32_t facts = 0);
  void keep_span(const WallSpan& span);
  void keep_gap(const Track& track, std::uint64_t begin, std::uint64_t end, WallState state);
  void add_skipped(Track& track, std::uint64_t from, std::uint64_t to);
  // Adds the estimate for the waits without events that a part of `wait`, with `time`, stands for.
  void add_estimate(Track& track, std::uint32_t row, const Wait& wait, double time);
  bool is_of_skipped(const WallRow& row) const;
  void divide_skipped();
  void keep_shown(const std::vector<std::uint32_t>& shown, const std::vector<double>& scales);
  double finish(Track& track);
  WallState state_of(const Stack* stack);
  WallState state_at(LocationId location);

  Session* session_;
  Filter who_;
  std::vector<Filter::TimeRange> ranges_;  // empty: all
  WaitOptions options_;
  WallObserver observer_;
  Waits waits_;
  WaitChains chains_;
  bool has_waits_ = false, has_wakers_ = false, has_samples_ = false, is_clock_ = false,
       leaves_wakers_out_ = false;
  bool has_preempted_ = false;     // waits of threads that could run and were put aside
  std::vector<bool> samples_cpu_;  // by event
  std::unordered_map<std::uint32_t, std::uint32_t> last_on_cpu_;  // by CPU: the tid of its last such sample
  std::uint64_t begin_ = ~std::uint64_t{0}, end_ = 0;             // of the recording
  // ns of waits without events: of which nothing is known, and that others of the thread stand for.
  double skipped_ = 0, divided_ = 0;
  std::vector<double> estimates_;  // by row, ns
  std::uint64_t lost_ = 0;         // waits without an end
  std::deque<Track> tracks_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_tid_;         // live threads: index in tracks_
  std::unordered_map<std::uint32_t, const Thread*> known_threads_;  // by tid
  std::vector<WallThread> threads_;
  std::vector<WallRow> rows_;
  std::vector<WallSpan> spans_;
  std::vector<WallGap> gaps_;
  IndexTable<> by_row_;
  std::unordered_map<LocationId, WallState> states_;  // Unknown: it shows no state
  std::unordered_map<const Stack*, WallState> state_of_stack_;
};

}  // namespace tacho::report
