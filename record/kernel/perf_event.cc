#include "record/kernel/perf_event.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/records/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

Result<> control(const format::Fd& event, unsigned long request, long argument, const char* what) {
  if (ioctl(event.get(), request, argument) == 0) return Done{};
  return system_error(what, errno);
}

std::string no_permission(const PlannedEvent& event, const Host& host) {
  // With perf_event_paranoid 2 a user may sample user code of his own processes.
  const bool user_side_would_do = host.perf_event_paranoid <= 2 && event.attr.type == abi::kSoftware &&
                                  !event.is_sideband && !event.attr.has(abi::kExcludeKernel);
  return "not permitted: kernel.perf_event_paranoid is " + std::to_string(host.perf_event_paranoid) +
         "; run as root or with CAP_PERFMON (tacho doctor prints the setcap command), lower the setting" +
         (user_side_would_do
              ? ", or record user code of your own processes (a COMMAND or -p; without -a, -C, "
                "--all-kernel and :k)"
              : "");
}

struct Refusal {
  int code;
  const char* reason;
};
constexpr Refusal kRefusals[] = {
    {ENOENT, "this kernel or machine does not have the event"},
    {EOPNOTSUPP, "this kernel or machine cannot sample the event"},
    {ENODEV, "this machine does not have the event, or the CPU went offline"},
    {EMFILE, "too many open files: an event needs one for each CPU and thread; raise `ulimit -n`"},
    {ENFILE, "the system has too many open files"},
    {ENOSPC, "the kernel has no slot left for such an event"},
    {ESRCH, "the process or thread has ended"},
    {EINVAL, "the kernel refuses this combination of settings"},
    {ENOSYS, "this kernel has no perf events, or a container forbids them"},
    {EBUSY, "another process has exclusive use of the event"},
};
// For probes: the recorder has found the function or offset before.
constexpr Refusal kProbeRefusals[] = {
    {EINVAL, "this address cannot be probed (it is blacklisted, or not code)"},
    {EILSEQ, "no instruction begins there"},
    {ENOENT, "the kernel does not find this place"},
    {EADDRNOTAVAIL, "several functions have this name; the kernel refuses an ambiguous one"},
};

// The reason for a counter that this machine lacks.
std::string without_counters(const PlannedEvent& event) {
  return "this machine has no counter for it (virtual machines often have none); -e cpu-clock samples by "
         "time" +
         std::string(event.attr.samples(abi::kSampleRead) ? ", alone or as the leader of the group" : "");
}

// Whether the kernel accepts the event with its default clock.
bool refuses_clock(const PlannedEvent& event, int cpu) {
  if (!event.attr.has(abi::kUseClockid)) return false;
  PlannedEvent other = event;
  other.attr.flags &= ~std::uint64_t{abi::kUseClockid};
  other.attr.clockid = 0;
  return static_cast<bool>(open_event(other, cpu < 0 ? 0 : -1, cpu));
}

std::string clock_in_words(int clock) {
  constexpr std::pair<int, std::string_view> kNames[] = {
      {0, "realtime"}, {1, "monotonic"}, {4, "monotonic_raw"}, {7, "boottime"}, {11, "tai"}};
  for (const auto& [number, name] : kNames)
    if (number == clock) return std::string(name);
  return std::to_string(clock);
}

}  // namespace

Result<format::Fd> open_event(const PlannedEvent& event, int task, int cpu, int leader) {
  format::EventAttr attr = event.attr;
  // config1 is a pointer to the probe's text here; the capture has 0.
  if (!event.probe_target.empty())
    attr.config1 = reinterpret_cast<std::uintptr_t>(event.probe_target.c_str());
  // Excludes the user part of the chain: tacho adds it, so the attr in the capture has no such flag.
  if (event.unwound_frames != 0) attr.flags |= format::abi::kExcludeCallchainUser;
  format::ByteWriter bytes;
  format::write_event_attr(bytes, attr, format::size_to_write(attr));
  const bool is_of_cgroup = event.cgroup >= 0;
  const unsigned long flags = PERF_FLAG_FD_CLOEXEC | (is_of_cgroup ? PERF_FLAG_PID_CGROUP : 0UL);
  const long fd = syscall(SYS_perf_event_open, bytes.view().data(), is_of_cgroup ? event.cgroup : task, cpu,
                          leader, flags);
  if (fd < 0) return system_error("perf_event_open", errno);
  return format::Fd(static_cast<int>(fd));
}

Result<format::Fd> open_uninherited_event(int task) {
  PlannedEvent event;
  event.attr.size = format::kCompatibleAttrSize;
  event.attr.type = abi::kSoftware;
  event.attr.config = abi::kDummy;
  event.attr.flags =
      abi::kDisabled | abi::kExcludeKernel | abi::kExcludeHv | abi::kInherit | abi::kInheritThread;
  auto opened = open_event(event, task, -1);
  if (opened || opened.error().code != EINVAL) return opened;
  event.attr.flags &= ~std::uint64_t{abi::kInherit | abi::kInheritThread};
  return open_event(event, task, -1);
}

PlannedEvent trial_clock() {
  PlannedEvent event;
  event.attr.size = format::kCompatibleAttrSize;
  event.attr.type = abi::kSoftware;
  event.attr.config = abi::kCpuClock;
  event.attr.sample_period = 1'000'000;
  event.attr.sample_type = abi::kSampleIp;
  event.attr.flags = abi::kDisabled;
  return event;
}

bool is_kept_out_of_kernel(const Host& host) {
  if (host.perf_event_paranoid < 2) return false;
  PlannedEvent clock = trial_clock();
  const auto whole = open_event(clock, 0, -1);
  if (whole || (whole.error().code != EACCES && whole.error().code != EPERM)) return false;
  clock.attr.flags |= abi::kExcludeKernel | abi::kExcludeHv;
  return static_cast<bool>(open_event(clock, 0, -1));
}

Error explain_refusal(const PlannedEvent& event, int cpu, int code, const Host& host) {
  const std::string place =
      "event '" + event.name + "'" + (cpu < 0 ? "" : " on CPU " + std::to_string(cpu)) + ": ";
  const auto refused = [&](const std::string& reason) { return Error{place + reason, code}; };
  const bool is_unsupported = code == EOPNOTSUPP || code == EINVAL;
  if (code == EINVAL && refuses_clock(event, cpu))
    return refused("the kernel refuses the clock " + clock_in_words(event.attr.clockid) +
                   " (-k) for it: realtime, boottime and tai are for cpu-clock and other software events "
                   "only; monotonic and monotonic_raw are for all");
  if (code == EACCES || code == EPERM) return refused(no_permission(event, host));
  if (code == EINVAL && event.cgroup >= 0)
    return refused("this kernel has no events of cgroups (CONFIG_CGROUP_PERF), or not of this kind");
  if (event.attr.samples(abi::kSampleBranchStack) && is_unsupported)
    return refused(
        "this processor records no branches (LBR), or not for this event; leave out -b, -j and --call-graph "
        "lbr, or record stacks with --call-graph fp or dwarf");
  if (!event.probe_target.empty()) {
    const auto row = std::ranges::find(kProbeRefusals, code, &Refusal::code);
    if (row != std::end(kProbeRefusals)) return refused(event.probe_target + ": " + row->reason);
  }
  if (event.attr.type > abi::kBreakpoint && is_unsupported)
    return refused("its PMU takes no samples (many only count: tacho stat), or only of whole CPUs (-a)");
  const bool is_missing = code == ENOENT || code == EOPNOTSUPP || code == ENODEV;
  const bool is_counter =
      event.attr.type == abi::kHardware || event.attr.type == abi::kHwCache || event.attr.type == abi::kRaw;
  if (is_missing && is_counter) return refused(without_counters(event));
  const auto row = std::ranges::find(kRefusals, code, &Refusal::code);
  if (row != std::end(kRefusals)) return refused(row->reason);
  return system_error(place + "perf_event_open", code);
}

Result<std::uint64_t> id_of_event(const format::Fd& event) {
  std::uint64_t id = 0;
  if (ioctl(event.get(), PERF_EVENT_IOC_ID, &id) == 0) return id;
  return system_error("the id of a perf event", errno);
}

EventRead read_event(const format::Fd& event, const format::EventAttr& attr, std::uint64_t id) {
  // The kernel's limit of one read, 16 KiB, also limits groups.
  std::array<std::uint64_t, 2048> words{};
  const auto size = read(event.get(), words.data(), sizeof words);
  if (size <= 0) return {};
  format::Cursor in(std::as_bytes(std::span(words)).first(static_cast<std::size_t>(size)));
  const std::uint64_t times = attr.read_format & (abi::kReadTimeEnabled | abi::kReadTimeRunning);
  const bool is_group = (attr.read_format & abi::kReadGroup) != 0;
  // A single event: value, times, id, lost. A group: count, times, then value, id and lost of each event.
  EventRead found;
  found.value = in.u64();
  in.skip(static_cast<std::size_t>(std::popcount(times)) * sizeof(std::uint64_t));
  do {
    if (is_group) found.value = in.u64();
    const std::uint64_t event_id = (attr.read_format & abi::kReadId) != 0 ? in.u64() : id;
    found.lost = (attr.read_format & abi::kReadLost) != 0 ? in.u64() : 0;
    if (event_id == id) return in.failed() ? EventRead{} : found;
  } while (!in.failed() && in.left() > 0);
  return {};
}

std::uint64_t lost_by_event(const format::Fd& event, const format::EventAttr& attr, std::uint64_t id) {
  return (attr.read_format & abi::kReadLost) == 0 ? 0 : read_event(event, attr, id).lost;
}

Result<> set_filter(const format::Fd& event, const std::string& filter) {
  if (ioctl(event.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0) return Done{};
  if (errno == EINVAL) return use_error("the kernel does not understand the filter '" + filter + "'");
  return system_error("the filter '" + filter + "'", errno);
}
Result<> enable_event(const format::Fd& event) {
  return control(event, PERF_EVENT_IOC_ENABLE, 0, "a perf event cannot be enabled");
}
Result<> disable_event(const format::Fd& event) {
  return control(event, PERF_EVENT_IOC_DISABLE, 0, "a perf event cannot be disabled");
}
Result<> pause_event(const format::Fd& event, bool pause) {
  return control(event, PERF_EVENT_IOC_PAUSE_OUTPUT, pause ? 1 : 0,
                 "the ring of a perf event cannot be paused");
}
Result<> share_ring(const format::Fd& event, const format::Fd& ring_owner) {
  return control(event, PERF_EVENT_IOC_SET_OUTPUT, ring_owner.get(),
                 "a perf event cannot share the ring of its CPU");
}

}  // namespace tacho::record
