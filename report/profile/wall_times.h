// What threads did in each moment of their life in the recording: ran, could run, or waited for something.
//
//  Off the CPU they are between events that say so (query/waits.h). All other time of a thread is time on the
//  CPU; samples of a clock or counter say how it is divided among call chains. So the times of a thread add
//  up to its life, from its fork or the begin of the recording to its end or that of the recording.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/profile/profile.h"
#include "report/query/waits.h"
#include "report/samples/by_number.h"
#include "report/samples/index_table.h"
#include "report/samples/session.h"

namespace tacho::report {

enum class WallState : std::uint8_t {
  OnCpu,
  Runnable,
  Io,       // waits for a disk
  Lock,     // for a lock or a condition
  Sleep,    // for a time
  Poll,     // for one of several files
  Network,  // for a socket
  Pipe,
  Child,    // for a process that it started
  Idle,     // a thread of the kernel without work
  Blocked,  // for anything else
  Before,   // it waited when the recording began: for what is not known
  Unknown,  // no event says what it did
};
// "[on-CPU]", "[blocked: lock]"
std::string_view name_of(WallState state);

struct WallThread {
  std::uint32_t pid = 0, tid = 0;
  std::string_view comm{};           // its last name
  std::uint64_t begin = 0, end = 0;  // ns, of the recording's clock
  double life = 0;                   // ns, of what options chose of that time
};

struct WallRow {
  std::uint32_t thread = 0;  // number in threads()
  WallState state = WallState::Unknown;
  const Stack* stack = nullptr;  // as WaitChains makes them; null: not known
  double time = 0;               // ns
};

class WallTimes {
 public:
  // Takes what chooses times, threads and processes from the session's filter. The session must outlive this.
  WallTimes(Session& session, const WaitOptions& waits);

  // Once the events are known. An error of the use: no event says what threads do.
  Result<> find_events();

  // All samples and records of the session come here, in their order; then finish().
  void take(const ResolvedSample& sample);
  void take(const OtherEvent& event);
  void finish();

  const std::vector<WallThread>& threads() const { return threads_; }
  const std::vector<WallRow>& rows() const { return rows_; }
  const WaitChains& chains() const { return chains_; }
  // What a reader of the times should know, as lines.
  std::vector<std::string> notes() const;

 private:
  // A thread while samples come. All times in ns.
  struct Track {
    std::uint32_t number = 0;        // in tracks_
    const Thread* thread = nullptr;  // null: only others' events name it
    std::uint32_t pid = 0, tid = 0;
    bool is_forked = false;            // in the recording
    std::uint64_t begin = 0, end = 0;  // 0: it was there before; it went on
    bool has_waits = false;
    bool was_off_before = false;   // the first of them had begun before the recording
    std::uint64_t known_from = 0;  // where its first wait begins
    WallState lead =
        WallState::OnCpu;       // what it did before that; Before: it waited, or ran as far as samples say
    std::uint64_t covered = 0;  // up to there waits were taken
    double off = 0;             // waits so far
    double lost = 0;            // from waits without an end to the next
    double vague = 0;  // between waits: it ran as far as samples say, or waited for what is not recorded
    std::uint64_t sampled = 0;    // periods of its samples on the CPU
    std::optional<Wait> queue{};  // see add_queue()
  };
  Track& track_of(std::uint32_t tid);
  void add(const Wait& wait);
  void add_known(Track& track, const Wait& wait);
  void add_lost(const Wait& wait);
  void add_queue(Track& track);
  void begin_at(Track& track, std::uint64_t time, WallState lead);
  void count(const Track& track, WallState state, const Stack* stack, double time);
  double finish(Track& track);
  double chosen(std::uint64_t begin, std::uint64_t end) const;  // ns, in [begin, end)
  WallState state_of(const Stack* stack);
  WallState state_at(std::uint32_t location);

  Session* session_;
  Filter who_;
  std::vector<Filter::TimeRange> ranges_;  // empty: all
  WaitOptions options_;
  Waits waits_;
  WaitChains chains_;
  bool has_waits_ = false, has_wakers_ = false, has_samples_ = false, is_clock_ = false,
       leaves_wakers_out_ = false;
  std::vector<bool> samples_cpu_;                      // by event
  std::uint64_t begin_ = ~std::uint64_t{0}, end_ = 0;  // of the recording
  std::uint64_t lost_ = 0;                             // waits without an end
  std::deque<Track> tracks_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_tid_;  // of threads that are there: numbers of tracks
  std::unordered_map<std::uint32_t, const Thread*> known_threads_;  // by tid
  std::vector<WallThread> threads_;
  std::vector<WallRow> rows_;
  RowHash hash_;
  IndexTable by_row_;
  std::unordered_map<std::uint32_t, WallState> states_;  // by location; Unknown: it says nothing
  std::unordered_map<const Stack*, WallState> state_of_stack_;
};

}  // namespace tacho::report
