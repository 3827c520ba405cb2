#include "report/perf_text/processes_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace tacho::report {
namespace {

constexpr std::size_t kMostShown = 200;

std::string_view take(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Process {
  std::string_view pid, pids, cgroup, executable;
  std::uint64_t start_ns = 0, mount_namespace = 0;
};

std::optional<Process> parse(std::string_view line) {
  Process process;
  process.pid = take(line, '\t');
  process.pids = take(line, '\t');
  const auto start = number(take(line, '\t'));
  take(line, '\t');  // its pid namespace
  const auto mount = number(take(line, '\t'));
  process.cgroup = take(line, '\t');
  process.executable = take(line, '\t');
  if (!number(process.pid) || !start || !mount) return std::nullopt;
  process.start_ns = *start;
  process.mount_namespace = *mount;
  return process;
}

}  // namespace

void write_processes(TextBuffer& out, std::string_view table, Names names) {
  const auto safe = [&](std::string_view text) { return printable(text, names); };
  std::size_t count = 0, inside = 0;
  take(table, '\n');  // names the fields
  while (!table.empty()) {
    const auto process = parse(take(table, '\n'));
    if (!process) continue;
    ++count;
    if (process->pids.find(',') == std::string_view::npos || ++inside > kMostShown) continue;
    out.text(fmt::format(
        "# process : {} ({} inside), {}, started {}.{:03} s after boot, cgroup {}, mount namespace {}\n",
        safe(process->pid), safe(process->pids.substr(process->pids.find(',') + 1)),
        process->executable.empty() ? "no executable" : safe(process->executable),
        process->start_ns / 1'000'000'000, process->start_ns / 1'000'000 % 1000, safe(process->cgroup),
        process->mount_namespace));
  }
  out.text(fmt::format("# processes : {} ran at the start, {} of them in a pid namespace of their own\n",
                       count, inside));
}

}  // namespace tacho::report
