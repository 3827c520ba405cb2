// BPF programs loaded in the kernel by any process: where they are attached, which processes hold them, their
// run time, and which of them make perf events lose samples.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/environment.h"

namespace tacho::bpf {

struct ListedProgram {
  std::uint32_t id = 0;
  std::string type, name;       // "tracing"; the function's name, or its first 15 letters without BTF
  std::string tag;              // 16 hexadecimal digits
  std::uint32_t loaded_by = 0;  // user id
  std::uint32_t translated_bytes = 0, machine_bytes = 0;
  std::uint64_t runs = 0, nanoseconds = 0;  // counted while statistics were on
  std::uint64_t skipped = 0;                // recursion misses: the program was already running on that CPU
  std::vector<std::string> attachments;     // "tracepoint sys_enter_read", "tp_btf sched_switch"; each once
  std::vector<std::string> holders;         // processes: "tacho-record (4711)"; each once
};

// The error names the missing right.
Result<std::vector<ListedProgram>> list_programs();

// Program ids and where they are attached, from BPF links alone: faster than list_programs(), which reads the
// descriptors of all processes. Empty without the right to list programs.
std::vector<std::pair<std::uint32_t, std::string>> attachments_by_links();

// Enables BPF_STATS_RUN_TIME while open: the kernel counts runs and run time of all programs, for about 20 ns
// a run.
Result<format::Fd> count_runs();

// Runs and run time of programs in an interval, by id; enables the kernel's statistics meanwhile.
struct Cost {
  std::uint64_t runs = 0, nanoseconds = 0;
};
Result<std::map<std::uint32_t, Cost>> measure_programs(std::chrono::milliseconds interval);

// A BPF program attached to a tracepoint, by any process.
struct TracepointProgram {
  std::uint32_t id = 0;
  std::string name;      // at most 15 letters, not checked
  bool may_drop = true;  // it can make perf events on the tracepoint miss samples (may_drop_events())
};

// The programs on the tracepoint of an open perf event. Empty if the kernel does not list them: without
// CAP_PERFMON, or before Linux 4.16.
std::vector<TracepointProgram> programs_on_tracepoint(int event_fd);

struct LoadedSymbol {
  std::uint64_t address = 0;
  std::uint32_t length = 0;  // bytes
  std::string name;          // "bpf_prog_TAG_NAME", as the kernel's own KSYMBOL records have it
};
// A BPF program loaded before the recording, by any process: the recorder writes KSYMBOL and BPF_EVENT
// records and program info for it, as the kernel does for programs loaded later.
struct LoadedProgram {
  std::uint32_t id = 0;
  std::array<std::uint8_t, 8> tag{};
  std::vector<LoadedSymbol> symbols;  // one for each function
  std::vector<std::uint32_t> maps;    // ids
  format::BpfProgramInfo info;
  format::BtfBlob btf;  // types, perhaps shared with other programs; id 0: none
};

// Needs CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON); the error says so.
Result<std::vector<LoadedProgram>> loaded_programs();

// The maps of the programs, by id. A map that was freed since the programs were read is left out.
std::vector<format::BpfMap> maps_of(std::span<const LoadedProgram> programs);

}  // namespace tacho::bpf
