// Which threads are recorded: processes, threads, users, CPUs, cgroups, containers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::record {

enum class Watch : std::uint8_t {
  System,     // all CPUs, or those in `cpus`
  Processes,  // all threads of the processes `ids`, or of the processes of `user`
  Threads,    // the threads `ids`
  Command,    // the workload
};

struct Target {
  Watch watch = Watch::System;
  std::vector<int> cpus;  // empty: all online CPUs
  std::vector<int> ids;   // processes or threads
  std::optional<std::uint32_t> user;
  // Only processes in these cgroups are recorded; see parse_cgroup_list().
  std::vector<std::string> cgroups;
  bool has_all_events_in_each = false;  // all events in each cgroup; else one for all events, or one for each
  bool per_thread = false;              // a ring for each thread instead of one for each CPU
  bool inherit = true;                  // children of the recorded threads are recorded too
};

// "0-3,6": CPU numbers, ascending, each once.
Result<std::vector<int>> parse_cpu_list(std::string_view text);
// "12,345": process or thread numbers, each once, in the order given.
Result<std::vector<int>> parse_id_list(std::string_view text);

// A user by name or number.
Result<std::uint32_t> parse_user(const std::string& text);
// What parse_user() takes: the name; the number, if the user has none here.
std::string user_text(std::uint32_t user);
// The effective users of the processes that run, ascending, and how many processes each has.
std::map<std::uint32_t, std::size_t> users_of_processes(const std::string& proc = "/proc");

// Joins the target options; an error names two that exclude each other. As in perf, without any of them the
// command is recorded, or without a command the whole system.
struct TargetOptions {
  bool all_cpus = false;
  std::vector<int> cpus = {}, processes = {}, threads = {};
  std::optional<std::uint32_t> user = std::nullopt;
  std::vector<std::string> cgroups = {};      // -G
  std::vector<std::string> each_cgroup = {};  // --for-each-cgroup, --container, --pod
  bool per_thread = false, no_inherit = false;
};
Result<Target> choose_target(const TargetOptions& options, bool has_command);

// The threads of a target that exist now.
struct TargetTasks {
  std::vector<int> threads;    // to record, each once
  std::vector<int> processes;  // their thread groups, for names and mappings
  std::vector<int> gone;       // ids without a process or thread
};
// Finds the threads of a target. Ids may be those of any thread: -p means all threads of its process. `proc`:
// the directory, "/proc" outside of tests. An error: none of the ids exists, or the user has no process
// besides this one.
Result<TargetTasks> tasks_of(const Target& target, const std::string& proc = "/proc");
// The numbers among the names in a folder, ascending: processes in /proc, threads in /proc/PID/task.
std::vector<int> numbers_in(const std::string& folder);

// The mount point of the cgroup hierarchy of perf events: that of the controller perf_event (version 1) if
// there is one, else version 2. `mountinfo`: the text of /proc/self/mountinfo. Empty: neither is mounted.
std::string cgroup_mount(std::string_view mountinfo);

// The same for this machine; an error: none is mounted.
Result<std::string> mounted_cgroups();
// The names of cgroups below a mount ("/system.slice/nginx.service"), sorted, up to a maximum.
std::vector<std::string> all_cgroups(const std::string& mount);

// Opens the folder of a cgroup, for perf_event_open. `name`: relative to `mount`, as in /proc/PID/cgroup
// ("/system.slice/nginx.service", with or without the first slash), or the full path. The error names similar
// ones.
Result<format::Fd> open_cgroup(const std::string& mount, const std::string& name);

// A cgroup of version 2, as BPF programs identify it.
struct CgroupNumber {
  std::uint64_t id = 0;
  std::uint16_t level = 0;  // depth; 0: the root
};
// Finds it by its path below the mount of version 2. An error in a cgroup namespace, where paths differ.
Result<CgroupNumber> number_of_cgroup(std::string_view path);

// "a,b,,c": names in the order of the events; an empty one: all cgroups.
std::vector<std::string> parse_cgroup_list(std::string_view text);

// Opens the folders of all names, in order; an empty name gives an empty Fd.
Result<std::vector<format::Fd>> open_cgroups(const std::vector<std::string>& names);

// The container or pod of a cgroup, by the last part of the cgroup's path: the id or name that the container
// runtime gave it. Empty: the cgroup is not that of a container (pod).
std::string container_of(std::string_view cgroup);  // "docker-4f5e.scope", "lxc.payload.web", 64 hex digits
std::string pod_of(std::string_view cgroup);  // "kubepods-burstable-pod12_ab.slice", "pod12-ab": "12-ab"

// The cgroup, below `mount`, of the one container (pod) whose id starts with `name`; `name` may also be the
// name of an LXC or systemd machine. An error lists them when there are several, or none.
Result<std::string> cgroup_of_container(const std::string& mount, const std::string& name);
Result<std::string> cgroup_of_pod(const std::string& mount, const std::string& name);
// Ids or names that these take, of all containers (pods) below `mount`.
std::vector<std::string> containers_below(const std::string& mount);
std::vector<std::string> pods_below(const std::string& mount);

}  // namespace tacho::record
