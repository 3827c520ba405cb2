// Probes on many functions at once: uprobe.multi and kprobe.multi, or one by one on older kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/support/libbpf_log.h"
#include "format/base/file.h"
#include "format/base/result.h"

struct bpf_link;
struct bpf_program;

namespace tacho::bpf {

// Functions to probe: file offsets, or kernel addresses.
struct FunctionTargets {
  std::string path;
  std::vector<std::uint64_t> offsets;
  // Indexes of the targets whose arguments differ from the source's: copies that a compiler changed.
  std::vector<std::uint64_t> changed_copies = {};
  std::vector<std::string> names;  // as many; or none, for programs that take all of them
  // As many, or none: names of the functions, for messages. Cookies have the index in this list, from 1,
  // from kNumberBit on.
  std::vector<std::string> called = {};
  static constexpr unsigned kNumberBit = 8;
  int process = -1;                    // probes only its calls; -1: of all that use the file
  bool in_kernel = false;              // there is no path (kernel_probes.h)
  bool one_by_one = false;             // kernel functions, on a kernel without kprobe.multi
  std::vector<std::uint64_t> cookies;  // as many as offsets, for programs that take all of them; or none: 0
  bool entries_only = false;           // programs for returns stay idle
  std::string tracepoint = {};  // "sched/sched_switch" instead of functions (section.h: kNamedTracepoint)
  Log log = {};                 // kernel functions: how long attaching and detaching took
  Log notice = {};              // kernel functions: that detaching will take long
};

// Result of the program's bpf_get_attach_cookie(): for programs that name their functions
// ("uprobe.multi/$lib:malloc,free") the number of the name, otherwise the target's.
struct ChosenFunctions {
  std::vector<std::uint64_t> offsets, cookies;
};
// The targets that the section's target names; all of them when it names none.
ChosenFunctions chosen_functions(const FunctionTargets& targets, std::string_view section_target);

// The targets with indexes [begin, end).
ChosenFunctions part_of(const ChosenFunctions& functions, std::size_t from, std::size_t to);

enum class FunctionEnd : std::uint8_t { Entry, Return };

// BPF_TRACE_UPROBE_MULTI, which is newer than Debian 12's headers.
constexpr std::uint32_t kFunctionsAttachType = 48;

// Closing the result detaches all of them. An error has the kernel's errno.
Result<format::Fd> probe_functions(int program_fd, const FunctionTargets& targets,
                                   const ChosenFunctions& functions, FunctionEnd end);

// Destroying it detaches.
struct DestroyLink {
  void operator()(bpf_link* link) const noexcept;
};
using ProbeLink = std::unique_ptr<bpf_link, DestroyLink>;

// One perf event with a uprobe for each function, on kernels before Linux 6.6. Functions that cannot be
// probed are left out. An error has the kernel's errno.
Result<std::vector<ProbeLink>> probe_one_by_one(const bpf_program* program, const FunctionTargets& targets,
                                                const ChosenFunctions& functions, FunctionEnd end);

// One program on many kernel functions: with one kprobe.multi link (Linux 5.18 with CONFIG_FPROBE), or with a
// kprobe for each (Linux 5.15).

// Whether this kernel has kprobe.multi, tried with a function that the kernel has for tests.
bool takes_functions_together();
// Whether it takes kprobes of single functions. The error says what is missing.
Result<> takes_functions_one_by_one();

// Meaning of the kernel's errno when it attaches no probes: it was interrupted, it would be the same with
// other functions (rights, memory, descriptors), or it takes none of this function.
enum class ProbeRefusal : std::uint8_t { Passing, OfAll, OfFunction };
ProbeRefusal probe_refusal(int code);

// Attaches probes to the functions through `link`, whose errors have the kernel's errno: to all together,
// or to parts of them where it refuses some. Refused functions are left out, and their number is returned;
// transient refusals are tried again, a few times. An error when the kernel would refuse any function.
using LinkFunctions = std::function<Result<format::Fd>(const ChosenFunctions&)>;
Result<std::size_t> link_functions(const ChosenFunctions& functions, const LinkFunctions& link,
                                   std::vector<format::Fd>& links);

// Attached probes; detached on destruction.
class KernelProbes {
 public:
  KernelProbes() = default;
  KernelProbes(KernelProbes&&) = default;
  KernelProbes& operator=(KernelProbes&&) = default;
  KernelProbes(const KernelProbes&) = delete;
  KernelProbes& operator=(const KernelProbes&) = delete;
  // Detaches the probes. For each single probe the kernel waits for all CPUs several times; with many probes
  // FunctionTargets::notice is called before.
  ~KernelProbes();

  // Attaches the program to the functions in `targets`, with their cookies. Functions that the kernel
  // refuses are left out and counted; an error (with the kernel's errno) when it refuses all of them.
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
