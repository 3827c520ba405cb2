// Runs work on untrusted files in a sandboxed child (sandbox/policy.h), so that a crash of a parser only
// loses the file that was read.
//
// The child reads files and sends text or bytes over a pipe to its parent, which writes them. If the child
// dies while it reads a file, before the first byte of output was written, another child is started that
// ignores this file. Later the output ends, with exit status 3 and a message that names the file and the
// option to ignore it.
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

// The output. In the child its bytes go over the pipe, so is_reader_gone() becomes true a while after a
// write.
struct Output {
  std::function<Result<Reader>(std::string_view)> write;
  std::function<Result<>()> finish;
  std::function<bool()> is_reader_gone;
  bool is_for_person = false;  // it goes to a terminal or a pager
  // In the child: shows a line on the terminal of standard error until the next one; empty: erases it. Null:
  // standard error is no terminal.
  std::function<void(std::string_view)> show_progress = {};
};

// Time limits for reading files; other time is not counted.
struct FileTimes {
  // For one file: then the child is killed, and the next one ignores the file.
  std::chrono::milliseconds at_one{120'000};
  // For all files of a task: then no more are read. 0: no limit.
  std::chrono::milliseconds at_all{300'000};
};

struct Death {
  std::string path, how;  // of the file that the child read, "/usr/lib/libfoo.so"; "Segmentation fault"
};

// Refuses the files of --skip-file. `access`: asked about all others, as of a child; null: none refuses more.
class SkippedFiles : public symbolize::FileAccess {
 public:
  explicit SkippedFiles(const std::vector<std::string>& paths, symbolize::FileAccess* access = nullptr)
      : paths_(paths), access_(access) {}
  void set_current(std::string_view path) override {
    if (access_ != nullptr) access_->set_current(path);
  }
  std::string refusal(std::string_view path) const override;

 private:
  const std::vector<std::string>& paths_;
  symbolize::FileAccess* access_;
};

// The child's environment, passed to the work.
struct Child {
  symbolize::FileAccess& names;            // for files that symbols are read from
  symbolize::FileAccess& stacks;           // for files that stacks are unwound with
  bool is_serial = false;                  // use one thread only: a child died while two files were read
  const std::vector<Death>& deaths;        // of earlier children
  std::function<Output()> open_output;     // call it once
  std::function<bool()> is_asked_to_stop;  // the last result of Task::is_asked_to_stop
};

// Shows a line on a terminal; empty: erases it.
using ShowProgress = std::function<void(std::string_view)>;

struct Task {
  std::function<Result<cli::ExitStatus>(Child&)> work;  // in the child
  std::function<Result<Output>()> open_output;          // called in the parent, when the child opens it
  std::function<bool()> is_asked_to_stop = {};  // called in the parent ten times a second; may be empty
  // Shows the file that is read, if it takes seconds, or else the child's own line (Output::show_progress).
  ShowProgress show_progress = {};
  Policy policy = Policy::Trials;
  KernelSymbols kernel_symbols = KernelSymbols::Hidden;
  std::string input;                   // its name, for messages
  std::vector<std::string> skipped{};  // files to ignore
  std::string skip_option{};           // the option to ignore a file, for messages; empty: there is none
  bool can_restart = true;             // false: the input is a pipe, which cannot be read again
  // Discards the output of the previous child before a restart (with Policy::WriteOutput, the contents of its
  // file). Empty: the output is kept.
  std::function<Result<>()> restart = {};
  bool is_whole_or_nothing = false;  // an incomplete output is discarded
  // The output is an interactive screen: `restart` has nothing to discard. The child's stderr is shown after
  // the screen was closed, at the end of the output or of the child (else as it comes). A child that dies
  // while it reads no file is an error at once.
  bool is_screen = false;
  FileTimes times{};
  std::vector<int> kept{};  // descriptors that the work needs, besides standard input (for the input "-")
};

// Runs a task that writes an output: a view or a new capture. If files were ignored, stderr names them and
// the status is kIncomplete. Errors: of the work; no child could be created or confined (then `is_confined`
// is false); children died too often. It forks, so no other thread may hold a lock.
Result<cli::ExitStatus> run_view(const Task& task, bool& is_confined);
// The same. Without seccomp in the kernel, it runs `here` in this process after a warning; but for root it is
// an error, since untrusted files must not be parsed with root's rights.
Result<cli::ExitStatus> run_view_or(const Task& task, const std::function<Result<cli::ExitStatus>()>& here);

struct JobDone {
  std::vector<std::byte> bytes;  // untrusted
  std::vector<Death> deaths;     // with the ignored files
  bool is_out_of_time = false;   // FileTimes::at_all was exceeded, and some files were not read
};
struct JobLimits {
  std::size_t most_bytes = 0;
  FileTimes times{};
  std::vector<int> kept{};
  ShowProgress show_progress = {};
  KernelSymbols kernel_symbols = KernelSymbols::Hidden;
};
// Runs work that returns bytes to the parent.
using Job = std::function<std::vector<std::byte>(Child&)>;
Result<JobDone> run_job(const Job& job, Policy policy, const JobLimits& limits);

// The message about FileTimes::at_all.
std::string out_of_time(const std::string& input, const FileTimes& times);

}  // namespace tacho::sandbox
