// One BPF object: checked as an ELF file, opened by libbpf, loaded and attached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpf/attach/function_probes.h"
#include "bpf/attach/raw_program.h"
#include "bpf/rings/map_reader.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/section.h"
#include "format/base/cursor.h"
#include "format/base/elf.h"
#include "format/base/result.h"

namespace tacho::bpf {

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t flags = 0;
  format::Bytes content;  // empty for SHT_NOBITS
};

// Points into the bytes from which it was parsed.
struct ElfObject {
  std::vector<ElfSection> sections;
  std::vector<format::ElfSymbol> symbols;

  const ElfSection* find_section(std::string_view name) const;
};

// Checks the file before libbpf reads it, whose messages do not say what is wrong. An error if it is not an
// ELF object for BPF of this byte order.
Result<ElfObject> parse_elf_object(format::Bytes file);
// An error if maps are in the section "maps", as for older libbpf; its text has the new definition of the
// first map.
Result<> refuse_legacy_maps(const ElfObject& object);

// Name of the object in the kernel: "bigreads" for "./examples/bigreads.bpf.c".
std::string object_name(const std::string& path);

// Maps by name, with their descriptors.
using MapsByName = std::vector<std::pair<std::string, int>>;

struct Program {
  std::string name;
  std::string section;    // without libbpf's '?'
  bool optional = false;  // had the '?'
};

// Why the kernel or libbpf refused a program, or, if `program` is empty, the whole object.
struct Refusal {
  std::string program;
  int code = 0;  // errno
  std::string reason;
};

// A program as the kernel runs it.
struct RunningProgram {
  std::uint32_t id = 0;
  std::uint64_t recursion_misses = 0;
};

// A BPF object in libbpf. Errors have libbpf's and the verifier's messages.
class Object {
 public:
  // `name` is its name in the kernel; nothing is loaded yet.
  static Result<Object> open(format::Bytes elf, const std::string& name, const Log& log);
  Object(Object&&) noexcept;
  Object& operator=(Object&&) noexcept;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object();  // detaches

  const std::vector<Program>& programs() const;  // in the object's order
  std::vector<std::string> perf_event_arrays() const;
  std::vector<std::string> ring_buffers() const;
  std::vector<std::string> stack_maps() const;

  // Whether it can make perf events on its tracepoint miss samples (kernel_btf.h).
  bool may_drop_events(std::size_t program) const;

  // Whether it writes to the kernel's trace pipe: bpf_printk(), bpf_trace_printk().
  bool prints(std::size_t program) const;

  // Sets the functions for programs of Hook::Functions; before attach().
  void follow_functions(FunctionTargets targets);

  // Whether to load a program; before load().
  void want(std::size_t program, bool wanted);
  // The initial bytes of a variable in section .rodata, to be changed before load(); empty: no such variable.
  std::span<std::byte> constant(std::string_view name);

  // Sets a variable of 32 or 64 bits, if there is one.
  void set_number(std::string_view name, std::uint64_t value);
  bool has_map(const std::string& name) const;
  // Replaces maps of the object by the caller's.
  Result<> replace_maps(const MapsByName& maps);

  std::optional<Refusal> load(const Log& log);
  // Attaches a program as its section says.
  std::optional<Refusal> attach(std::size_t program, const Section& section);
  // How many of the functions the kernel could not probe.
  std::size_t unprobed_functions() const;
  // Runs a program of Hook::AtEnd or Hook::Iterator once.
  Result<> run_program(std::size_t program, RunUntil until) const;
  // Attaches a program of section "perf_event" to an open event, which the caller enables. It stays attached
  // until the link is closed; before Linux 5.15 there is no link, and it stays until the event is closed.
  Result<format::Fd> attach_to_event(std::size_t program, int event_fd);
  // Sets an entry of a map; after load().
  Result<> put_entry(const std::string& map, format::Bytes key, format::Bytes value) const;
  // Puts an event's descriptor into a slot of a perf event array.
  Result<> put_event(const std::string& map, int cpu, int event_fd);
  // Before and after load(); nothing: no such map.
  std::optional<MapFacts> map_facts(const std::string& map) const;
  // After load().
  Result<MapReader> open_map(const std::string& map) const;
  Result<Ring> open_ring(const std::string& map) const;
  // The current value of a 64-bit variable in section .bss; nothing: no such variable.
  std::optional<std::uint64_t> counter(std::string_view name) const;
  // Sets a variable of 32 bits in section .bss, if there is one.
  void set_variable(std::string_view name, std::uint32_t value);
  std::optional<RunningProgram> running(std::size_t program) const;

 private:
  // Attaches a program of Hook::Functions: with one multi link, or with a link for each function on kernels
  // before 6.6.
  std::optional<Refusal> attach_to_functions(std::size_t program, const Section& section);
  int probe_in_parts(std::size_t program, const ChosenFunctions& functions, std::size_t& left_out);

  struct State;
  explicit Object(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::bpf
