// Work on files that a capture names, in a sandboxed child (sandbox/policy.h): a fault of a parser costs the
// file that was read.
//
// The child reads, and its parent gets text or bytes over a pipe and writes them. Before the first byte was
// given out, a child that dies at a file is followed by another one, which leaves that file out. Afterwards
// the output ends there, with exit status 3 and a message that names the file and how to go on without it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"
#include "sandbox/policy.h"
#include "symbolize/files/file_access.h"

namespace tacho::sandbox {

enum class Reader : std::uint8_t { There, Gone };

// The output. In the child its bytes go over the pipe, so is_reader_gone() becomes true some time after a
// write.
struct Output {
  std::function<Result<Reader>(std::string_view)> write;
  std::function<Result<>()> finish;
  std::function<bool()> is_reader_gone;
  bool is_for_person = false;
};

// How long the child may take for files. Time in which it reads no file does not count.
struct FileTimes {
  std::chrono::milliseconds at_one{
      120'000};  // then the child is killed, and the next one leaves the file out
  std::chrono::milliseconds at_all{300'000};  // of all children of a task: then no more are read; 0: any time
};

struct Death {
  std::string path, how;  // "/usr/lib/libfoo.so", "Segmentation fault"
};

// Refuses the files of --skip-file, for reading in this process.
class SkippedFiles : public symbolize::FileAccess {
 public:
  explicit SkippedFiles(const std::vector<std::string>& paths) : paths_(paths) {}
  void set_current(std::string_view) override {}
  std::string refusal(std::string_view path) const override;

 private:
  const std::vector<std::string>& paths_;
};

// The child's environment, passed to the work.
struct Child {
  symbolize::FileAccess& names;   // for files that symbols are read from
  symbolize::FileAccess& stacks;  // for files that stacks are unwound with
  bool is_serial = false;  // one thread only: a child died while files for names and for stacks were read
  const std::vector<Death>& deaths;        // of the children before
  std::function<Output()> open_output;     // once
  std::function<bool()> is_asked_to_stop;  // as Task::is_asked_to_stop says
};

// Shows a line on a terminal; empty: erases it.
using ShowProgress = std::function<void(std::string_view)>;

struct Task {
  std::function<Result<cli::ExitStatus>(Child&)> work;  // in the child
  std::function<Result<Output>()> open_output;          // in the parent, when the child opens it
  std::function<bool()> is_asked_to_stop = {};          // in the parent, ten times a second; may be empty
  ShowProgress show_progress = {};                      // which file is read, when that takes seconds
  Policy policy = Policy::Trials;
  std::string input;                   // in messages
  std::vector<std::string> skipped{};  // files that are left out
  std::string skip_option{};           // that leaves one out, in messages; empty: there is none
  bool can_restart = true;             // false: the input is a pipe, and what was read of it is gone
  // Discards the output of the previous child before a restart (with Policy::WriteOutput, its file's
  // contents). Empty: the output stays.
  std::function<Result<>()> restart = {};
  bool is_whole_or_nothing = false;  // an incomplete output is discarded
  // The output is an interactive screen: `restart` has nothing to discard. The child's stderr is shown after
  // the screen was closed, at the end of the output or of the child. A child that dies while it reads no file
  // is an error at once.
  bool is_screen = false;
  FileTimes times{};
  std::vector<int> kept{};  // descriptors that the work needs besides standard input, which is the input "-"
};

// Runs a task that writes an output: a view or a new capture. If files were left out, stderr names them and
// the status is kIncomplete. Errors: that of the work; no child could be made or confined (`is_confined` is
// false then); children died too often. It forks: no other thread may hold a lock meanwhile.
Result<cli::ExitStatus> run_view(const Task& task, bool& is_confined);
// The same. Where the kernel has no seccomp, runs `here` in this process after a warning; as root it refuses
// instead, because untrusted files must not be parsed with root's rights.
Result<cli::ExitStatus> run_view_or(const Task& task, const std::function<Result<cli::ExitStatus>()>& here);

struct JobDone {
  std::vector<std::byte> bytes;  // not to be trusted
  std::vector<Death> deaths;     // whose files were left out
  bool is_out_of_time = false;   // files were not read, as the others took FileTimes::at_all
};
struct JobLimits {
  std::size_t most_bytes = 0;
  FileTimes times{};
  std::vector<int> kept{};
  ShowProgress show_progress = {};
};
// Runs work whose result are bytes for the parent.
using Job = std::function<std::vector<std::byte>(Child&)>;
Result<JobDone> run_job(const Job& job, Policy policy, const JobLimits& limits);

// The message about a task that ran out of time for files of `input`.
std::string out_of_time(const std::string& input, const FileTimes& times);

}  // namespace tacho::sandbox
