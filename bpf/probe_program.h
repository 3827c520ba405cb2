// What a probe finds in registers and memory, as a payload: a small program that is made here, runs at the
// probe's place and writes samples of a bpf-output event. x86-64.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/file.h"
#include "format/payload_schema.h"
#include "format/result.h"

namespace tacho::bpf {

// One value of the payload.
struct ProbeArgument {
  enum class Source : std::uint8_t { Register, Memory, Address, Constant };  // Address: of Memory, itself
  enum class Shape : std::uint8_t { Number, Hex, UserText, KernelText };  // texts: what the value points to

  std::string name;
  Source source = Source::Register;
  Shape shape = Shape::Number;
  std::uint16_t place = 0;  // of the register: bytes into pt_regs
  std::uint8_t shift = 0;   // Register: bits of it below the value
  // Memory: of user space, from what the register holds, or from where the last of `pointers` points: each of
  // them is that far from there, and holds an address.
  std::int32_t displacement = 0;
  std::vector<std::int32_t> pointers = {};
  std::int64_t constant = 0;
  std::uint8_t size = 8;  // 1, 2, 4 or 8 bytes, of a number
  bool is_signed = false;
  bool operator==(const ProbeArgument&) const = default;
};

// Where pt_regs has a register, by any of its names ("rdi", "edi", "di", "dil"), with its bytes; nothing:
// there is none.
struct RegisterPlace {
  std::uint16_t place = 0;
  std::uint8_t size = 8;
};
std::optional<RegisterPlace> register_place(std::string_view name);
// The registers that functions get their arguments in, the first is 1: of the kernel and of user space alike.
std::optional<RegisterPlace> argument_place(std::size_t number);
inline constexpr std::string_view kResultRegister = "rax";
inline constexpr std::size_t kRegisterArguments = 6;

// What a sample holds, and how much of it there may be.
inline constexpr std::size_t kMostProbeArguments = 12, kMostProbeTexts = 4, kProbeTextBytes = 64;
format::PayloadSchema schema_of(const std::string& event, std::span<const ProbeArgument> arguments);

class ProbeProgram {
 public:
  // At most kMostProbeArguments, kMostProbeTexts of them texts. `followed`: a follower's table, and only
  // threads of it are wanted; it must outlive the program. `walk`: a program of the same kind that is to run
  // before the arguments are read, of those threads, and to hand over to reader().
  static Result<ProbeProgram> load(std::span<const ProbeArgument> arguments, std::optional<int> followed,
                                   std::optional<int> walk = std::nullopt);
  // For a condition that runs it (EventFilter), or attached by itself. It keeps the probe's own samples away.
  int fd() const { return start_ ? start_.get() : reader_.get(); }
  int reader() const { return reader_.get(); }
  Result<> attach(int event_fd) const;
  // The bpf-output event of a CPU that the payloads are samples of.
  Result<> put_output(int cpu, int event_fd) const;

 private:
  ProbeProgram() = default;
  format::Fd outputs_, reader_;
  format::Fd start_, next_;  // with `walk`
};

}  // namespace tacho::bpf
