#include "record/host/cpu_uevents.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace tacho::record {
namespace {

constexpr std::string_view kHead = "online@/devices/system/cpu/cpu";
constexpr unsigned kOfKernel = 1;         // the group of its own messages; udev's are another one
constexpr std::size_t kMostBytes = 8192;  // of one; the kernel makes none of more than 2,048 and its path
constexpr int kMostAtOnce = 4096;

// Only what begins with "onli" is to wake nobody in vain, nor fill the socket while we cannot read it.
bool take_only_comings(int socket) {
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
  const std::string_view head = rest.substr(0, rest.find('\0'));
  if (!head.starts_with(kHead)) return std::nullopt;
  int cpu = -1;
  const auto [end, code] = std::from_chars(head.data() + kHead.size(), head.data() + head.size(), cpu);
  if (code != std::errc() || end != head.data() + head.size() || cpu < 0) return std::nullopt;
  bool is_cpu = false;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find('\0'));
    if (word.starts_with("SYNTH_UUID=")) return std::nullopt;
    is_cpu |= word == "SUBSYSTEM=cpu";
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return is_cpu ? std::optional(cpu) : std::nullopt;
}

CpuUevents CpuUevents::open() {
  CpuUevents uevents;
  format::Fd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  own.nl_groups = kOfKernel;
  if (socket && take_only_comings(socket.get()) &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0)
    uevents.socket_ = std::move(socket);
  return uevents;
}

std::vector<int> CpuUevents::came() {
  std::vector<int> cpus;
  if (!socket_) return cpus;
  std::array<std::byte, kMostBytes> bytes{};
  for (int count = 0; count < kMostAtOnce; ++count) {
    sockaddr_nl sender{};
    socklen_t size = sizeof sender;
    const ssize_t got =
        ::recvfrom(socket_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&sender), &size);
    if (got < 0 && (errno == EINTR || errno == ENOBUFS)) continue;
    if (got < 0) break;
    if (size != sizeof sender || sender.nl_pid != 0) continue;  // a process sent it
    if (const auto cpu = cpu_that_came(format::Bytes(bytes).first(static_cast<std::size_t>(got))))
      cpus.push_back(*cpu);
  }
  return cpus;
}

}  // namespace tacho::record
