// The unwinder: the BPF program that walks user stacks (programs/stack_walk.h), loaded with its maps, or
// linked into users' objects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bpf/object/object.h"
#include "bpf/programs/stack_maps.h"
#include "bpf/support/libbpf_log.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::bpf {

// The compiled unwinder; empty: tacho was built without clang.
format::Bytes stack_walk_object();
// The same, to be linked into other programs.
format::Bytes linked_walk_object();

// Linked into users' BPF programs, the unwinder writes the user stack before each of their events
// (tacho/event.h, programs/linked_walk.bpf.c).

// The calls in an object that the unwinder replaces.
struct WalkUse {
  bool in_front_of_events = false;  // stacks of events in perf event arrays
  bool in_payloads = false;         // stacks that programs put into payloads
};
WalkUse walk_use_of(format::Bytes object);

// An object with the unwinder linked into it, and the maps that it shares with a StackWalker.
struct LinkedWalk {
  std::vector<std::byte> elf;
  MapsByName maps;
};
// Links them. Without maps, or on an error, `out` is empty.
Result<> link_walker(LinkedWalk& out, format::Bytes object, MapsByName maps);

// Where the unwinder runs: at the overflow of a counter or clock, at a tracepoint, at a probe of the kernel's
// PMUs, or before the program that reads a probe's arguments (probe_program.h).
enum class StackHook : std::uint8_t { Overflow, Tracepoint, Probe, Reader };
inline constexpr std::size_t kStackHooks = 4;

struct StackWalkerOptions {
  std::array<bool, kStackHooks> hooks{true};  // by StackHook: the hooks to attach
  bool reads_mappings = true;                 // from the kernel's structures, if their layout is known
  std::uint32_t most_frames = 127;            // at most TACHO_MOST_FRAMES
  std::uint32_t most_readers = 1;             // numbers of set_reader() are below it
  std::uint32_t most_ranges = 65536;          // of mapped code in all processes
  std::uint32_t most_processes = 4096;
  bool only_recorded_tasks = false;  // at tracepoints and probes
};

class StackWalker {
 public:
  static Result<StackWalker> load(const StackWalkerOptions& options, const Log& log);
  StackWalker(StackWalker&&) noexcept;
  StackWalker& operator=(StackWalker&&) noexcept;
  StackWalker(const StackWalker&) = delete;
  StackWalker& operator=(const StackWalker&) = delete;
  ~StackWalker();  // detaches

  // Attaches the unwinder: a record (tacho_stack_record) precedes each sample of the event, as long as the
  // result or the event is open.
  Result<format::Fd> attach(StackHook hook, int event_fd);
  // The program for a hook, for other programs to call.
  int program(StackHook hook) const;
  // Sets the program that StackHook::Reader tail-calls at a probe with this attach cookie.
  Result<> set_reader(std::uint32_t number, int program);
  // The maps for link_walker().
  MapsByName maps() const;
  // Sets the bpf-output event of a CPU for the records.
  Result<> put_output(int cpu, int event_fd);

  // Whether the unwinder reads mappings from the kernel's structures: then it only asks for the module
  // numbers of files. Otherwise it needs ranges and set_process().
  bool reads_mappings() const;
  // Readable when there are file requests; each file is requested once, until remove_file().
  int file_requests_fd() const;
  void take_file_requests(const std::function<void(const tacho_file_request&)>& sink);
  Result<> set_file(const tacho_file_key& file, std::uint32_t module);
  void remove_file(const tacho_file_key& file);

  // Samples of counters and clocks for which the program ran.
  std::uint64_t samples() const;

  // Enables copies of stacks that lead to code without a table, up to 16 MiB, for deferred unwinding.
  void enable_copies();
  // Calls `sink` for each struct tacho_stack_copy, cut to its used bytes. Copies come before the records that
  // refer to them. False: there was no memory for one.
  bool take_copies(const std::function<void(format::Bytes)>& sink);

  // Maps as shared memory, which the program reads meanwhile.
  std::span<tacho_code_range> ranges() const;
  std::span<tacho_unwind_module> modules() const;
  // The time that the program stores in modules that it uses.
  void set_now(std::uint32_t now);
  // Allocates TACHO_SEGMENT_BLOCKS more blocks, which are numbered after the earlier ones. Takes some
  // milliseconds.
  Result<std::span<tacho_unwind_block>> add_segment();

  // Sets the ranges of a process. Any thread may call it.
  Result<> set_process(std::uint32_t process, tacho_process_ranges ranges);
  void remove_process(std::uint32_t process);

 private:
  struct State;
  explicit StackWalker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::bpf
