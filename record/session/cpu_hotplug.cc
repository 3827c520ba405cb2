#include "record/session/cpu_hotplug.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "record/events/target.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

constexpr std::string_view kUeventHead = "online@/devices/system/cpu/cpu";
constexpr unsigned kKernelGroup = 1;          // netlink group of the kernel's uevents (udev's is 2)
constexpr std::size_t kLongestUevent = 8192;  // bytes; the kernel's limit is 2,048 and a path
constexpr int kMostAtOnce = 4096;

// A socket filter for messages that start with "onli": others would wake the loop in vain and fill the
// socket.
bool only_online_events(int socket) {
  constexpr std::uint32_t kOnli = 'o' << 24 | 'n' << 16 | 'l' << 8 | 'i';
  std::array<sock_filter, 4> steps{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                                    {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kOnli},
                                    {BPF_RET | BPF_K, 0, 0, ~std::uint32_t{0}},
                                    {BPF_RET | BPF_K, 0, 0, 0}}};
  const sock_fprog program{steps.size(), steps.data()};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

}  // namespace

std::optional<int> cpu_that_came(format::Bytes message) {
  std::string_view rest = format::as_text(message);
  std::string_view head = take_until(rest, '\0');
  if (!take_prefix(head, kUeventHead)) return std::nullopt;
  const auto cpu = whole_number<int>(head);
  if (!cpu || *cpu < 0) return std::nullopt;
  bool is_cpu = false;
  while (!rest.empty()) {
    const std::string_view word = take_until(rest, '\0');
    if (word.starts_with("SYNTH_UUID=")) return std::nullopt;
    is_cpu |= word == "SUBSYSTEM=cpu";
  }
  return is_cpu ? cpu : std::nullopt;
}

CpuUevents CpuUevents::open() {
  CpuUevents uevents;
  format::Fd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  own.nl_groups = kKernelGroup;
  if (socket && only_online_events(socket.get()) &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0)
    uevents.socket_ = std::move(socket);
  return uevents;
}

std::vector<int> CpuUevents::came() {
  std::vector<int> cpus;
  if (!socket_) return cpus;
  std::array<std::byte, kLongestUevent> bytes{};
  for (int count = 0; count < kMostAtOnce; ++count) {
    sockaddr_nl sender{};
    socklen_t size = sizeof sender;
    const ssize_t got =
        ::recvfrom(socket_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&sender), &size);
    if (got < 0 && (errno == EINTR || errno == ENOBUFS)) continue;
    if (got < 0) break;
    if (size != sizeof sender || sender.nl_pid != 0) continue;  // not from the kernel
    if (const auto cpu = cpu_that_came(format::Bytes(bytes).first(static_cast<std::size_t>(got))))
      cpus.push_back(*cpu);
  }
  return cpus;
}

CpuWatch::CpuWatch(std::vector<int> cpus, std::vector<int> later, std::string online_file)
    : cpus_(std::move(cpus)), gone_(std::move(later)), online_file_(std::move(online_file)) {
  cpus_.insert(cpus_.end(), gone_.begin(), gone_.end());
  std::ranges::sort(cpus_);
  cpus_.erase(std::unique(cpus_.begin(), cpus_.end()), cpus_.end());
  std::erase(cpus_, -1);
}

void CpuWatch::look_at(int cpu, bool is_online, std::size_t times_reported, std::vector<Change>& changes) {
  const auto gone = std::ranges::find(gone_, cpu);
  const bool was_online = gone == gone_.end();
  if (!was_online && is_online) {
    changes.push_back({cpu, true});
    gone_.erase(gone);
    unreported_.push_back(cpu);
  }
  for (; times_reported != 0 && std::ranges::find(unreported_, cpu) != unreported_.end(); --times_reported)
    unreported_.erase(std::ranges::find(unreported_, cpu));
  if (was_online && !is_online) {
    changes.push_back({cpu, false});
    gone_.push_back(cpu);
  } else if (was_online && times_reported != 0) {
    changes.push_back({cpu, false});
    changes.push_back({cpu, true});
  }
}

std::vector<CpuWatch::Change> CpuWatch::take_changes(std::span<const int> came) {
  std::vector<Change> changes;
  if (cpus_.empty()) return changes;
  std::string text;
  try {
    text = text_of_file(online_file_);
  } catch (const std::bad_alloc&) {
    return changes;  // the next look reads it again
  }
  const auto online = parse_cpu_list(trimmed(text));
  if (!online) return changes;
  for (const int cpu : cpus_) {
    const bool is_online = std::ranges::find(*online, cpu) != online->end();
    look_at(cpu, is_online, static_cast<std::size_t>(std::ranges::count(came, cpu)), changes);
  }
  return changes;
}

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};

// Also for per-task events: the kernel resumes these when their CPU is back, but not their stack walks.
std::vector<int> recorded_cpus(const KernelEvents& events) {
  std::vector<int> cpus;
  for (const OpenEvent& event : events.open_events()) cpus.push_back(event.cpu);
  return cpus;
}

}  // namespace

CpuHotplug::CpuHotplug(KernelEvents& events, std::vector<int> later, ReopenCpu reopen_cpu, Say say)
    : events_(events),
      watch_(recorded_cpus(events), std::move(later)),
      uevents_(CpuUevents::open()),
      reopen_cpu_(std::move(reopen_cpu)),
      say_(std::move(say)) {}

Result<> CpuHotplug::follow_cpus(Poller& poller, std::chrono::milliseconds since_start) {
  if (since_start < next_look_) return Done{};
  next_look_ = since_start + kBetweenLooks;
  for (const CpuWatch::Change& change : watch_.take_changes(uevents_.came())) {
    const std::string when =
        fmt::format("{:.1f} s after the start", static_cast<double>(since_start.count()) / 1000);
    if (change.is_online) {
      if (auto done = came_online(change.cpu, when, poller); !done) return done;
      continue;
    }
    events_.note_cpu(change.cpu, fmt::format("offline {}", when));
    say_(fmt::format("CPU {} went offline ({}): it is not recorded until it comes back", change.cpu, when));
  }
  return Done{};
}

// A CPU that cannot be recorded does not end the recording.
Result<> CpuHotplug::came_online(int cpu, const std::string& when, Poller& poller) {
  const auto open = reopen_cpu_ ? reopen_cpu_(cpu)
                                : Result<KernelEvents::Reopened>(Error{"start another recording for it"});
  if (!open) {
    events_.note_cpu(cpu, fmt::format("online {}, not recorded: {}", when, open.error().what));
    say_(fmt::format("CPU {} came online ({}), and is not recorded: {}", cpu, when, open.error().what));
    return Done{};
  }
  for (const OpenEvent& event : open->events)
    if (auto done = poller.watch_reopened(event); !done) return done;
  const std::string but = open->left_out.empty() ? "" : " but for " + open->left_out;
  events_.note_cpu(cpu, fmt::format("online {}, recorded{}", when, but));
  say_(fmt::format("CPU {} came online ({}), and is recorded{}", cpu, when, but));
  return Done{};
}

}  // namespace tacho::record
