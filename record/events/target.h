// Whom to watch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"

namespace tacho::record {

enum class Watch : std::uint8_t {
  System,     // every CPU, or those of `cpus`
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

// What the options of the target say together; an error names the two that exclude each other. Without
// any of them the command is watched, or the whole system when there is none either, as perf does.
struct TargetOptions {
  bool all_cpus = false;
  std::vector<int> cpus = {}, processes = {}, threads = {};
  std::optional<std::uint32_t> user = std::nullopt;
  std::vector<std::string> cgroups = {};      // -G
  std::vector<std::string> each_cgroup = {};  // --for-each-cgroup, --container, --pod
  bool per_thread = false, no_inherit = false;
};
Result<Target> choose_target(const TargetOptions& options, bool has_command);

// What the ids of a target stand for at this moment.
struct TargetTasks {
  std::vector<int> threads;    // to follow, each once
  std::vector<int> processes;  // whose names and mappings explain the samples: the thread groups of `threads`
  std::vector<int> gone;       // ids without a process or thread
};
// Both -p and -t take the number of any thread: -p stands for all of its process, -t for the thread alone.
// `proc`: the directory, "/proc" outside of tests. An error when every id is gone, or the user
// has no process; this process itself is not one of his.
Result<TargetTasks> tasks_of(const Target& target, const std::string& proc = "/proc");

}  // namespace tacho::record
