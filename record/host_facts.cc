#include "record/host_facts.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <cstring>
#include <optional>
#include <string_view>

#include "bpf/compile.h"
#include "bpf/kernel_support.h"
#include "bpf/stack_walker.h"
#include "format/file.h"
#include "format/perf_abi.h"
#include "record/events/cgroup.h"
#include "record/host/running_kernel.h"
#include "record/kernel/perf_event.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// With the rights that are in effect: access(2) does not count the capabilities of who is not root.
bool can_access(const std::string& path, int how) {
  return faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0;
}
bool exists(const std::string& path) { return can_access(path, F_OK); }

std::string text_of(const std::string& path) {
  const auto bytes = format::read_file(path);
  return bytes ? std::string(format::as_text(*bytes)) : std::string();
}

std::uint64_t number_of(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

std::uint64_t held_capabilities() {
  const std::string status = text_of("/proc/self/status");
  constexpr std::string_view kField = "\nCapEff:\t";
  const auto at = status.find(kField);
  return at == std::string::npos ? 0 : number_of(std::string_view(status).substr(at + kField.size()), 16);
}

// "none [integrity] confidentiality": the one in brackets.
std::string lockdown_of(const std::string& text) {
  const auto begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end == std::string::npos ? ""
                                                                : text.substr(begin + 1, end - begin - 1);
}

std::string refusal_of(const PlannedEvent& event, int task, int cpu) {
  const auto fd = open_event(event, task, cpu);
  return fd ? std::string() : std::strerror(fd.error().code);
}

void try_events(HostFacts& facts) {
  PlannedEvent event = trial_clock();
  const int cpu = facts.host.online_cpus.empty() ? 0 : facts.host.online_cpus.front();
  facts.system_refusal = refusal_of(event, -1, cpu);
  facts.kernel_refusal = refusal_of(event, 0, -1);
  event.attr.flags |= abi::kExcludeKernel | abi::kExcludeHv;
  facts.own_refusal = refusal_of(event, 0, -1);
  PlannedEvent cycles = event;
  cycles.attr.type = abi::kHardware;
  cycles.attr.config = 0;
  facts.hardware_refusal = refusal_of(cycles, 0, -1);
  PlannedEvent newer = event;
  newer.attr.read_format |= abi::kReadLost;
  facts.counts_losses = refusal_of(newer, 0, -1).empty();
  newer = event;
  newer.attr.flags |= abi::kMmap | abi::kMmap2 | abi::kBuildId;
  facts.has_build_ids = refusal_of(newer, 0, -1).empty();
  const format::Fd root = [&] {
    auto opened = facts.cgroup_mount.empty() ? Result<format::Fd>(Error{"not mounted"})
                                             : open_cgroup(facts.cgroup_mount, "/");
    return opened ? std::move(*opened) : format::Fd();
  }();
  event = trial_clock();
  event.cgroup = root.get();
  facts.cgroup_refusal = root ? refusal_of(event, -1, cpu) : "no cgroup file system is mounted";
}

void look_at_names(HostFacts& facts) {
  for (const char* folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (!facts.tracefs.empty() || !exists(std::string(folder) + "/events")) continue;
    facts.tracefs = folder;
    facts.can_read_tracefs = can_access(facts.tracefs + "/events/sched/sched_switch/format", R_OK);
  }
  // Users who may not even look into the folder see nothing in it, mounted or not.
  if (facts.tracefs.empty() && text_of("/proc/self/mountinfo").find(" - tracefs ") != std::string::npos)
    facts.tracefs = "/sys/kernel/tracing";
  facts.shows_kernel_symbols = find_kernel_text(text_of("/proc/kallsyms")).has_value();
  facts.kptr_restrict = static_cast<int>(number_of(text_of("/proc/sys/kernel/kptr_restrict")));
  facts.has_btf = can_access("/sys/kernel/btf/vmlinux", R_OK);
}

std::uint64_t hard_limit(decltype(RLIMIT_NOFILE) which) {
  rlimit limit{};
  return getrlimit(which, &limit) == 0 ? limit.rlim_max : 0;
}

}  // namespace

HostFacts look_at_host() {
  HostFacts facts;
  const auto [release, machine] = bpf::kernel_name();
  facts.kernel = release;
  facts.machine = machine;
  std::array<char, PATH_MAX> self{};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  if (length > 0) facts.program.assign(self.data(), static_cast<std::size_t>(length));
  facts.is_root = geteuid() == 0;
  facts.capabilities = held_capabilities();
  facts.lockdown = lockdown_of(text_of("/sys/kernel/security/lockdown"));
  if (auto host = read_host()) facts.host = std::move(*host);
  const std::string mounts = text_of("/proc/self/mountinfo");
  facts.cgroup_mount = cgroup_mount(mounts);
  facts.has_cgroups_v1 = mounts.find(" " + facts.cgroup_mount + " ") != std::string::npos &&
                         !exists(facts.cgroup_mount + "/cgroup.controllers");
  try_events(facts);
  look_at_names(facts);
  facts.has_kprobes = exists("/sys/bus/event_source/devices/kprobe/type");
  facts.has_uprobes = exists("/sys/bus/event_source/devices/uprobe/type");
  facts.programs = bpf::try_programs();
  if (const auto walker = bpf::StackWalker::load({}, {}); !walker)
    facts.unwinding_refusal = walker.error().what;
  if (auto clang = bpf::find_clang()) facts.clang = std::move(*clang);
  facts.ring_kib = number_of(text_of("/proc/sys/kernel/perf_event_mlock_kb"));
  facts.locked_bytes = hard_limit(RLIMIT_MEMLOCK);
  facts.descriptors = hard_limit(RLIMIT_NOFILE);
  return facts;
}

}  // namespace tacho::record
