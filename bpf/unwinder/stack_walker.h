// The BPF program that walks users' stacks (programs/stack_walk.h), loaded with its maps, and linked into
// users' objects.
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

// Empty when tacho was built without a clang.
format::Bytes stack_walk_object();
// The same as programs of others run it.
format::Bytes linked_walk_object();

// The unwinder, linked into users' BPF programs: their events have the user's stack before them then
// (tacho/event.h, programs/linked_walk.bpf.c).

// Calls in an object's programs that the unwinder replaces.
struct WalkUse {
  bool in_front_of_events = false;  // of each that goes into a perf event array
  bool in_payloads = false;         // stacks that they ask for themselves
};
WalkUse walk_use_of(format::Bytes object);

// An object with the unwinder in it, and the maps that it shares with a StackWalker.
struct LinkedWalk {
  std::vector<std::byte> elf;
  MapsByName maps;
};
// Fails where libbpf cannot link the two. Without maps nothing is linked. `out` is empty then, and on
// failure.
Result<> link_walker(LinkedWalk& out, format::Bytes object, MapsByName maps);

// The BPF program that walks users' stacks, loaded, with its maps as memory (layouts:
// bpf/programs/stack_maps.h). x86-64, Linux 5.17.

// What writes the samples of an event: the overflow of a counter or clock, a tracepoint, a probe of the
// kernel's PMUs, or a program at such a probe that reads its arguments (probe_program.h).
enum class StackHook : std::uint8_t { Overflow, Tracepoint, Probe, Reader };
inline constexpr std::size_t kStackHooks = 4;

struct StackWalkerOptions {
  std::array<bool, kStackHooks> hooks{true};  // by StackHook: the hooks to attach
  bool reads_mappings = true;                 // from the kernel's own structures, where they are known
  std::uint32_t most_frames = 127;            // of a walk; at most TACHO_MOST_FRAMES
  std::uint32_t most_readers = 1;             // of set_reader()
  std::uint32_t most_ranges = 65536;          // of mapped code, of all processes
  std::uint32_t most_processes = 4096;
  bool skips_strangers = false;  // programs on tracepoints and probes: only tasks that are watched
};

class StackWalker {
 public:
  static Result<StackWalker> load(const StackWalkerOptions& options, const Log& log);
  StackWalker(StackWalker&&) noexcept;
  StackWalker& operator=(StackWalker&&) noexcept;
  StackWalker(const StackWalker&) = delete;
  StackWalker& operator=(const StackWalker&) = delete;
  ~StackWalker();  // detaches

  // From now on a record (tacho_stack_record) comes before each sample of the event, as long as the result
  // lives, or the event does.
  Result<format::Fd> attach(StackHook hook, int event_fd);
  // The program of that, for others to run it.
  int program(StackHook hook) const;
  // Program that Reader tail-calls at a probe that it was attached to with this number (raw_program.h).
  Result<> set_reader(std::uint32_t number, int program);
  // For programs of others that run the walk themselves (walk_link.h).
  MapsByName maps() const;
  // The bpf-output event of a CPU that the records are written by.
  Result<> put_output(int cpu, int event_fd);

  // Whether the program reads the mappings of processes from the kernel. Then it asks only which modules
  // files are; otherwise it needs ranges and set_process().
  bool reads_mappings() const;
  // Readable when there are questions; every one is handed out once, until the file is removed.
  int questions_fd() const;
  void take_questions(const std::function<void(const tacho_file_question&)>& sink);
  Result<> set_file(const tacho_file_key& file, std::uint32_t module);
  void remove_file(const tacho_file_key& file);

  // From now on stacks that lead to code without a table are copied, up to 16 MiB of them, for the recorder
  // to finish.
  void let_copy();
  // Hands out a struct tacho_stack_copy with fewer bytes, for each; they come before the records that name
  // them. False: there was no memory for one.
  bool take_copies(const std::function<void(format::Bytes)>& sink);

  // Maps as memory, which the program reads at the same time.
  std::span<tacho_code_range> ranges() const;
  std::span<tacho_unwind_module> modules() const;
  // The program notes it in modules that it uses.
  void set_now(std::uint32_t now);
  // Memory for more blocks: TACHO_SEGMENT_BLOCKS of them, whose numbers follow those before. The kernel takes
  // some milliseconds, or tens.
  Result<std::span<tacho_unwind_block>> add_segment();

  // Which of the ranges are a process's. From any thread.
  Result<> set_process(std::uint32_t process, tacho_process_ranges ranges);
  void remove_process(std::uint32_t process);

 private:
  struct State;
  explicit StackWalker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::bpf
