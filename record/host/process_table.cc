#include "record/host/process_table.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdint>
#include <optional>

#include "format/file.h"

namespace tacho::record {
namespace {

// The table is kept in the head of each capture: so many lines are some 20 MB before they are packed.
constexpr std::size_t kMostProcesses = 100'000;
constexpr std::size_t kStartField = 22;  // in /proc/PID/stat, counted from 1
constexpr std::string_view kHead =
    "pid\tpids\tstart_ns\tpid_namespace\tmount_namespace\tcgroup\texecutable\n";

std::optional<std::string> text_of(const std::string& path) {
  const auto bytes = format::read_file(path);
  if (!bytes) return std::nullopt;
  return std::string(format::as_text(*bytes));
}

std::string_view take_line(std::string_view& text, char end) {
  const std::string_view line = text.substr(0, text.find(end));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// 0: not to be seen.
std::uint64_t number_of_namespace(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::string target_of_link(const std::string& path) {
  std::array<char, PATH_MAX> room{};
  const ssize_t size = readlink(path.c_str(), room.data(), room.size());
  return size > 0 ? std::string(room.data(), static_cast<std::size_t>(size)) : std::string();
}

// Whoever named a file or a cgroup may have put tabs and line ends into it.
std::string in_one_field(std::string_view name) {
  std::string out;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= ' ' && byte != 0x7F && byte != '\\') {
      out += letter;
      continue;
    }
    constexpr std::string_view kDigits = "01234567";
    out += '\\';
    for (const int shift : {6, 3, 0}) out += kDigits[byte >> shift & 7];
  }
  return out;
}

}  // namespace

std::string numbers_in_namespaces(std::string_view status) {
  constexpr std::string_view kField = "\nNSpid:\t";
  const auto at = status.find(kField);
  if (at == std::string_view::npos) return {};
  status.remove_prefix(at + kField.size());
  std::string numbers(take_line(status, '\n'));
  std::ranges::replace(numbers, '\t', ',');
  return numbers.find_first_not_of("0123456789,") == std::string::npos ? numbers : std::string();
}

unsigned long long start_of(std::string_view stat, long ticks_a_second) {
  // The second field is the name in parentheses, which may hold blanks and parentheses itself.
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || ticks_a_second <= 0) return 0;
  stat.remove_prefix(std::min(name_end + 2, stat.size()));
  for (std::size_t field = 3; field < kStartField; ++field) take_line(stat, ' ');
  unsigned long long ticks = 0;
  const auto [end, code] = std::from_chars(stat.data(), stat.data() + stat.size(), ticks);
  const auto tick_ns = 1'000'000'000ULL / static_cast<unsigned long long>(ticks_a_second);
  return code == std::errc{} && ticks < ULLONG_MAX / tick_ns ? ticks * tick_ns : 0;
}

std::string cgroup_path(std::string_view lines) {
  std::string second;
  while (!lines.empty()) {
    // "4:net_cls,perf_event:/docker/4f" of version 1, "0::/system.slice" of version 2
    std::string_view line = take_line(lines, '\n');
    take_line(line, ':');
    std::string_view controllers = take_line(line, ':');
    if (controllers.empty()) second = line;
    while (!controllers.empty()) {
      if (take_line(controllers, ',') == "perf_event") return std::string(line);
    }
  }
  return second;
}

ProcessTable::ProcessTable(std::string proc) : proc_(std::move(proc)), text_(kHead) {}

void ProcessTable::add(int process) {
  if (count_ >= kMostProcesses) return;
  const std::string number = std::to_string(process);
  const std::string folder = proc_ + "/" + number;
  const auto status = text_of(folder + "/status");
  if (!status) return;
  std::string numbers = numbers_in_namespaces(*status);
  if (numbers.empty()) numbers = number;
  const std::string stat = text_of(folder + "/stat").value_or("");
  const std::string cgroups = text_of(folder + "/cgroup").value_or("");
  ++count_;
  text_ += number + '\t' + numbers + '\t' + std::to_string(start_of(stat, sysconf(_SC_CLK_TCK))) + '\t' +
           std::to_string(number_of_namespace(folder + "/ns/pid")) + '\t' +
           std::to_string(number_of_namespace(folder + "/ns/mnt")) + '\t' +
           in_one_field(cgroup_path(cgroups)) + '\t' + in_one_field(target_of_link(folder + "/exe")) + '\n';
}

}  // namespace tacho::record
