#include "symbolize/files/held_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

namespace tacho::symbolize {
namespace {

constexpr std::size_t kMostListingBytes = std::size_t{1} << 22;  // of the listing
constexpr std::string_view kNoId = "-";

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc{} && end == text.data() + text.size();
}

bool is_file(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Result<HeldFiles> HeldFiles::read(int listing) {
  if (!is_file(listing)) return Error{"it is no list of files"};
  const auto bytes = format::read_at(listing, 0, kMostListingBytes);
  if (!bytes) return bytes.error();
  std::string_view rest = format::as_text(*bytes);
  HeldFiles held;
  while (!rest.empty()) {
    const auto end = rest.find('\0');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    std::array<std::string_view, 4> words;
    for (std::string_view& word : words) {
      word = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(line.size(), word.size() + 1));
    }
    Row row;
    row.is_perf_map = words[1] == "m";
    row.name = line;
    const auto id =
        words[3] == kNoId ? std::optional(format::BuildId{}) : format::BuildId::from_hex(words[3]);
    const bool is_known = end != std::string_view::npos && read_number(words[0], row.file) &&
                          (row.is_perf_map || words[1] == "b") && read_number(words[2], row.process) && id;
    if (!is_known || !is_file(row.file)) return Error{"it is no list of files"};
    row.build_id = *id;
    held.rows_.push_back(std::move(row));
  }
  return held;
}

std::vector<int> HeldFiles::descriptors() const {
  std::vector<int> all;
  for (const Row& row : rows_) all.push_back(row.file);
  return all;
}

void HeldFiles::add(format::Fd file, const format::BuildId& id) {
  rows_.push_back({.file = file.get(), .build_id = id});
  own_.push_back(std::move(file));
}

template <class Is>
Result<format::Fd> HeldFiles::only(Is&& is) const {
  const auto found = std::ranges::find_if(rows_, is);
  if (found == rows_.end()) return Error{"it was not held open", ENOENT};
  format::Fd file(::fcntl(found->file, F_DUPFD_CLOEXEC, 0));
  return file ? std::move(file) : Result<format::Fd>(system_error("a file that was held open", errno));
}

Result<format::Fd> HeldFiles::binary(std::string_view name, const format::BuildId& id) const {
  const auto is = [&](const Row& row) {
    return !row.is_perf_map && (id.empty() ? row.name == name : row.build_id == id);
  };
  if (id.empty() && std::ranges::count_if(rows_, is) > 1)
    return Error{"several files had this name", ENOTUNIQ};
  return only(is);
}

Result<format::Fd> HeldFiles::perf_map(std::uint32_t process) const {
  const auto is = [&](const Row& row) { return row.is_perf_map && row.process == process; };
  if (std::ranges::count_if(rows_, is) > 1) return Error{"several processes had this number", ENOTUNIQ};
  return only(is);
}

}  // namespace tacho::symbolize
