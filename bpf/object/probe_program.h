// Assembles the BPF program of a probe with arguments, which copies registers and memory into a payload, or
// counts hits in a map.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/object/summary_layout.h"
#include "bpf/rings/map_reader.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"

namespace tacho::bpf {

// One value of the payload.
struct ProbeArgument {
  enum class Source : std::uint8_t {
    Register,
    Memory,
    Address,  // that Memory would read from
    Constant,
    Record,  // a tracepoint's, at `displacement`: a number, a text (`size` 1), or a __data_loc text (`size`
             // 4)
  };
  enum class Shape : std::uint8_t { Number, Hex, UserText, KernelText };  // texts: what the value points to

  std::string name;
  Source source = Source::Register;
  Shape shape = Shape::Number;
  std::uint16_t register_offset = 0;  // in pt_regs
  std::uint8_t shift = 0;             // Register: the value's lowest bit
  // Memory: begins with the register's value; for each of `pointers`, in order, reads the pointer at that
  // value plus pointers[i]; then reads user memory at the value plus `displacement`.
  std::int32_t displacement = 0;
  std::vector<std::int32_t> pointers = {};
  std::int64_t constant = 0;
  std::uint8_t size = 8;  // 1, 2, 4 or 8 bytes, of a number
  bool is_signed = false;
  bool operator==(const ProbeArgument&) const = default;
};

inline bool is_text(const ProbeArgument& argument) {
  return argument.shape == ProbeArgument::Shape::UserText ||
         argument.shape == ProbeArgument::Shape::KernelText;
}

// Offset in pt_regs and size of a register, by any of its names ("rdi", "edi", "di", "dil"; "x0", "w0").
// Nothing: unknown name.
struct RegisterField {
  std::uint16_t offset = 0;
  std::uint8_t size = 8;
};
std::optional<RegisterField> register_field(std::string_view name);
// The register of a function's argument, from 1 on, in the kernel and in user space.
std::optional<RegisterField> argument_register(std::size_t number);
#ifdef __aarch64__
inline constexpr std::string_view kResultRegister = "x0", kStackRegister = "sp";
inline constexpr std::size_t kRegisterArguments = 8;
#else
inline constexpr std::string_view kResultRegister = "rax", kStackRegister = "rsp";
inline constexpr std::size_t kRegisterArguments = 6;
#endif

// The payload of a sample, and its largest size.
inline constexpr std::size_t kMostProbeArguments = 12, kMostProbeTexts = 4, kProbeTextBytes = 64;
format::PayloadSchema schema_of(const std::string& event, std::span<const ProbeArgument> arguments);

// Counts hits in the kernel instead of writing samples: by process, by the first `keys` arguments, and by the
// keys chosen here. With `has_value`, the next argument is a number, summed and counted in a log2 histogram.
struct ProbeSum {
  std::size_t keys = 0;
  bool has_value = false;
  bool by_thread = false, by_cpu = false, by_name = false;
  bool operator==(const ProbeSum&) const = default;
};
SummaryLayout layout_of_probe(const std::string& event, std::span<const ProbeArgument> arguments,
                              const ProbeSum& sum);

// What a program does at its probe.
struct ProbeTask {
  enum class Hook : std::uint8_t { Probe, Tracepoint };
  Hook hook = Hook::Probe;
  std::span<const ProbeArgument> arguments;    // at most kMostProbeArguments, kMostProbeTexts of them texts
  std::span<const FilterStep> condition = {};  // members: of schema_of()
  // A follower's table, to record only its threads; it must outlive the program.
  std::optional<int> followed = {};
  // A program that walks the user stack: it runs first if the condition holds, and ends with a tail call to
  // reader().
  std::optional<int> walk = {};
  std::optional<ProbeSum> sum = {};
};

class ProbeProgram {
 public:
  static Result<ProbeProgram> load(const ProbeTask& task);
  // The program to attach. It suppresses a probe's own samples, but not a tracepoint's.
  int fd() const { return start_ ? start_.get() : reader_.get(); }
  int reader() const { return reader_.get(); }
  Result<> attach(int event_fd) const;
  // Sets the bpf-output event for payloads of one CPU. Does nothing if hits are counted.
  Result<> put_output(int cpu, int event_fd) const;

  // If hits are counted: the map's entries (layout_of_probe()), and how many hits were lost since the map was
  // full.
  MapReader counts() const;
  std::uint64_t lost() const;

 private:
  ProbeProgram() = default;
  format::Fd outputs_, reader_;
  format::Fd start_, next_;  // with `walk`
  format::Fd lost_;          // if hits are counted; outputs_ is the map of counts then
  MapFacts counted_;
};

}  // namespace tacho::bpf
