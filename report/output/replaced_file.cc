#include "report/output/replaced_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cli/message_text.h"

namespace tacho::report {
namespace {

std::string remedy(const std::string& input) {
  return "; 'tacho convert -i " + cli::shell_word(input) + " -o FILE' makes ";
}

}  // namespace

Result<> check_whole(const format::CaptureReader& reader, const format::Diagnostics& diagnostics,
                     const std::string& input, const std::string& what) {
  const format::CaptureLayout& layout = reader.layout();
  const std::string can_be = remedy(input) + "one that can be";
  if (!layout.is_closed)
    return Error{input + ": its recorder still runs or was killed, so it is not " + what + can_be};
  if (reader.features().environment.directory_format.value_or(0) != 0)
    return Error{input + ": is a folder of several files, which is not " + what + can_be};
  if (diagnostics.incomplete() || layout.data_size > layout.file_size ||
      layout.data_offset > layout.file_size - layout.data_size)
    return Error{input + ": is damaged, and is not " + what + can_be};
  return Done{};
}

Result<> check_no_folder(const std::string& input, const std::string& what) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(input, ignored)) return Done{};
  return Error{input + ": is a folder, which is not " + what + remedy(input) + "one file of it"};
}

Result<FileState> FileState::of(const std::string& path) {
  FileState state;
  if (::stat(path.c_str(), &state.state_) != 0) return system_error(path, errno);
  return state;
}

Result<> FileState::check_same(const std::string& path) const {
  const auto now = of(path);
  const auto is_same = [](const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
           a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
  };
  if (now && is_same(state_, now->state_)) return Done{};
  return Error{path + ": changed while it was read, so nothing was written"};
}

}  // namespace tacho::report
