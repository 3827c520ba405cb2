#include "symbolize/files/map_owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <string_view>

#include "format/file.h"

namespace tacho::symbolize {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLargestStat = 4096;                  // bytes of /proc/PID/stat
constexpr std::int64_t kTimeOfDay = 1'000'000'000 * kSecond;  // no host runs for thirty years

std::int64_t now(clockid_t clock) {
  timespec time{};
  return ::clock_gettime(clock, &time) == 0 ? time.tv_sec * kSecond + time.tv_nsec : 0;
}

// How long ago the file was made, in ns.
std::optional<std::int64_t> age_of_file(const std::string& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &status) != 0 || (status.stx_mask & STATX_BTIME) == 0)
    return std::nullopt;
  return now(CLOCK_REALTIME) - (status.stx_btime.tv_sec * kSecond + status.stx_btime.tv_nsec);
}

// How long the process runs, in ns; nothing: none of that number does.
std::optional<std::int64_t> age_of_process(std::uint32_t pid) {
  const auto bytes = format::read_file("/proc/" + std::to_string(pid) + "/stat", kLargestStat);
  if (!bytes) return std::nullopt;
  std::string_view rest = format::as_text(*bytes);
  rest.remove_prefix(std::min(rest.size(), rest.rfind(')') + 1));  // behind the name, which may hold anything
  constexpr int kFieldsBefore = 20;                                // state and others, each behind a blank
  for (int i = 0; i < kFieldsBefore && !rest.empty(); ++i)
    rest.remove_prefix(std::min(rest.size(), rest.find(' ') + 1));
  std::int64_t ticks = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), ticks).ec != std::errc{}) return std::nullopt;
  return now(CLOCK_BOOTTIME) - ticks * (kSecond / ::sysconf(_SC_CLK_TCK));
}

}  // namespace

// Ages may be too great where the host slept meanwhile, which lets more pass.
bool may_be_of_process(const std::string& path, std::uint32_t pid, std::uint64_t last_sample) {
  const auto last = static_cast<std::int64_t>(last_sample);
  const std::int64_t since = now(last > kTimeOfDay ? CLOCK_REALTIME : CLOCK_MONOTONIC) - last;
  const auto file = age_of_file(path);
  if (last <= 0 || since < 0 || !file || *file + kSecond >= since) return true;
  const auto process = age_of_process(pid);
  return process && *process + kSecond >= since;
}

}  // namespace tacho::symbolize
