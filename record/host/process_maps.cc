#include "record/host/process_maps.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "record/events/target.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// Removes a hexadecimal number and the letter `end` after it; false: `rest` starts otherwise.
template <class Number>
bool take_hex(std::string_view& rest, Number& value, char end) {
  const auto number = take_number<Number>(rest, 16);
  value = number.value_or(Number{});
  return number && take_prefix(rest, {&end, 1});
}

}  // namespace

bool answers_now(ForeignReader* reader, const std::string& folder) {
  return reader == nullptr || reader->answers(folder + "/stat");
}

std::string with_newlines(std::string_view path) {
  constexpr std::string_view kNewline = "\\012";
  std::string out;
  for (auto at = path.find(kNewline); at != std::string_view::npos; at = path.find(kNewline)) {
    out.append(path.substr(0, at)).push_back('\n');
    path.remove_prefix(at + kNewline.size());
  }
  return out.append(path);
}

std::string folder_of_process(std::uint32_t process, const std::string& proc) {
  const std::string folder = fmt::format("{}/{}", proc, process);
  std::array<char, 1> room{};
  const auto has_memory = [&room](const std::string& of) {
    return ::readlink((of + "/exe").c_str(), room.data(), room.size()) >= 0 || errno != ENOENT;
  };
  if (has_memory(folder)) return folder;
  for (const int thread : numbers_in(folder + "/task")) {
    std::string other = fmt::format("{}/{}", proc, thread);
    if (thread != static_cast<int>(process) && has_memory(other)) return other;
  }
  return folder;
}

std::optional<MapsLine> parse_maps_line(std::string_view line) {
  MapsLine out;
  format::MmapRecord& mapping = out.mapping;
  std::uint64_t end = 0;
  std::string_view rest = line;
  if (!take_hex(rest, mapping.start, '-') || !take_hex(rest, end, ' ') || end < mapping.start)
    return std::nullopt;
  if (rest.size() < 5 || rest[4] != ' ') return std::nullopt;
  const std::string_view rights = rest.substr(0, 4);
  rest.remove_prefix(5);
  if (!take_hex(rest, mapping.page_offset, ' ') || !take_hex(rest, mapping.major, ':') ||
      !take_hex(rest, mapping.minor, ' '))
    return std::nullopt;
  const auto inode = take_number<std::uint64_t>(rest);
  if (!inode) return std::nullopt;
  mapping.inode = *inode;
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));

  mapping.is_mmap2 = true;
  mapping.length = end - mapping.start;
  out.is_executable = rights[2] == 'x';
  mapping.protection = (rights[0] == 'r' ? PROT_READ : 0U) | (rights[1] == 'w' ? PROT_WRITE : 0U) |
                       (out.is_executable ? PROT_EXEC : 0U);
  mapping.flags = rights[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
  mapping.filename = rest.empty() ? std::string_view("//anon") : rest;  // the kernel's name for no file
  return out;
}

std::optional<MapsLine> MapsReader::next_line() {
  while (!rest_.empty())
    if (auto line = parse_maps_line(take_until(rest_, '\n'))) return line;
  return std::nullopt;
}

void each_code_mapping(std::uint32_t process, ForeignReader& foreign,
                       const std::function<bool(const format::MmapRecord&)>& use) {
  if (!answers_now(&foreign, fmt::format("/proc/{}", process))) return;
  const std::string text = foreign.text_of(folder_of_process(process) + "/maps");
  MapsReader reader(text);
  while (auto parsed = reader.next_line()) {
    parsed->mapping.pid = process;
    const std::string filename = with_newlines(parsed->mapping.filename);
    parsed->mapping.filename = filename;
    if (parsed->is_executable && !use(parsed->mapping)) return;
  }
}

}  // namespace tacho::record
