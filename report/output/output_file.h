// The destination of a view's text: an open descriptor, a file that gets its name when it is complete, or a
// pager. One class, so that all have the same error messages and exit status.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "format/base/file.h"
#include "format/base/result.h"
#include "sandbox/process.h"

namespace tacho::report {

// Blocks the signals that end a process while a temporary file exists, so that the file is not left behind.
class NoStopping {
 public:
  NoStopping() {
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, nullptr, &blocked);
    sigemptyset(&stops_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      if (sigismember(&blocked, signal) == 0) sigaddset(&stops_, signal);
    sigprocmask(SIG_BLOCK, &stops_, nullptr);
  }
  NoStopping(const NoStopping&) = delete;
  NoStopping& operator=(const NoStopping&) = delete;
  // Discards signals that came while they were blocked: the work is done.
  ~NoStopping() {
    if (is_over_) return;
    const timespec at_once{};
    while (sigtimedwait(&stops_, nullptr, &at_once) > 0) {
    }
    sigprocmask(SIG_UNBLOCK, &stops_, nullptr);
  }

  // Unblocks the signals: the file has its name, so the process may end.
  void let_stop() {
    is_over_ = true;
    sigprocmask(SIG_UNBLOCK, &stops_, nullptr);
  }

 private:
  sigset_t stops_{};  // signals blocked by this object
  bool is_over_ = false;
};

class OutputFile {
 public:
  // Writes to a descriptor that the caller closes. `name` is for messages.
  explicit OutputFile(int fd, std::string name = "standard output") : name_(std::move(name)), fd_(fd) {}
  // Writes a temporary file in the same folder, which finish() renames to `path`: readers find the whole text
  // or the old file. An old file that is a capture is kept as FILE.old. A device or FIFO is written directly.
  // `mode`: of a new file, from which the umask takes bits away (mode_of_output()).
  static Result<OutputFile> create(const std::string& path, mode_t mode);
  // Writes to the standard input of a shell command, a pager. The first write starts it, so that an empty
  // text starts none. While it runs, this process ignores Ctrl-C.
  static OutputFile to_command(std::string command);

  using Reader = sandbox::Reader;
  // In a sandboxed child: writes through the parent process.
  explicit OutputFile(sandbox::Output elsewhere) : elsewhere_(std::move(elsewhere)) {}

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  // Without finish(): removes a temporary file; closes a pager's input and waits for it.
  ~OutputFile();

  // A closed pipe (head, a pager that ended) is no error: Reader tells the caller to stop.
  Result<Reader> write(std::string_view text);
  // Completes the output: renames the file or waits for the pager. Errors have Fault::Output.
  Result<> finish();
  // In a sandboxed child: whether the parent has reported by now that the reader of the output is gone. Other
  // outputs learn that from write().
  bool is_reader_gone() const { return elsewhere_ && elsewhere_->is_reader_gone(); }
  // Whether the output is a terminal or a pager.
  bool is_for_person() const;
  // In a sandboxed child: shows a line about progress on the terminal of standard error (sandbox::Output).
  std::function<void(std::string_view)> show_progress() const {
    return elsewhere_ ? elsewhere_->show_progress : nullptr;
  }

 private:
  OutputFile() = default;
  Result<> start_command();
  Result<> end_command();
  Result<> name_file();
  Error failed(std::string_view action, int code) const;

  std::string name_;            // in messages
  format::Fd owned_;            // the file or pipe, when this object opened it
  int fd_ = -1;                 // write() writes to it
  std::string target_, aside_;  // final and temporary name of a file
  bool keeps_old_ = false;      // the old file is a capture
  std::string command_;         // the pager; empty: none
  std::optional<sandbox::Output> elsewhere_;
  pid_t child_ = -1;                                           // the command, while it runs
  void (*interrupt_)(int) = nullptr, (*quit_)(int) = nullptr;  // signal handlers from before the command
};

// The mode of a file made of these captures or texts ("-": standard input): nobody can read it who could not
// read all of them.
mode_t mode_of_output(std::span<const std::string> inputs);

// Wraps an OutputFile for the parent of a sandboxed child.
Result<sandbox::Output> output_of(Result<OutputFile> file);

}  // namespace tacho::report
