// The BPF programs that are loaded now, whoever loaded them: where they are attached, who holds them, what
// they cost.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/file.h"
#include "format/result.h"

namespace tacho::bpf {

struct ListedProgram {
  std::uint32_t id = 0;
  std::string type, name;       // "tracing"; the function's name, else the 15 letters that the kernel keeps
  std::string tag;              // 16 hexadecimal digits
  std::uint32_t loaded_by = 0;  // user id
  std::uint32_t translated_bytes = 0, machine_bytes = 0;
  std::uint64_t runs = 0, nanoseconds = 0;  // counted while statistics were on
  std::uint64_t skipped = 0;                // runs that the kernel left out, as one was under way on that CPU
  std::vector<std::string> places;          // "tracepoint sys_enter_read", "tp_btf sched_switch"; each once
  std::vector<std::string> holders;         // "tacho-record (4711)"; each once
};

// The error says what right is missing.
Result<std::vector<ListedProgram>> list_programs();

// While it is open the kernel counts how often every program runs, and for how long: some 20 ns a run.
Result<format::Fd> count_runs();

// What programs did in a stretch of time, by id. Turns the kernel's statistics on for that long.
struct Cost {
  std::uint64_t runs = 0, nanoseconds = 0;
};
Result<std::map<std::uint32_t, Cost>> measure_programs(std::chrono::milliseconds stretch);

}  // namespace tacho::bpf
