// Work on files of others, done in a process of its own that may only read: what one of these files does to
// it costs that file, and neither this process nor what the others tell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"
#include "report/confinement.h"
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
  // What at() was told last. For the process that waits, once the worker is dead.
  std::string path() const;
  // How often at() was called, and whether with a file the last time; at any time.
  std::uint64_t turn() const;
  bool is_at_file() const;

 private:
  struct Shared;
  Shared* shared_ = nullptr;
};

struct WorkDone {
  std::vector<std::byte> bytes;
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

// Whether a worker is at the same file for too long: asked at equal times, so that a worker and its parent
// that were stopped together do not count as busy.
class Patience {
 public:
  // `most` over `between` looks are granted.
  Patience(std::chrono::milliseconds most, std::chrono::milliseconds between)
      : looks_(static_cast<std::uint64_t>(most / between)) {}
  bool is_over(const WorkPlace& place);

 private:
  std::uint64_t looks_, turn_ = 0, seen_ = 0;
};

// In a child that was just forked, before it looks at anything of others: it ends with `parent`, is the first
// to go where memory runs out, has a group of its own, out of which nobody gets that it starts, and is
// confined. An error: it must end.
Result<> become_worker(Reach reach, pid_t parent);
// For its parent: ends it and what it started.
void kill_group(pid_t worker);
// Waits for its end, and ends what it started, and `stops`. Its status, as waitpid() gives it.
Result<int> wait_for_worker(pid_t worker, StoppedTogether& stops);
// How a child ended that should have gone on, in words: "Segmentation fault". `status` as waitpid() gives it.
std::string how_it_died(int status);
constexpr int kNoMemory = 124;  // exit status of a worker that found none

// Runs in the worker and gives bytes for the process that waits; whoever reads them must not trust them.
// `deaths`: of earlier workers; their files are to be left out.
using Work = std::function<std::vector<std::byte>(WorkPlace&, const std::vector<WorkDone::Death>& deaths)>;

struct WorkLimits {
  std::size_t most_bytes = 0;  // that are taken from the worker
  std::chrono::seconds at_one_file{120};
};

// Runs `work` in a child that is confined as `reach` says, again when that dies of a file, stays at one for
// too long, or finds no memory there. An error when it dies while at no file, of too many (8) or of the same
// one again, or when no child can be made or confined. No other thread may run meanwhile that holds a lock
// (it is a fork).
Result<WorkDone> work_apart(const Work& work, Reach reach, const WorkLimits& limits);

}  // namespace tacho::report
