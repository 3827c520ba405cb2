// Output files: created under a temporary name with mode 0600, and renamed when they are complete.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::format {

// A file for writing without a name yet, in a folder (`at`: an open one that a relative path counts from, or
// AT_FDCWD): it goes with its last descriptor, so that nothing stays behind whatever ends its writer. An
// error where the file system has none such, or where no name could be given later.
Result<Fd> create_nameless(int at, const std::string& folder, mode_t mode);
// Gives it its first name, which must be unused: the error's code is EEXIST otherwise.
Result<> give_name(const Fd& file, int at, const std::string& name);

// Made under a temporary name with O_EXCL and mode 0600, an existing regular file of that name kept as
// NAME.old, then renamed at once, so that what is written is found under its name even after a kill -9. All
// of it happens in the folder that was looked at first, whatever its path leads to meanwhile.
//
// Root refuses folders in which others may replace files, and does not move files of others.
Result<Fd> create_output(const std::string& path);

// A file that takes its name, and the place of what has it, at once when it is whole: whatever ends the
// writer, what had the name is as it was. Until then it has no name, or, on file systems that want one, a
// temporary one beside it, under which it stays behind when the writer is killed.
class WholeOutput {
 public:
  enum class Old : std::uint8_t { Replaced, Kept };  // Kept: as NAME.old
  // Under the same rules as create_output(). With Replaced it gets the old file's owner and mode where it
  // may.
  static Result<WholeOutput> create(const std::string& path, Old old);
  WholeOutput(WholeOutput&&) noexcept;
  WholeOutput& operator=(WholeOutput&&) = delete;
  ~WholeOutput();  // removes what was not finished

  // The file once more, for a writer; finish() may be called when that has closed it.
  Result<Fd> duplicate() const;
  // Its number, for who closes all others.
  int descriptor() const;
  // Whether it would stay behind, under a name beside the one that it is to have, when the writer is killed.
  bool has_temporary_name() const;
  // Gives it its name: what is written later goes into the file of that name.
  Result<> take_name();
  // The same when all of it is durable.
  Result<> finish();

 private:
  struct State;
  explicit WholeOutput(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Whether create_output() would succeed. Lets a command refuse before it does its work.
Result<> check_output(const std::string& path);

}  // namespace tacho::format
