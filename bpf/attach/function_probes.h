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

// Where functions begin: in bytes of the file, or as addresses of the kernel.
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
  bool one_by_one = false;             // in the kernel, which does not take them together
  std::vector<std::uint64_t> cookies;  // as many as offsets, for programs that take all of them; or none: 0
  bool entries_only = false;           // programs for returns stay idle
  std::string tracepoint = {};         // "sched/sched_switch": in their place (section.h: kNamedTracepoint)
  Log log = {};                        // in the kernel: how long it took to put them on and off
  Log notice = {};                     // in the kernel: that taking them off will take long
};

// Result of the program's bpf_get_attach_cookie(): for programs that name their functions
// ("uprobe.multi/$lib:malloc,free") the number of the name, otherwise the target's.
struct ChosenFunctions {
  std::vector<std::uint64_t> offsets, cookies;
};
// The targets that the section's target names; all of them when it names none.
ChosenFunctions chosen_functions(const FunctionTargets& targets, std::string_view section_target);

// Some of them, from one place to before another.
ChosenFunctions part_of(const ChosenFunctions& functions, std::size_t from, std::size_t to);

enum class FunctionEnd : std::uint8_t { Entry, Return };

// The attach type of such programs, which is the kernel's to give and newer than our headers.
constexpr std::uint32_t kFunctionsAttachType = 48;

// Closing the result detaches all of them. An error has the kernel's errno.
Result<format::Fd> probe_functions(int program_fd, const FunctionTargets& targets,
                                   const ChosenFunctions& functions, FunctionEnd end);

// Destroying it detaches.
struct DestroyLink {
  void operator()(bpf_link* link) const noexcept;
};
using ProbeLink = std::unique_ptr<bpf_link, DestroyLink>;

// A probe for each, on kernels that cannot do that (before Linux 6.6). Functions that cannot be probed are
// left out. An error has the kernel's errno.
Result<std::vector<ProbeLink>> probe_one_by_one(const bpf_program* program, const FunctionTargets& targets,
                                                const ChosenFunctions& functions, FunctionEnd end);

// One program on many functions of the kernel: all together (kprobe.multi: Linux 5.18 with CONFIG_FPROBE), or
// a probe for each (Linux 5.15).

// Whether this kernel takes them together, found by putting a program on a function that it has for tests.
bool takes_functions_together();
// Whether it takes probes of single functions. The error says what is missing.
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
