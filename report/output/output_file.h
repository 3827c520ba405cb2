// Where text goes: an open descriptor, a file that gets its name when it is whole, or a program that reads it
// (a pager). One class, so that all of them fail in the same words and with the same exit status.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "format/base/file.h"
#include "format/base/result.h"
#include "sandbox/process.h"

namespace tacho::report {

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

}  // namespace tacho::report
