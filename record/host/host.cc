#include "record/host/host.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "format/base/file.h"
#include "record/events/target.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

// Constants that old kernel headers lack.
constexpr unsigned kPerfmon = 38, kBpf = 39, kCheckpoint = 40;

struct RightRow {
  unsigned number;
  std::string_view name;
  bool LaterWork::*needed_for;  // nullptr: needed for files in another user's folder
};
// One row for each kind of work that needs the capability.
constexpr RightRow kRightRows[] = {
    {CAP_DAC_OVERRIDE, "cap_dac_override", nullptr},
    {CAP_DAC_READ_SEARCH, "cap_dac_read_search",
     &LaterWork::describes_again},  // other users' files, for build ids
    {CAP_DAC_READ_SEARCH, "cap_dac_read_search", &LaterWork::reads_binaries},
    {CAP_DAC_READ_SEARCH, "cap_dac_read_search", &LaterWork::packs},
    {CAP_DAC_READ_SEARCH, "cap_dac_read_search", &LaterWork::holds_files},
    {CAP_KILL, "cap_kill", &LaterWork::signals_command},
    {CAP_IPC_LOCK, "cap_ipc_lock", &LaterWork::maps_rings},
    {CAP_SYS_PTRACE, "cap_sys_ptrace", &LaterWork::describes_again},  // mappings of other users' processes
    {CAP_SYS_PTRACE, "cap_sys_ptrace", &LaterWork::reads_binaries},
    {CAP_SYS_PTRACE, "cap_sys_ptrace", &LaterWork::holds_files},
    {CAP_SYS_ADMIN, "cap_sys_admin", &LaterWork::describes_again},  // BPF programs by id
    {CAP_SYS_ADMIN, "cap_sys_admin", &LaterWork::lists_programs},
    {CAP_SYS_ADMIN, "cap_sys_admin", &LaterWork::reads_kernel_stacks},
    {CAP_SYSLOG, "cap_syslog", &LaterWork::describes_again},  // addresses in /proc/kallsyms
    {kPerfmon, "cap_perfmon", &LaterWork::describes_again},  // BPF programs that are attached to a tracepoint
    {kPerfmon, "cap_perfmon", &LaterWork::lists_programs},
    {kPerfmon, "cap_perfmon", &LaterWork::reopens_cpus},
    {kBpf, "cap_bpf", &LaterWork::describes_again},
    {kCheckpoint, "cap_checkpoint_restore", &LaterWork::reads_binaries},  // files that were deleted
    {kCheckpoint, "cap_checkpoint_restore", &LaterWork::holds_files},
    {kBpf, "cap_bpf", &LaterWork::reads_binaries},
    {kBpf, "cap_bpf", &LaterWork::has_objects},  // before Linux 5.19, for bpf(2) of any kind
};

Capabilities bit(unsigned number) { return Capabilities{1} << number; }

struct Sets {
  Capabilities effective = 0, permitted = 0;
};

Result<Sets> present_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return system_error("capget", errno);
  return Sets{data[0].effective | Capabilities{data[1].effective} << 32,
              data[0].permitted | Capabilities{data[1].permitted} << 32};
}

// Nothing is inheritable. A program that root starts gets the bounding set, so that is reduced as well.
Result<> set_rights(Sets sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  for (std::size_t word = 0; word < data.size(); ++word) {
    data.at(word).effective = static_cast<std::uint32_t>(sets.effective >> (32 * word));
    data.at(word).permitted = static_cast<std::uint32_t>(sets.permitted >> (32 * word));
  }
  if (syscall(SYS_capset, &header, data.data()) != 0) return system_error("capset", errno);
  return Done{};
}

// Whether a file can be created in the folder with the effective rights.
bool can_make_files_in(const std::string& folder) {
  return folder.empty() || faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

// A process without CAP_SETPCAP keeps the bounding set, which is without effect once no_new_privs is set.
void lower_bounding_set(Capabilities kept) {
  for (unsigned number = 0; number < 64; ++number) {
    if ((kept & bit(number)) == 0 && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0 && errno == EINVAL) return;
  }
}

}  // namespace

Capabilities rights_for(const LaterWork& work) {
  Capabilities rights = 0;
  for (const RightRow& row : kRightRows) {
    if (row.needed_for != nullptr && work.*row.needed_for) rights |= bit(row.number);
  }
  return rights;
}

std::string names_of(Capabilities rights) {
  std::string names;
  for (const RightRow& row : kRightRows) {
    if ((rights & bit(row.number)) == 0) continue;
    rights &= ~bit(row.number);
    names.append(names.empty() ? "" : ", ").append(row.name);
  }
  return names.empty() ? "none" : names;
}

Result<Capabilities> drop_rights(const LaterWork& work, const std::string& folder) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return system_error("no_new_privs", errno);
  const auto present = present_rights();
  if (!present) return present.error();
  Capabilities kept = rights_for(work) & present->permitted;
  // First reduces only the effective set, to test whether the folder needs more rights. CAP_SETPCAP is kept
  // until the bounding set is reduced.
  const Capabilities for_bounds = bit(CAP_SETPCAP) & present->effective;
  if (auto done = set_rights({kept | for_bounds, present->permitted}); !done) return done.error();
  if (!can_make_files_in(folder)) kept |= bit(CAP_DAC_OVERRIDE) & present->permitted;
  lower_bounding_set(kept);
  if (auto done = set_rights({kept, kept}); !done) return done.error();
  return kept;
}

namespace {

namespace fs = std::filesystem;

const std::string kCpuFolder = "/sys/devices/system/cpu";
const std::string kNodeFolder = "/sys/devices/system/node";

// The first line of a small file of /proc or /sys; nullopt: it cannot be read.
std::optional<std::string> line_of(const std::string& path) {
  const auto bytes = format::read_file(path);
  if (!bytes) return std::nullopt;
  std::string_view text = format::as_text(*bytes);
  return std::string(trimmed(take_until(text, '\n')));
}

template <class Number>
std::optional<Number> number_of(const std::optional<std::string>& text) {
  std::string_view number = text ? std::string_view(*text) : std::string_view();
  return whole_number<Number>(take_until(number, ' '));  // "16384 kB"
}

// Calls `seen` with key and value of each "key : value" line until it returns true.
template <class Seen>
void each_field(const std::string& path, Seen&& seen) {
  const auto bytes = format::read_file(path);
  if (!bytes) return;
  std::string_view rest = format::as_text(*bytes);
  while (!rest.empty()) {
    std::string_view value = take_until(rest, '\n');
    if (value.find(':') == std::string_view::npos) continue;
    const std::string_view key = trimmed(take_until(value, ':'));
    if (!seen(key, trimmed(value))) return;
  }
}

// "AuthenticAMD,26,2,1" and "AMD EPYC", in perf's form on x86; elsewhere only the description.
void describe_cpu(format::Environment& out) {
  std::map<std::string, std::string, std::less<>> fields;
  each_field("/proc/cpuinfo", [&](std::string_view key, std::string_view value) {
    if (key == "processor" && !fields.empty()) return false;
    fields.emplace(key, value);
    return true;
  });
  for (const char* key : {"model name", "cpu model", "Processor", "uarch"}) {
    const auto field = fields.find(std::string_view(key));
    if (field == fields.end()) continue;
    out.cpu_description = field->second;
    break;
  }
  std::string id;
  for (const char* key : {"vendor_id", "cpu family", "model", "stepping"}) {
    const auto field = fields.find(std::string_view(key));
    if (field == fields.end()) return;
    id += (id.empty() ? "" : ",") + field->second;
  }
  out.cpu_id = id;
}

std::optional<std::uint64_t> memory_field(const std::string& path, std::string_view name) {
  std::optional<std::uint64_t> found;
  each_field(path, [&](std::string_view key, std::string_view value) {
    if (!key.ends_with(name)) return true;
    found = number_of<std::uint64_t>(std::string(value));
    return false;
  });
  return found;
}

void add_once(std::vector<std::string>& list, const std::optional<std::string>& text) {
  if (text && std::ranges::find(list, *text) == list.end()) list.push_back(*text);
}

std::optional<format::CpuTopology> cpu_topology(std::size_t cpus) {
  format::CpuTopology topology;
  for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
    const std::string folder = kCpuFolder + "/cpu" + std::to_string(cpu) + "/topology/";
    add_once(topology.packages, line_of(folder + "core_siblings_list"));
    add_once(topology.dies, line_of(folder + "die_cpus_list"));
    add_once(topology.cores, line_of(folder + "thread_siblings_list"));
    format::CpuTopologyEntry entry;
    // An offline CPU has no such files; perf writes all-ones then.
    entry.core = number_of<std::uint32_t>(line_of(folder + "core_id")).value_or(~0U);
    entry.socket = number_of<std::uint32_t>(line_of(folder + "physical_package_id")).value_or(~0U);
    entry.die = number_of<std::uint32_t>(line_of(folder + "die_id"));
    if (!entry.die && !topology.dies.empty()) entry.die = ~0U;
    topology.cpus.push_back(entry);
  }
  if (topology.packages.empty()) return std::nullopt;
  return topology;
}

std::vector<format::NumaNode> numa_nodes() {
  std::vector<format::NumaNode> nodes;
  const auto online = line_of(kNodeFolder + "/online");
  if (!online) return nodes;
  const auto numbers = parse_cpu_list(*online);
  if (!numbers) return nodes;
  for (const int node : *numbers) {
    const std::string folder = kNodeFolder + "/node" + std::to_string(node);
    format::NumaNode entry;
    entry.node = static_cast<std::uint32_t>(node);
    entry.total_kib = memory_field(folder + "/meminfo", "MemTotal").value_or(0);
    entry.free_kib = memory_field(folder + "/meminfo", "MemFree").value_or(0);
    entry.cpus = line_of(folder + "/cpulist").value_or("");
    nodes.push_back(std::move(entry));
  }
  return nodes;
}

std::vector<format::CacheLevel> caches(const std::vector<int>& cpus) {
  std::vector<format::CacheLevel> found;
  for (const int cpu : cpus) {
    for (int index = 0; index < 10; ++index) {
      const std::string folder =
          kCpuFolder + "/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
      const auto level = number_of<std::uint32_t>(line_of(folder + "level"));
      if (!level) break;
      format::CacheLevel cache;
      cache.level = *level;
      cache.line_size = number_of<std::uint32_t>(line_of(folder + "coherency_line_size")).value_or(0);
      cache.sets = number_of<std::uint32_t>(line_of(folder + "number_of_sets")).value_or(0);
      cache.ways = number_of<std::uint32_t>(line_of(folder + "ways_of_associativity")).value_or(0);
      cache.type = line_of(folder + "type").value_or("");
      cache.size = line_of(folder + "size").value_or("");
      cache.cpus = line_of(folder + "shared_cpu_list").value_or("");
      const auto same = [&](const format::CacheLevel& other) {
        return other.level == cache.level && other.type == cache.type && other.cpus == cache.cpus;
      };
      if (std::ranges::none_of(found, same)) found.push_back(std::move(cache));
    }
  }
  std::ranges::stable_sort(found, {}, &format::CacheLevel::level);
  return found;
}

std::vector<std::pair<std::uint32_t, std::string>> pmu_mappings() {
  std::vector<std::pair<std::uint32_t, std::string>> found;
  std::error_code code;
  for (fs::directory_iterator entry("/sys/bus/event_source/devices", code), end; !code && entry != end;
       entry.increment(code)) {
    const auto type = number_of<std::uint32_t>(line_of(entry->path() / "type"));
    if (type) found.emplace_back(*type, entry->path().filename());
  }
  std::ranges::sort(found);
  return found;
}

std::optional<std::vector<int>> cpus_in(const char* file) {
  const auto text = line_of(kCpuFolder + file);
  if (!text) return std::nullopt;
  auto cpus = parse_cpu_list(*text);
  return cpus ? std::optional(std::move(*cpus)) : std::nullopt;
}

std::vector<int> online_cpus() {
  if (auto cpus = cpus_in("/online")) return *cpus;
  std::vector<int> counted;  // 0, 1, ...: used if there is no sysfs
  for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); ++cpu) counted.push_back(cpu);
  return counted;
}

}  // namespace

Result<Host> read_host() {
  Host host;
  host.online_cpus = online_cpus();
  if (host.online_cpus.empty()) return Error{kCpuFolder + "/online: no CPU is online"};
  std::ranges::set_difference(cpus_in("/present").value_or(std::vector<int>()), host.online_cpus,
                              std::back_inserter(host.offline_cpus));
  host.page_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto paranoid = number_of<int>(line_of("/proc/sys/kernel/perf_event_paranoid"));
  if (!paranoid) {
    return Error{
        "/proc/sys/kernel/perf_event_paranoid cannot be read: this kernel has no perf events, or /proc is "
        "not mounted"};
  }
  host.perf_event_paranoid = *paranoid;
  host.max_sample_rate =
      number_of<std::uint64_t>(line_of("/proc/sys/kernel/perf_event_max_sample_rate")).value_or(0);
  return host;
}

std::string_view version() { return TACHO_VERSION; }

format::Environment describe_host(const std::vector<std::string>& command_line) {
  format::Environment out;
  utsname name{};
  if (uname(&name) == 0) {
    out.hostname = name.nodename;
    out.os_release = name.release;
    out.arch = name.machine;
  }
  out.version = "tacho " + std::string(version());
  out.command_line = command_line;
  describe_cpu(out);
  const std::vector<int> online = online_cpus();
  const std::vector<int> present = cpus_in("/present").value_or(online);
  out.cpus_online = static_cast<std::uint32_t>(online.size());
  out.cpus_available = static_cast<std::uint32_t>(present.size());
  out.total_memory_kib = memory_field("/proc/meminfo", "MemTotal");
  out.cpu_topology = cpu_topology(present.size());
  out.numa_nodes = numa_nodes();
  out.pmu_mappings = pmu_mappings();
  out.caches = caches(online);
  return out;
}

std::uint64_t monotonic_now() { return clock_now(CLOCK_MONOTONIC); }

std::uint64_t clock_now(int clockid) {
  timespec time{};
  clock_gettime(clockid, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

namespace {

bool is_program(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<std::string> path_of_program(const std::string& command) {
  if (command.find('/') != std::string::npos)
    return is_program(command) ? std::optional(command) : std::nullopt;
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/bin:/usr/bin";
  for (;;) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + command;
    if (is_program(path)) return path;
    if (folder.size() == rest.size()) return std::nullopt;
    rest.remove_prefix(folder.size() + 1);
  }
}

}  // namespace tacho::record
