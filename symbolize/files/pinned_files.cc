#include "symbolize/files/pinned_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include "format/base/parse_text.h"

namespace tacho::symbolize {
namespace {

constexpr std::size_t kLargestListing = std::size_t{1} << 22;  // bytes
constexpr std::string_view kNoId = "-";

bool is_file(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Result<PinnedFiles> PinnedFiles::read(int listing) {
  if (!is_file(listing)) return Error{"it is not a list of files"};
  const auto bytes = format::read_at(listing, 0, kLargestListing);
  if (!bytes) return bytes.error();
  PinnedFiles pinned;
  for (std::string_view rest = format::as_text(*bytes); !rest.empty();) {
    const bool is_terminated = rest.find('\0') != std::string_view::npos;
    std::string_view name = format::take_until(rest, '\0');
    std::array<std::string_view, 4> words;
    for (std::string_view& word : words) word = format::take_until(name, ' ');
    const bool is_perf_map = words[1] == "m";
    const auto file = format::whole_number<int>(words[0]);
    const auto process = format::whole_number<std::uint32_t>(words[2]);
    const auto id =
        words[3] == kNoId ? std::optional(format::BuildId{}) : format::BuildId::from_hex(words[3]);
    const bool is_known = is_terminated && (is_perf_map || words[1] == "b") && file && process && id;
    // Without a look at the file: its file system may not answer.
    if (!is_known || ::fcntl(*file, F_GETFD) < 0) return Error{"it is not a list of files"};
    pinned.rows_.push_back({*file, is_perf_map, *process, *id, std::string(name)});
  }
  return pinned;
}

std::vector<int> PinnedFiles::descriptors() const {
  std::vector<int> all;
  for (const Row& row : rows_) all.push_back(row.file);
  return all;
}

void PinnedFiles::add_file(format::Fd file, const format::BuildId& id) {
  rows_.push_back({.file = file.get(), .build_id = id});
  own_.push_back(std::move(file));
}

template <class IsWanted>
Result<format::Fd> PinnedFiles::duplicate(IsWanted&& is_wanted) const {
  const auto found = std::ranges::find_if(rows_, is_wanted);
  if (found == rows_.end()) return Error{"it was not pinned", ENOENT};
  format::Fd file(::fcntl(found->file, F_DUPFD_CLOEXEC, 0));
  return file ? std::move(file) : Result<format::Fd>(system_error("a pinned file", errno));
}

Result<format::Fd> PinnedFiles::binary(std::string_view name, const format::BuildId& id) const {
  const auto is_wanted = [&](const Row& row) {
    return !row.is_perf_map && (id.empty() ? row.name == name : row.build_id == id);
  };
  if (id.empty() && std::ranges::count_if(rows_, is_wanted) > 1)
    return Error{"several files had this name", ENOTUNIQ};
  return duplicate(is_wanted);
}

Result<format::Fd> PinnedFiles::perf_map(std::uint32_t process) const {
  const auto is_wanted = [&](const Row& row) { return row.is_perf_map && row.process == process; };
  if (std::ranges::count_if(rows_, is_wanted) > 1) return Error{"several processes had this pid", ENOTUNIQ};
  return duplicate(is_wanted);
}

}  // namespace tacho::symbolize
