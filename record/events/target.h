// Which threads are recorded: processes, threads, users, CPUs, cgroups, containers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::record {

enum class Watch : std::uint8_t {
  System,     // every CPU, or those in `cpus`
  Processes,  // all threads of `ids`, or of the processes of `user`
  Threads,    // `ids` alone
  Command,    // the command we start
};

struct Target {
  Watch watch = Watch::System;
  std::vector<int> cpus;  // empty: all that are online
  std::vector<int> ids;   // processes or threads
  std::optional<std::uint32_t> user;
  // Of the whole system only what runs in these; parse_cgroup_list() says how they go with the events.
  std::vector<std::string> cgroups;
  bool has_all_events_in_each = false;  // of the cgroups: else one is for all events, or each for one
  bool per_thread = false;              // a ring for each thread, wherever it runs, and not one for each CPU
  bool inherit = true;                  // what the watched threads start is watched too
};

// "0-3,6": CPU numbers, ascending, each once.
Result<std::vector<int>> parse_cpu_list(std::string_view text);
// "12,345": process or thread numbers, each once, in the order given.
Result<std::vector<int>> parse_id_list(std::string_view text);

// A user by name or number.
Result<std::uint32_t> parse_user(const std::string& text);

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

// Resolves a target to threads that exist now.
struct TargetTasks {
  std::vector<int> threads;    // to follow, each once
  std::vector<int> processes;  // whose names and mappings explain the samples: the thread groups of `threads`
  std::vector<int> gone;       // ids without a process or thread
};
// Both -p and -t take the number of any thread: -p means all of its process, -t the thread only. `proc`:
// the directory, "/proc" outside of tests. An error when every id is gone, or the user has no process; this
// process itself is not one of his.
Result<TargetTasks> tasks_of(const Target& target, const std::string& proc = "/proc");

// Cgroups by name, to which an event can be limited.

// The mount point of the cgroup hierarchy of perf events: that of the controller perf_event (version 1) if
// there is one, else version 2. `mountinfo`: the text of /proc/self/mountinfo. Empty: neither is mounted.
std::string cgroup_mount(std::string_view mountinfo);

// The same for this machine; an error: none is mounted.
Result<std::string> mounted_cgroups();
// All cgroups below a mount by their names, as "/system.slice/nginx.service", sorted; of very many the first.
std::vector<std::string> all_cgroups(const std::string& mount);

// Opens the folder of a cgroup, for perf_event_open. `name`: relative to `mount`, as in /proc/PID/cgroup
// ("/system.slice/nginx.service", with or without the first slash), or the full path. The error names similar
// ones.
Result<format::Fd> open_cgroup(const std::string& mount, const std::string& name);

// A cgroup of version 2 as BPF programs know it.
struct CgroupNumber {
  std::uint64_t id = 0;
  std::uint16_t level = 0;  // folders above it; the root has none
};
// By its path below the mount of version 2. An error where the hierarchy is not seen from its root.
Result<CgroupNumber> number_of_cgroup(std::string_view path);

// "a,b,,c": names in the order of the events; an empty one: all cgroups.
std::vector<std::string> parse_cgroup_list(std::string_view text);

// The folders of all names, in their order; an empty name has none. Each as an Fd that may be empty.
Result<std::vector<format::Fd>> open_cgroups(const std::vector<std::string>& names);

// Containers and pods by the names of their control groups.

// Container of a cgroup's own name (the last part of its path): the id or name that the container runtime
// gave, as its users know it. Empty: it is no container, or no pod.
std::string container_of(std::string_view cgroup);  // "docker-4f5e.scope", "lxc.payload.web", 64 hex digits
std::string pod_of(std::string_view cgroup);  // "kubepods-burstable-pod12_ab.slice", "pod12-ab": "12-ab"

// The cgroup, below `mount`, of the one container (pod) whose id starts with `name`; `name` may also be the
// name of an LXC or systemd machine. An error lists them when there are several, or none.
Result<std::string> cgroup_of_container(const std::string& mount, const std::string& name);
Result<std::string> cgroup_of_pod(const std::string& mount, const std::string& name);

}  // namespace tacho::record
