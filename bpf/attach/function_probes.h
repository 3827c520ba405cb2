// Probes on many functions at once: uprobe.multi and kprobe.multi, or one by one on older kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"
#include "format/base/file.h"
#include "format/base/result.h"

struct bpf_program;  // libbpf's

namespace tacho::bpf {

// Functions to probe: file offsets, or kernel addresses.
struct FunctionTargets {
  std::string path;
  std::vector<std::uint64_t> offsets;
  // Indexes of targets whose arguments differ from the source's (copies made by the compiler).
  std::vector<std::uint64_t> changed_copies = {};
  std::vector<std::string> names;  // one for each target; or empty, for programs that probe all targets
  // Names of the functions for messages: one for each target, or empty. The bits of a cookie from kNumberBit
  // on are the index in this list, from 1 on.
  std::vector<std::string> shown_names = {};
  static constexpr unsigned kNumberBit = 8;
  int process = -1;                    // only calls of this process; -1: of all
  bool in_kernel = false;              // kernel functions: there is no path
  bool one_by_one = false;             // kernel functions, without kprobe.multi
  std::vector<std::uint64_t> cookies;  // one for each offset; empty: 0
  bool entries_only = false;           // no return probes
  std::string tracepoint = {};  // "sched/sched_switch" instead of functions (section.h: kNamedTracepoint)
  Log log = {};                 // kernel functions: how long attaching and detaching took
  Log notice = {};              // kernel functions: that detaching will take long
};

// The functions of one program, with cookies (bpf_get_attach_cookie()). The cookie is the number of the name
// if the section names functions ("uprobe.multi/$lib:malloc,free"), else the target's cookie.
struct ChosenFunctions {
  std::vector<std::uint64_t> offsets, cookies;
};
// The targets named in the section; all of them if it names none.
ChosenFunctions chosen_functions(const FunctionTargets& targets, std::string_view section_target);

// The functions with indexes [from, to).
ChosenFunctions part_of(const ChosenFunctions& functions, std::size_t from, std::size_t to);

enum class FunctionEnd : std::uint8_t { Entry, Return };

// BPF_TRACE_UPROBE_MULTI, which Debian 12's headers lack.
constexpr std::uint32_t kFunctionsAttachType = 48;

// Attaches uprobe.multi; closing the result detaches. An error has the kernel's errno.
Result<format::Fd> probe_functions(int program_fd, const FunctionTargets& targets,
                                   const ChosenFunctions& functions, FunctionEnd end);

// Before Linux 6.6: a perf event with a uprobe for each function. Functions that cannot be probed are left
// out. An error has the kernel's errno.
Result<std::vector<OwnedLink>> probe_one_by_one(const bpf_program* program, const FunctionTargets& targets,
                                                const ChosenFunctions& functions, FunctionEnd end);

// Whether this kernel has kprobe.multi; tested with a function that exists for tests.
bool has_kprobe_multi();
// Whether it has kprobes for single functions. The error says what is missing.
Result<> check_single_kprobes();

// Attaches probes to the functions by `link`, whose errors have the kernel's errno: to all together, or, if
// that is refused, to parts. Refused functions are left out and counted in the result; transient errors are
// tried again a few times. An error: the kernel refuses all functions.
using LinkFunctions = std::function<Result<format::Fd>(const ChosenFunctions&)>;
Result<std::size_t> link_functions(const ChosenFunctions& functions, const LinkFunctions& link,
                                   std::vector<format::Fd>& links);

// Attached probes of programs on many kernel functions: with one kprobe.multi link (Linux 5.18 with
// CONFIG_FPROBE), or with a kprobe for each (Linux 5.15). Detached on destruction.
class KernelProbes {
 public:
  KernelProbes() = default;
  KernelProbes(KernelProbes&&) = default;
  KernelProbes& operator=(KernelProbes&&) = default;
  KernelProbes(const KernelProbes&) = delete;
  KernelProbes& operator=(const KernelProbes&) = delete;
  // Detaches the probes. For single probes this is slow, since the kernel synchronizes all CPUs for each;
  // with many of them it calls FunctionTargets::notice first.
  ~KernelProbes();

  // Attaches the program to the functions in `targets`, with their cookies. Refused functions are left out
  // and counted; an error (with the kernel's errno) if all are refused.
  Result<> add_program(int program_fd, const FunctionTargets& targets, FunctionEnd end);
  // The number of functions that were left out: of the program with most of them.
  std::size_t refused() const { return refused_; }

 private:
  Result<std::size_t> add_one_by_one(int program_fd, const ChosenFunctions& functions, FunctionEnd end);

  std::vector<format::Fd> links_;
  std::size_t refused_ = 0, functions_ = 0;
  bool is_one_by_one_ = false;
  Log log_, notice_;
};

}  // namespace tacho::bpf
