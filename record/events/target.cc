#include "record/events/target.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "cli/nearest.h"
#include "format/base/file.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

constexpr int kMostCpus = 1 << 16;

// /proc/ID/status, which exists for every thread; empty: there is no such thread.
std::string status_of(int id, const std::string& proc) {
  return text_of_file(proc + "/" + std::to_string(id) + "/status");
}

// The process that a thread belongs to.
std::optional<int> process_of(int thread, const std::string& proc) {
  return whole_number<int>(field_of_status(status_of(thread, proc), "Tgid"));
}

// The effective user: the second of real, effective, saved and file system user.
std::optional<std::uint32_t> user_of(int process, const std::string& proc) {
  const std::string status = status_of(process, proc);
  std::string_view users = field_of_status(status, "Uid");
  take_until(users, '\t');
  return take_number<std::uint32_t>(users);
}

std::vector<int> processes_of_user(std::uint32_t user, const std::string& proc) {
  std::vector<int> processes = numbers_in(proc);
  std::erase_if(processes,
                [&](int process) { return process == getpid() || user_of(process, proc) != user; });
  return processes;
}

// Options of different rows exclude each other.
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
    const auto first = take_number<int>(text);
    if (!first) return wrong();
    const auto last = take_prefix(text, "-") ? take_number<int>(text) : first;
    if (!last || *last < *first || *last >= kMostCpus) return wrong();
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  } while (take_prefix(text, ","));
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
    const auto id = take_number<int>(text);
    if (!id || *id == 0) return wrong();
    if (std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  } while (take_prefix(text, ","));
  if (!text.empty()) return wrong();
  return ids;
}

namespace {

struct User {
  std::string name;
  std::uint32_t id = 0;
};

// By name or id. A static program asks /etc/passwd alone: glibc's getpwnam_r() and getpwuid_r() would load
// the libraries that /etc/nsswitch.conf names.
std::optional<User> find_user(const std::variant<std::string, std::uint32_t>& key) {
  const auto* const name = std::get_if<std::string>(&key);
  const auto* const id = std::get_if<std::uint32_t>(&key);
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> room{};
#ifdef TACHO_STATIC
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> users(std::fopen("/etc/passwd", "re"), std::fclose);
  while (users && fgetpwent_r(users.get(), &entry, room.data(), room.size(), &found) == 0)
    if (name != nullptr ? *name == entry.pw_name : *id == entry.pw_uid)
      return User{entry.pw_name, entry.pw_uid};
  return std::nullopt;
#else
  const int failed = name != nullptr ? getpwnam_r(name->c_str(), &entry, room.data(), room.size(), &found)
                                     : getpwuid_r(*id, &entry, room.data(), room.size(), &found);
  if (failed != 0 || found == nullptr) return std::nullopt;
  return User{entry.pw_name, entry.pw_uid};
#endif
}

}  // namespace

std::string user_text(std::uint32_t user) {
  const auto found = find_user(user);
  return found ? found->name : std::to_string(user);
}

std::map<std::uint32_t, std::size_t> users_of_processes(const std::string& proc) {
  std::map<std::uint32_t, std::size_t> users;
  for (const int process : numbers_in(proc))
    if (const auto user = user_of(process, proc)) ++users[*user];
  return users;
}

Result<std::uint32_t> parse_user(const std::string& text) {
  if (const auto user = text.empty() ? std::nullopt : find_user(text)) return user->id;
  const auto number = whole_number<std::uint32_t>(text);
  if (number && *number != std::numeric_limits<std::uint32_t>::max()) return *number;
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
    return use_error("--per-thread needs a target: a COMMAND, -p, -t or -u");
  }
  return target;
}

std::vector<int> numbers_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<int> numbers;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename();
    if (const auto number = whole_number<int>(name); number && *number >= 0) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
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
    if (is_new && target.watch == Watch::Processes)
      threads = numbers_in(proc + "/" + std::to_string(*process) + "/task");
    if (!process || (is_new && threads.empty())) {
      tasks.gone.push_back(id);
      continue;
    }
    if (is_new) tasks.processes.push_back(*process);
    tasks.threads.insert(tasks.threads.end(), threads.begin(), threads.end());
  }
  if (target.user) tasks.gone.clear();  // these ids are not from the command line
  if (!ids.empty() && tasks.threads.empty())
    return use_error("there is no process or thread " + std::to_string(ids.front()));
  return tasks;
}

namespace {

namespace fs = std::filesystem;

// Limits of the cgroups that are compared, and that a message names.
constexpr std::size_t kMostCgroups = 100'000;
constexpr std::size_t kMostNamed = 4;

bool has_option(std::string_view options, std::string_view wanted) {
  while (!options.empty())
    if (take_until(options, ',') == wanted) return true;
  return false;
}

// A line is "36 35 98:0 /root /mount options [optional]... - type source super-options".
struct MountLine {
  std::string_view where, type, super_options;
};
MountLine parse_mount_line(std::string_view line) {
  MountLine out;
  for (int i = 0; i < 4; ++i) take_until(line, ' ');
  out.where = take_until(line, ' ');
  while (!line.empty() && take_until(line, ' ') != "-") {
  }
  out.type = take_until(line, ' ');
  take_until(line, ' ');
  out.super_options = line;
  return out;
}

std::string second_version_mount(std::string_view mountinfo) {
  while (!mountinfo.empty()) {
    const MountLine line = parse_mount_line(take_until(mountinfo, '\n'));
    if (line.type == "cgroup2") return without_octal_escapes(line.where);
  }
  return {};
}

std::string without_slashes(std::string_view name) {
  while (name.starts_with('/')) name.remove_prefix(1);
  while (name.ends_with('/')) name.remove_suffix(1);
  return std::string(name);
}

// For a message: the cgroups whose paths contain the last part of `name`; without any, the nearest name.
std::string similar_cgroups(const std::string& mount, const std::string& name) {
  const std::vector<std::string> all = all_cgroups(mount);
  const std::string part = name.substr(name.rfind('/') + 1);
  std::string found;
  std::size_t count = 0;
  for (const std::string& each : all) {
    if (part.empty() || each.find(part) == std::string::npos) continue;
    if (++count <= kMostNamed) found += (found.empty() ? "" : ", ") + each;
  }
  if (count > kMostNamed) found += ", ... (" + std::to_string(count) + " in all)";
  if (count != 0) return "; similar names: " + found;
  return cli::suggestion("/" + name, all);
}

}  // namespace

std::string cgroup_mount(std::string_view mountinfo) {
  std::string second;
  while (!mountinfo.empty()) {
    const MountLine line = parse_mount_line(take_until(mountinfo, '\n'));
    if (line.type == "cgroup" && has_option(line.super_options, "perf_event"))
      return without_octal_escapes(line.where);
    if (line.type == "cgroup2" && second.empty()) second = without_octal_escapes(line.where);
  }
  return second;
}

std::vector<std::string> all_cgroups(const std::string& mount) {
  std::vector<std::string> names;
  std::error_code code;
  const auto skip = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(mount, skip, code), end;
       !code && entry != end && names.size() < kMostCgroups; entry.increment(code)) {
    std::error_code unknown;
    if (entry->is_directory(unknown)) names.push_back(entry->path().string().substr(mount.size()));
  }
  std::ranges::sort(names);
  return names;
}

Result<format::Fd> open_cgroup(const std::string& mount, const std::string& name) {
  const bool is_whole_path = name.starts_with(mount + "/") || name == mount;
  const std::string below = without_slashes(is_whole_path ? name.substr(mount.size()) : name);
  format::Fd folder(open((mount + "/" + below).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && (errno == ENOENT || errno == ENOTDIR))
    return use_error("-G: there is no cgroup '" + name + "' below " + mount + similar_cgroups(mount, below));
  if (!folder) return system_error("-G: " + mount + "/" + below, errno);
  struct statfs kind {};
  const bool is_cgroup = fstatfs(folder.get(), &kind) == 0 &&
                         (kind.f_type == CGROUP2_SUPER_MAGIC || kind.f_type == CGROUP_SUPER_MAGIC);
  if (!is_cgroup) return use_error("-G: '" + name + "' is not below " + mount + ", where cgroups are");
  return folder;
}

Result<CgroupNumber> number_of_cgroup(std::string_view path) {
  constexpr ino_t kFirstCgroupNamespace = 0xEFFFFFFB;  // inode of the host's initial cgroup namespace
  struct stat space {};
  if (::stat("/proc/self/ns/cgroup", &space) == 0 && space.st_ino != kFirstCgroupNamespace)
    return Error{"in this cgroup namespace paths of cgroups differ from the host's; use cgroup_id"};
  const auto mounts = format::read_file("/proc/self/mountinfo");
  if (!mounts) return mounts.error();
  const std::string mount = second_version_mount(format::as_text(*mounts));
  if (mount.empty())
    return Error{"no cgroups of version 2 are mounted here, and BPF programs know no others"};
  const std::string below = without_slashes(path);
  const std::string folder = below.empty() ? mount : mount + "/" + below;
  struct stat found {};
  struct statfs kind {};
  if (::stat(folder.c_str(), &found) != 0)
    return use_error("there is no cgroup '/" + below + "' below " + mount + similar_cgroups(mount, below));
  if (::statfs(folder.c_str(), &kind) != 0 || kind.f_type != CGROUP2_SUPER_MAGIC)
    return use_error("'/" + below + "' is not below " + mount + ", where cgroups are");
  const auto slashes = static_cast<std::uint16_t>(std::ranges::count(below, '/'));
  return CgroupNumber{found.st_ino, static_cast<std::uint16_t>(below.empty() ? 0 : slashes + 1)};
}

std::vector<std::string> parse_cgroup_list(std::string_view text) {
  std::vector<std::string> names;
  for (;;) {
    const auto comma = text.find(',');
    names.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return names;
    text.remove_prefix(comma + 1);
  }
}

Result<std::string> mounted_cgroups() {
  const auto mounts = format::read_file("/proc/self/mountinfo");
  if (!mounts) return mounts.error();
  std::string mount = cgroup_mount(format::as_text(*mounts));
  if (!mount.empty()) return mount;
  return Error{"no cgroup file system is mounted here; mount it with: mount -t cgroup2 none /sys/fs/cgroup"};
}

Result<std::vector<format::Fd>> open_cgroups(const std::vector<std::string>& names) {
  std::vector<format::Fd> folders;
  if (names.empty()) return folders;
  const auto mount = mounted_cgroups();
  if (!mount) return mount.error();
  for (const std::string& name : names) {
    if (name.empty()) {
      folders.emplace_back();
      continue;
    }
    auto folder = open_cgroup(*mount, name);
    if (!folder) return std::move(folder.error());
    folders.push_back(std::move(*folder));
  }
  return folders;
}

namespace {

// The maximum of names in a message.
constexpr std::size_t kMostListed = 8;
// Ids of container runtimes have 64 hexadecimal digits; a shorter name may be anything.
constexpr std::size_t kWholeId = 64;

// Runtimes whose cgroups are "RUNTIME-ID.scope". Monitors of containers, which run beside them, are named
// "RUNTIME-conmon-ID.scope".
constexpr std::array<std::string_view, 8> kRuntimes{"docker",     "cri-containerd", "crio",     "libpod",
                                                    "containerd", "nerdctl",        "buildkit", "podman"};

bool is_hexadecimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool take_suffix(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// Undoes systemd's escaping of special characters in names of units: \x2d.
std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto code =
        text.substr(at, 2) == "\\x" && is_hexadecimal(text.substr(at + 2, 2)) && at + 3 < text.size()
            ? whole_number<unsigned>(text.substr(at + 2, 2), 16)
            : std::nullopt;
    out += code ? static_cast<char>(*code) : text[at];
    if (code) at += 3;
  }
  return out;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string_view parent_of(std::string_view path) {
  return path.substr(0, std::min(path.rfind('/'), path.size()));
}

struct Found {
  std::string cgroup, id;
};

using NameOf = std::string (*)(std::string_view path);

// Old versions of LXC: a folder below one called lxc.
std::string container_at(std::string_view path) {
  const std::string_view above = last_part(parent_of(path));
  if (above == "lxc" || above == "lxc.payload") return std::string(last_part(path));
  return container_of(last_part(path));
}
std::string pod_at(std::string_view path) { return pod_of(last_part(path)); }

std::vector<std::string> names_below(const std::string& mount, NameOf name_of) {
  std::set<std::string> names;
  for (const std::string& cgroup : all_cgroups(mount))
    if (std::string name = name_of(cgroup); !name.empty()) names.insert(std::move(name));
  return {names.begin(), names.end()};
}

std::string listed(const std::vector<Found>& found) {
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kMostListed); ++i)
    text += "\n  " + found[i].id + "  (" + found[i].cgroup + ")";
  if (found.size() > kMostListed) text += "\n  ... (" + std::to_string(found.size()) + " in all)";
  return text;
}

Result<std::string> find(const std::string& mount, const std::string& name, NameOf name_of,
                         std::string what) {
  const std::string option = "--" + what + ": ";
  if (name.empty()) return use_error(option + "the name is empty");
  std::vector<Found> all, with_prefix;
  for (const std::string& cgroup : all_cgroups(mount)) {
    std::string id = name_of(cgroup);
    if (id.empty()) continue;
    if (id == name) return cgroup;
    if (id.starts_with(name)) with_prefix.push_back({cgroup, id});
    all.push_back({cgroup, std::move(id)});
  }
  if (with_prefix.size() == 1) return with_prefix.front().cgroup;
  if (with_prefix.size() > 1)
    return use_error(option + "'" + name + "' is a prefix of " + std::to_string(with_prefix.size()) +
                     " here; give more of the id:" + listed(with_prefix));
  if (all.empty()) {
    return use_error(option + "there is no " + what + " below " + mount + "; ls " + mount +
                     " shows the cgroups, and -G takes the path of one");
  }
  return use_error(
      option + "there is no " + what + " '" + name +
      "'; names given by the container runtime are not found (docker inspect -f '{{.Id}}' NAME prints the "
      "id). Running here:" +
      listed(all));
}

}  // namespace

std::string container_of(std::string_view cgroup) {
  if (cgroup.size() == kWholeId && is_hexadecimal(cgroup)) return std::string(cgroup);
  if (std::string_view name = cgroup; take_prefix(name, "lxc.payload.")) return std::string(name);
  if (std::string_view name = cgroup; take_prefix(name, "systemd-nspawn@") && take_suffix(name, ".service"))
    return without_escapes(name);
  std::string_view rest = cgroup;
  if (!take_suffix(rest, ".scope")) return {};
  if (std::string_view name = rest; take_prefix(name, "machine-")) return without_escapes(name);
  for (const std::string_view runtime : kRuntimes) {
    std::string_view id = rest;
    if (take_prefix(id, runtime) && take_prefix(id, "-") && is_hexadecimal(id)) return std::string(id);
  }
  return {};
}

std::string pod_of(std::string_view cgroup) {
  std::string_view name = cgroup;
  if (take_suffix(name, ".slice")) {
    if (std::string_view id = name; take_prefix(id, "machine-libpod_pod_")) return std::string(id);
    const auto pod = name.rfind("-pod");
    if (!name.starts_with("kubepods") || pod == std::string_view::npos) return {};
    name.remove_prefix(pod + 1);
  }
  if (!take_prefix(name, "pod") || name.empty()) return {};
  std::string id(name);
  std::ranges::replace(id, '_', '-');  // written for '-', which separates levels in names of slices
  return is_hexadecimal(id.substr(0, 1)) ? id : std::string();
}

Result<std::string> cgroup_of_container(const std::string& mount, const std::string& name) {
  return find(mount, name, container_at, "container");
}

Result<std::string> cgroup_of_pod(const std::string& mount, const std::string& name) {
  return find(mount, name, pod_at, "pod");
}

std::vector<std::string> containers_below(const std::string& mount) {
  return names_below(mount, container_at);
}
std::vector<std::string> pods_below(const std::string& mount) { return names_below(mount, pod_at); }

}  // namespace tacho::record
