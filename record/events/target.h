// Whom to watch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/result.h"

namespace tacho::record {

enum class Watch : std::uint8_t {
  System,     // every CPU, or those of `cpus`
  Processes,  // all threads of `ids`
  Threads,    // `ids` alone
  Command,    // the command we start
};

struct Target {
  Watch watch = Watch::System;
  std::vector<int> cpus;  // empty: all that are online
  std::vector<int> ids;   // processes or threads
};

// "0-3,6": CPU numbers, ascending, each once.
Result<std::vector<int>> parse_cpu_list(std::string_view text);
// "12,345": process or thread numbers, each once, in the order given.
Result<std::vector<int>> parse_id_list(std::string_view text);

// What the options -a, -C, -p and -t say together; an error names the two that exclude each other. Without
// any of them the command is watched, or the whole system when there is none either, as perf does.
struct TargetOptions {
  bool all_cpus = false;
  std::vector<int> cpus, processes, threads;
};
Result<Target> choose_target(const TargetOptions& options, bool has_command);

// The threads that `target` names, of this moment; none for the system and a command. An error names a
// process that does not exist.
Result<std::vector<int>> threads_of(const Target& target);

}  // namespace tacho::record
