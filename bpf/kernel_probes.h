// One program on many functions of the kernel: all together (kprobe.multi: Linux 5.18 with CONFIG_FPROBE), or
// a probe for each (Linux 5.15).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "bpf/function_probes.h"
#include "bpf/log.h"
#include "format/file.h"
#include "format/result.h"

namespace tacho::bpf {

// Whether this kernel takes them together, found by putting a program on a function that it has for tests.
bool takes_functions_together();
// Whether it takes probes of single functions. The error says what it lacks.
Result<> takes_functions_one_by_one();

// What the kernel means by an errno when it puts on no probes: that it was disturbed, that it would be the
// same with others (rights, memory, descriptors), or that it takes none of this function.
enum class ProbeRefusal : std::uint8_t { Passing, OfAll, OfFunction };
ProbeRefusal probe_refusal(int code);

// Puts probes on the functions by `link`, whose errors have the kernel's errno: on all together, or on parts
// of them where it refuses some. Those are left out, and their number is returned; what is refused in passing
// is tried again, a few times. An error when the kernel would refuse any function.
using LinkFunctions = std::function<Result<format::Fd>(const ChosenFunctions&)>;
Result<std::size_t> link_functions(const ChosenFunctions& functions, const LinkFunctions& link,
                                   std::vector<format::Fd>& links);

// Probes that are there as long as this lives.
class KernelProbes {
 public:
  KernelProbes() = default;
  KernelProbes(KernelProbes&&) = default;
  KernelProbes& operator=(KernelProbes&&) = default;
  KernelProbes(const KernelProbes&) = delete;
  KernelProbes& operator=(const KernelProbes&) = delete;
  // Takes them off. The kernel waits for all CPUs several times for each single probe; where there are many
  // FunctionTargets::notice says so before.
  ~KernelProbes();

  // Puts the program on the functions in `targets`, with their cookies. Those that the kernel refuses are
  // left out and counted; it is an error (with the kernel's errno) when it refuses all of them.
  Result<> add(int program_fd, const FunctionTargets& targets, FunctionEnd end);
  // Functions that were left out, by the program that has most of them.
  std::size_t refused() const { return refused_; }

 private:
  Result<std::size_t> add_together(int program_fd, const ChosenFunctions& functions, FunctionEnd end);
  Result<std::size_t> add_one_by_one(int program_fd, const ChosenFunctions& functions, FunctionEnd end);

  std::vector<format::Fd> links_;
  std::size_t refused_ = 0, functions_ = 0;
  bool is_one_by_one_ = false;
  Log log_, notice_;
};

}  // namespace tacho::bpf
