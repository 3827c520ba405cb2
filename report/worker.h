// Work on files of others, done in a process of its own that may only read: what one of these files does to
// it costs that file, and neither this process nor what the others tell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "report/confinement.h"
#include "report/output/progress.h"
#include "report/stopped_together.h"
#include "symbolize/files/file_gate.h"

namespace tacho::report {

// What the worker works on, told to the process that waits for it, in memory that both have.
class WorkPlace {
 public:
  WorkPlace();  // without memory: nothing is told, and no death is blamed on a file
  WorkPlace(const WorkPlace&) = delete;
  WorkPlace& operator=(const WorkPlace&) = delete;
  ~WorkPlace();

  // Of a worker that is not there yet.
  void begin();
  // From here on it is this file; longer paths are cut. Empty: none.
  void at(std::string_view path);
  // What at() was told last. For the process that waits: while the worker lives, it may be half another one.
  std::string path() const;
  // How often at() was called, and whether with a file the last time; at any time.
  std::uint64_t turn() const;
  bool is_at_file() const;

  // By the process that waits: no further file is to be read. It holds for the workers to come as well, which
  // read what was read before, as long as they do the same in the same order.
  void close();
  // In the worker, which asks before it reads a file.
  bool is_closed();
  // Whether a file was not read because of that.
  bool has_refused() const;

  // In the worker: it gave all that it has. Its exit status is lost where closing a file keeps it.
  void finish();
  bool is_finished() const;

 private:
  struct Shared;
  Shared* shared_ = nullptr;
};

struct WorkDone {
  std::vector<std::byte> bytes;
  bool is_out_of_time = false;  // files were not read, as the others took too long together
  // Files that a worker died of, and how: "/usr/lib/libfoo.so", "Segmentation fault".
  struct Death {
    std::string path, how;
  };
  std::vector<Death> deaths;
};

// In the worker: what reads files tells this where it is, and leaves out what others died of.
class WorkGate final : public symbolize::FileGate {
 public:
  // Both must outlive it.
  WorkGate(WorkPlace& place, const std::vector<WorkDone::Death>& deaths) : place_(place), deaths_(deaths) {}
  void at(std::string_view path) override { place_.at(path); }
  std::string lack(std::string_view path) const override;

 private:
  WorkPlace& place_;
  const std::vector<WorkDone::Death>& deaths_;
};

constexpr std::string_view kOutOfTime =
    "no more files are read, as the others took longer than --max-file-time allows";

// How long files may keep a worker. Time in which nothing is read of them does not count.
struct FileTimes {
  std::chrono::milliseconds at_one{120'000};  // that one is left out then
  std::chrono::milliseconds at_all{300'000};  // of all workers of a task: no more are read then; 0: any time
};

// Looks how long that is. A person at a terminal sees which file it is, where that takes seconds.
class FileWatch {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{100};
  // `places`: of the threads that read files; they must outlive it.
  FileWatch(const FileTimes& times, std::span<WorkPlace> places);

  // Of a worker that is not there yet.
  void begin();
  // To be called every so often. The place at whose file the worker is for too long; null: none. What is more
  // than twice the time between two looks is not counted: then both processes were stopped.
  WorkPlace* look();
  // From here on somebody reads other text on the terminal.
  void be_quiet() { progress_.stop(); }
  const FileTimes& times() const { return times_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct AtFile {
    std::uint64_t turn = 0;
    Clock::duration since{};
  };
  void show(const WorkPlace& place);

  FileTimes times_;
  std::span<WorkPlace> places_;
  std::vector<AtFile> at_;  // of each place
  Clock::duration at_all_{};
  Clock::time_point last_;
  Progress progress_;
};

// Standard error of a worker by way of its parent, where it is no terminal: whoever waits for the end of that
// pipe would wait for a worker as well that nothing ends.
class WorkerErrors {
 public:
  static WorkerErrors make();  // without a pipe the worker writes by itself
  // Behind the fork.
  void be_worker();
  void be_parent() { to_ = format::Fd(); }
  // In the parent: writes what there is by now.
  void pass_on() const;

 private:
  format::Fd from_, to_;
};

// In a child that was just forked, before it looks at anything of others: it ends with `parent`, is the first
// to go where memory runs out, has a group of its own, out of which nobody gets that it starts, and is
// confined, with the descriptors `kept`. An error: it must end.
Result<> become_worker(Reach reach, pid_t parent, std::span<const int> kept);
// For its parent: ends it and what it started.
void kill_group(pid_t worker);
// Ends it, what it started and `stops`, and waits for that, for some seconds. Its status, as waitpid() gives
// it; nothing: it stays, as the kernel waits for a file system that does not answer (state D). It may hold
// that file for ever, and nothing of this process.
std::optional<int> end_worker(pid_t worker, StoppedTogether& stops);
// How a child ended that should have gone on, in words: "Segmentation fault". `status` as waitpid() gives it.
std::string how_it_died(int status);
// The same of one that end_worker() ended.
std::string how_it_ended(std::optional<int> status, bool took_too_long, const FileTimes& times);
constexpr int kNoMemory = 124;  // exit status of a worker that found none

// The line of a task that read no further files of `input` when these times were over.
std::string out_of_time(const std::string& input, const FileTimes& times);

// Runs in the worker and gives bytes for the process that waits; whoever reads them must not trust them.
// `deaths`: of earlier workers; their files are to be left out.
using Work = std::function<std::vector<std::byte>(WorkPlace&, const std::vector<WorkDone::Death>& deaths)>;

struct WorkLimits {
  std::size_t most_bytes = 0;  // that are taken from the worker
  FileTimes times{};
  std::vector<int> kept{};  // descriptors that the work needs
};

// Runs `work` in a child that is confined as `reach` says, again when that dies of a file, stays at one for
// too long, or finds no memory there. An error when it dies while at no file, of too many (8) or of the same
// one again, or when no child can be made or confined. No other thread may run meanwhile that holds a lock
// (it is a fork).
Result<WorkDone> work_apart(const Work& work, Reach reach, const WorkLimits& limits);

}  // namespace tacho::report
