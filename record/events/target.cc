#include "record/events/target.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "format/file.h"
#include "record/events/leading_number.h"

namespace tacho::record {
namespace {

constexpr int kMostCpus = 1 << 16;

// What stands behind `field` in /proc/ID/status, which is there for every thread; nothing when there is no
// such thread.
std::optional<std::string> status_field(int id, std::string_view field, const std::string& proc) {
  const auto status = format::read_file(proc + "/" + std::to_string(id) + "/status");
  if (!status) return std::nullopt;
  std::string_view text = format::as_text(*status);
  const auto at = text.find("\n" + std::string(field) + ":\t");
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + field.size() + 3);
  return std::string(text.substr(0, text.find('\n')));
}

// The process that a thread belongs to.
std::optional<int> process_of(int thread, const std::string& proc) {
  const auto field = status_field(thread, "Tgid", proc);
  if (!field) return std::nullopt;
  std::string_view text = *field;
  return take_number(text);
}

// Whose rights it has: of the real, effective, saved and file system user the second.
std::optional<std::uint32_t> user_of(int process, const std::string& proc) {
  const auto field = status_field(process, "Uid", proc);
  const auto tab = field ? field->find('\t') : std::string::npos;
  if (tab == std::string::npos) return std::nullopt;
  std::uint32_t user = 0;
  const auto [end, code] = std::from_chars(field->data() + tab + 1, field->data() + field->size(), user);
  return code == std::errc{} ? std::optional(user) : std::nullopt;
}

// Folders below `folder` whose names are numbers, ascending.
std::vector<int> numbered_folders(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<int> numbers;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename();
    std::string_view digits = name;
    const auto number = take_number(digits);
    if (number && digits.empty()) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<int> threads_of_process(int process, const std::string& proc) {
  return numbered_folders(proc + "/" + std::to_string(process) + "/task");
}

std::vector<int> processes_of_user(std::uint32_t user, const std::string& proc) {
  std::vector<int> processes = numbered_folders(proc);
  std::erase_if(processes,
                [&](int process) { return process == getpid() || user_of(process, proc) != user; });
  return processes;
}

bool take(std::string_view& text, char letter) {
  if (!text.starts_with(letter)) return false;
  text.remove_prefix(1);
  return true;
}

// The options that were given and say whom to watch; no two of different rows go together.
Result<> refuse_two_targets(const TargetOptions& options) {
  struct Given {
    bool is_given;
    std::string_view name;
    int row;
  };
  const std::array<Given, 7> rows{{{options.all_cpus, "-a", 0},
                                   {!options.cpus.empty(), "-C", 0},
                                   {!options.cgroups.empty(), "-G", 0},
                                   {!options.each_cgroup.empty(), "--container", 0},
                                   {!options.processes.empty(), "-p", 1},
                                   {!options.threads.empty(), "-t", 2},
                                   {options.user.has_value(), "-u", 3}}};
  const Given* first = nullptr;
  for (const Given& row : rows) {
    if (!row.is_given) continue;
    if (first != nullptr && first->row != row.row)
      return use_error(std::string(first->name) + " and " + std::string(row.name) + " exclude each other");
    if (first == nullptr) first = &row;
  }
  if (options.per_thread && first != nullptr && first->row == 0)
    return use_error(std::string(first->name) + " and --per-thread exclude each other");
  return Done{};
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

Result<std::uint32_t> parse_user(const std::string& text) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> room{};
  if (!text.empty() && getpwnam_r(text.c_str(), &entry, room.data(), room.size(), &found) == 0 &&
      found != nullptr)
    return found->pw_uid;
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = code == std::errc{} && end == text.data() + text.size();
  if (is_number && number != std::numeric_limits<std::uint32_t>::max()) return number;
  return use_error("-u: there is no user '" + text + "' here");
}

Result<Target> choose_target(const TargetOptions& options, bool has_command) {
  if (auto done = refuse_two_targets(options); !done) return std::move(done.error());
  Target target;
  target.cpus = options.cpus;
  if (!options.cgroups.empty() && !options.each_cgroup.empty())
    return use_error("-G and --for-each-cgroup (or --container, --pod) exclude each other");
  target.has_all_events_in_each = !options.each_cgroup.empty();
  target.cgroups = options.cgroups;
  for (const std::string& name : options.each_cgroup) {
    if (std::ranges::find(target.cgroups, name) == target.cgroups.end()) target.cgroups.push_back(name);
  }
  target.per_thread = options.per_thread;
  target.inherit = !options.no_inherit && !options.per_thread;
  target.user = options.user;
  const bool by_cpu = options.all_cpus || !options.cpus.empty() || !target.cgroups.empty();
  if (!options.processes.empty() || options.user) {
    target.watch = Watch::Processes;
    target.ids = options.processes;
  } else if (!options.threads.empty()) {
    target.watch = Watch::Threads;
    target.ids = options.threads;
  } else if (has_command && !by_cpu) {
    target.watch = Watch::Command;
  } else if (options.per_thread) {
    return use_error("--per-thread: name what to watch: a COMMAND, -p, -t or -u");
  }
  return target;
}

Result<TargetTasks> tasks_of(const Target& target, const std::string& proc) {
  TargetTasks tasks;
  std::set<int> seen;  // processes
  const std::vector<int> ids = target.user ? processes_of_user(*target.user, proc) : target.ids;
  if (target.user && ids.empty())
    return use_error("-u: user " + std::to_string(*target.user) + " has no process now");
  for (const int id : ids) {
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
  if (target.user) tasks.gone.clear();  // nobody named them
  if (!ids.empty() && tasks.threads.empty())
    return use_error("there is no process or thread " + std::to_string(ids.front()));
  return tasks;
}

}  // namespace tacho::record
