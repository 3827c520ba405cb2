#include "record/events/target.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "format/file.h"

namespace tacho::record {
namespace {

constexpr int kMostCpus = 1 << 16;

// A decimal number at the start of `text`, which is shortened by it.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The process that a thread belongs to ("Tgid:\t12" in /proc/TID/status, which is there for every thread);
// nothing when there is no such thread.
std::optional<int> process_of(int thread, const std::string& proc) {
  const auto status = format::read_file(proc + "/" + std::to_string(thread) + "/status");
  if (!status) return std::nullopt;
  constexpr std::string_view kField = "\nTgid:\t";
  std::string_view text = format::as_text(*status);
  const auto at = text.find(kField);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kField.size());
  return take_number(text);
}

std::vector<int> threads_of_process(int process, const std::string& proc) {
  namespace fs = std::filesystem;
  std::vector<int> threads;
  std::error_code code;
  for (fs::directory_iterator entry(proc + "/" + std::to_string(process) + "/task", code), end;
       !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename();
    std::string_view digits = name;
    if (const auto thread = take_number(digits)) threads.push_back(*thread);
  }
  std::ranges::sort(threads);
  return threads;
}

bool take(std::string_view& text, char letter) {
  if (!text.starts_with(letter)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  const auto wrong = [whole = std::string(text)] {
    return use_error("'" + whole + "' is not a list of CPUs such as 0-3,6");
  };
  std::vector<int> cpus;
  do {
    const auto first = take_number(text);
    if (!first) return wrong();
    const auto last = take(text, '-') ? take_number(text) : first;
    if (!last || *last < *first || *last >= kMostCpus) return wrong();
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  } while (take(text, ','));
  if (!text.empty()) return wrong();
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

Result<std::vector<int>> parse_id_list(std::string_view text) {
  const auto wrong = [whole = std::string(text)] {
    return use_error("'" + whole + "' is not a list of process numbers such as 12,345");
  };
  std::vector<int> ids;
  do {
    const auto id = take_number(text);
    if (!id || *id == 0) return wrong();
    if (std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  } while (take(text, ','));
  if (!text.empty()) return wrong();
  return ids;
}

Result<Target> choose_target(const TargetOptions& options, bool has_command) {
  const bool by_cpu = options.all_cpus || !options.cpus.empty();
  const bool by_process = !options.processes.empty(), by_thread = !options.threads.empty();
  if (by_process && by_thread) return use_error("-p and -t exclude each other");
  if (by_cpu && (by_process || by_thread)) {
    return use_error(std::string(options.all_cpus ? "-a" : "-C") + " and " + (by_process ? "-p" : "-t") +
                     " exclude each other");
  }
  if (by_process) return Target{Watch::Processes, {}, options.processes};
  if (by_thread) return Target{Watch::Threads, {}, options.threads};
  if (by_cpu || !has_command) return Target{Watch::System, options.cpus, {}};
  return Target{Watch::Command, {}, {}};
}

Result<TargetTasks> tasks_of(const Target& target, const std::string& proc) {
  TargetTasks tasks;
  std::set<int> seen;  // processes
  for (const int id : target.ids) {
    const auto process = process_of(id, proc);
    const bool is_new = process && seen.insert(*process).second;
    std::vector<int> threads;
    if (process && target.watch == Watch::Threads) threads = {id};
    if (is_new && target.watch == Watch::Processes) threads = threads_of_process(*process, proc);
    if (!process || (is_new && threads.empty())) {
      tasks.gone.push_back(id);
      continue;
    }
    if (is_new) tasks.processes.push_back(*process);
    tasks.threads.insert(tasks.threads.end(), threads.begin(), threads.end());
  }
  if (!target.ids.empty() && tasks.threads.empty())
    return use_error("there is no process or thread " + std::to_string(tasks.gone.front()));
  return tasks;
}

}  // namespace tacho::record
