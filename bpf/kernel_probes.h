// One program on many functions of the kernel: all together (kprobe.multi: Linux 5.18 with CONFIG_FPROBE), or
// a probe for each (Linux 5.15).
#pragma once

#include <cstddef>
#include <vector>

#include "bpf/function_probes.h"
#include "bpf/log.h"
#include "format/file.h"
#include "format/result.h"

namespace tacho::bpf {

// Whether this kernel takes them together, found by putting a program on a function that it has for tests.
bool takes_functions_together();

// Probes that are there as long as this lives.
class KernelProbes {
 public:
  KernelProbes() = default;
  KernelProbes(KernelProbes&&) = default;
  KernelProbes& operator=(KernelProbes&&) = default;
  KernelProbes(const KernelProbes&) = delete;
  KernelProbes& operator=(const KernelProbes&) = delete;
  // Takes them off. The kernel waits for all CPUs several times for each single probe; where there are many
  // it is asked to hurry (/sys/kernel/rcu_expedited) as long as that takes.
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
  format::Fd expedited_;
  std::size_t refused_ = 0, functions_ = 0;
  Log log_;
};

}  // namespace tacho::bpf
