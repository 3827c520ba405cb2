// Where text goes: an open descriptor, a file that gets its name when it is whole, or a program that reads it
// (a pager). One class, so that all of them fail in the same words and with the same exit status.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "format/base/diagnostics.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "sandbox/process.h"
#include "format/container/capture_reader.h"

namespace tacho::report {

// Work that signals do not end half-way, as there is a file without its name meanwhile, which must not stay
// behind.

class NoStopping {
 public:
  NoStopping() {
    sigemptyset(&stops_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&stops_, signal);
    sigset_t before;
    sigprocmask(SIG_BLOCK, &stops_, &before);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      if (sigismember(&before, signal) == 1) sigdelset(&stops_, signal);
  }
  NoStopping(const NoStopping&) = delete;
  NoStopping& operator=(const NoStopping&) = delete;
  // What came meanwhile came too late: the work is done.
  ~NoStopping() {
    if (is_over_) return;
    const timespec at_once{};
    while (sigtimedwait(&stops_, nullptr, &at_once) > 0) {
    }
    sigprocmask(SIG_UNBLOCK, &stops_, nullptr);
  }

  // The file has its name, and the work goes on: what came meanwhile ends it.
  void let_stop() {
    is_over_ = true;
    sigprocmask(SIG_UNBLOCK, &stops_, nullptr);
  }

 private:
  sigset_t stops_{};  // that are blocked by this
  bool is_over_ = false;
};

class OutputFile {
 public:
  // A descriptor that is somebody else's to close. `name` stands in messages.
  explicit OutputFile(int fd, std::string name = "standard output");
  // FILE, written under another name in the same folder and renamed by finish(): readers find the
  // whole text or what was there before. A capture that has the name is kept as FILE.old. What is no regular
  // file (a device, a FIFO) is written in place.
  static Result<OutputFile> create(const std::string& path);
  // A program that reads the text on its standard input, as a line for the shell. It is started by the first
  // write, so that no text starts no program; while it runs, Ctrl-C is its own affair.
  static OutputFile to_command(std::string command);

  using Reader = sandbox::Reader;
  // An output elsewhere, as in the parent of a sandboxed process.
  explicit OutputFile(sandbox::Output elsewhere);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  // Without finish(): a file that was begun is removed, a program sees the end of its input and is waited
  // for.
  ~OutputFile();

  // A reader that went away (head, a pager that was left) is no error: nothing more need be written then.
  Result<Reader> write(std::string_view text);
  // Makes the output whole: names the file, waits for the program. Errors have Fault::Output.
  Result<> finish();
  // Whether the other process's output knows by now that its reader went away: text may be on its way to it
  // when a write returns. Outputs of this process know it at each write.
  bool is_reader_gone() const { return elsewhere_ && elsewhere_->is_reader_gone(); }
  // Whether a person reads this while it is written: a terminal, or a program in front of one.
  bool is_for_person() const;

 private:
  OutputFile() = default;
  Result<> start_command();
  Result<> end_command();
  Result<> name_file();
  Error failed(std::string_view action, int code) const;

  std::string name_;            // in messages
  format::Fd owned_;            // of a file or pipe
  int fd_ = -1;                 // what is written to
  std::string target_, aside_;  // a file's name to be, and its name until then
  bool keeps_old_ = false;      // what has the name is a capture
  std::string command_;         // empty: none
  std::optional<sandbox::Output> elsewhere_;
  pid_t child_ = -1;                                           // the command, while it runs
  void (*interrupt_)(int) = nullptr, (*quit_)(int) = nullptr;  // signal handlers from before the command
};

// The same as the parent of a sandboxed process wants it.
Result<sandbox::Output> output_of(Result<OutputFile> file);

// Whether a capture is whole, and stays what it was: asked before something that was made of it takes its
// place.

// An error that says what to do when its recorder still runs or was killed, when it is a folder of several
// files, or damaged as far as `diagnostics` of its reading tell. `what` is not done then: "rewritten".
Result<> check_whole(const format::CaptureReader& reader, const format::Diagnostics& diagnostics,
                     const std::string& input, const std::string& what);
Result<> check_no_folder(const std::string& input, const std::string& what);

// The file that has a name, as it is at one moment.
class FileState {
 public:
  static Result<FileState> of(const std::string& path);
  // An error when `path` names another file now, or this one has changed.
  Result<> check_same(const std::string& path) const;

 private:
  struct stat state_ {};
};

}  // namespace tacho::report
