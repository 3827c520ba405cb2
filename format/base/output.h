// Output files: created under a temporary name with mode 0600, and renamed when they are complete.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::format {

// For root: an error (EACCES) if other users could choose where the output at `path` is written, or replace
// it: each folder and link on the way counts.
Result<> check_output_way(const std::string& path);

// Creates a file without a name (O_TMPFILE) in a folder (`at`: the folder for relative paths, or AT_FDCWD),
// so that nothing is left if the writer is killed. An error if the file system does not support it.
Result<Fd> create_nameless(int at, const std::string& folder, mode_t mode);
// Gives it a name, which must be unused (error code EEXIST).
Result<> give_name(const Fd& file, int at, const std::string& name);

// An output file that replaces the old file atomically when it is complete; until then the old file is
// unchanged. Before, it has no name, or, on file systems without O_TMPFILE, a temporary name, under which it
// stays if the writer is killed. All in the folder that was opened first, even if its path changes.
class WholeOutput {
 public:
  enum class Old : std::uint8_t { Replaced, Kept };  // Kept: as NAME.old
  // Mode 0600; with Old::Replaced the old file's owner and mode, if permitted. check_output_way() applies,
  // and root does not rename files of other users.
  static Result<WholeOutput> create(const std::string& path, Old old);
  WholeOutput(WholeOutput&&) noexcept;
  WholeOutput& operator=(WholeOutput&&) = delete;
  ~WholeOutput();  // removes an unfinished file

  // A duplicated descriptor for the writer; call finish() after the writer has closed it.
  Result<Fd> duplicate() const;
  // The descriptor's number, for a process that closes all others.
  int descriptor() const;
  // Whether it has a temporary name now.
  bool has_temporary_name() const;
  // Gives it its final name before it is complete, so that it is there even after a kill -9.
  Result<> take_name();
  // Makes it durable and gives it its final name.
  Result<> finish();

 private:
  struct State;
  explicit WholeOutput(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Checks that an output with Old::Kept could be created, before a command does its work.
Result<> check_output(const std::string& path);

}  // namespace tacho::format
