#include "bpf/function_probes.h"

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace tacho::bpf {
namespace {

// What BPF_LINK_CREATE takes for this attach type, as Linux 6.6 and later have it.
struct LinkAttr {
  std::uint32_t program_fd = 0, target_fd = 0;
  std::uint32_t attach_type = kFunctionsAttachType;
  std::uint32_t flags = 0;
  std::uint64_t path = 0, offsets = 0, counters = 0, cookies = 0;  // addresses
  std::uint32_t count = 0, probe_flags = 0, pid = 0, pad = 0;
};
static_assert(offsetof(LinkAttr, path) == 16 && sizeof(LinkAttr) == 64);

constexpr std::uint32_t kAtReturn = 1;
constexpr int kNotSupportedInKernel = 524;  // ENOTSUPP

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

// Kernels before 6.10 that have probes of this kind took the process for a thread: the calls of its others
// were not seen. Those that do not look at a wrong process before the file are such.
bool keeps_to_processes(int program_fd) {
  const std::uint64_t offset = 0;
  LinkAttr attr;
  attr.program_fd = static_cast<std::uint32_t>(program_fd);
  attr.path = address_of("/");
  attr.offsets = address_of(&offset);
  attr.count = 1;
  attr.pid = ~0U;
  const long link = ::syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
  const int why = errno;
  if (link >= 0) ::close(static_cast<int>(link));
  return link < 0 && why == EINVAL;
}

}  // namespace

ChosenFunctions chosen_functions(const FunctionTargets& targets, std::string_view section_target) {
  if (section_target.empty()) return {targets.offsets, targets.cookies};
  ChosenFunctions chosen;
  std::string_view rest = section_target;
  for (std::uint64_t number = 0; !rest.empty(); ++number) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    const auto found = std::ranges::find(targets.names, name);
    if (found == targets.names.end()) continue;
    chosen.offsets.push_back(targets.offsets[static_cast<std::size_t>(found - targets.names.begin())]);
    chosen.cookies.push_back(number);
  }
  return chosen;
}

Result<format::Fd> probe_functions(int program_fd, const FunctionTargets& targets,
                                   const ChosenFunctions& functions, FunctionEnd end) {
  // The kernel can keep such probes to one process. Who records a command or a process records the
  // processes that it makes, too, which that would lose: so they are in all that use the file, unless one was
  // named.
  LinkAttr attr;
  attr.program_fd = static_cast<std::uint32_t>(program_fd);
  attr.path = address_of(targets.path.c_str());
  attr.offsets = address_of(functions.offsets.data());
  attr.cookies = functions.cookies.empty() ? 0 : address_of(functions.cookies.data());
  attr.count = static_cast<std::uint32_t>(functions.offsets.size());
  attr.probe_flags = end == FunctionEnd::Return ? kAtReturn : 0;
  const bool is_of_one = targets.process > 0 && keeps_to_processes(program_fd);
  attr.pid = is_of_one ? static_cast<std::uint32_t>(targets.process) : 0;
  const long link = ::syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
  if (link < 0) return system_error(targets.path, errno);
  return format::Fd(static_cast<int>(link));
}

ChosenFunctions part_of(const ChosenFunctions& functions, std::size_t from, std::size_t to) {
  const auto cut = [&](const std::vector<std::uint64_t>& all) {
    if (all.empty()) return all;
    return std::vector<std::uint64_t>(all.begin() + static_cast<std::ptrdiff_t>(from),
                                      all.begin() + static_cast<std::ptrdiff_t>(to));
  };
  return {cut(functions.offsets), cut(functions.cookies)};
}

void DestroyLink::operator()(bpf_link* link) const noexcept { bpf_link__destroy(link); }

Result<std::vector<ProbeLink>> probe_one_by_one(const bpf_program* program, const FunctionTargets& targets,
                                                const ChosenFunctions& functions, FunctionEnd end) {
  std::vector<ProbeLink> links;
  for (std::size_t i = 0; i < functions.offsets.size(); ++i) {
    errno = 0;
    bpf_uprobe_opts options{};
    options.sz = sizeof options;
    options.retprobe = end == FunctionEnd::Return;
    options.bpf_cookie = functions.cookies.empty() ? 0 : functions.cookies[i];
    bpf_link* const link =
        bpf_program__attach_uprobe_opts(program, targets.process, targets.path.c_str(),
                                        static_cast<std::size_t>(functions.offsets[i]), &options);
    if (link != nullptr)
      links.emplace_back(link);
    else if (errno != kNotSupportedInKernel)
      return system_error(targets.path, errno);
  }
  return links;
}

}  // namespace tacho::bpf
