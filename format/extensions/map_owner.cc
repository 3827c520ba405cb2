#include "format/extensions/map_owner.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "format/base/file.h"

namespace tacho::format {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRounding = 2 * kSecond;               // tolerance for clocks in ticks
constexpr std::uint64_t kLargestStat = 4096;                  // bytes of /proc/PID/stat
constexpr std::int64_t kTimeOfDay = 1'000'000'000 * kSecond;  // larger times are since 1970, not since boot

std::int64_t ns_of(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

std::int64_t now(clockid_t clock) {
  timespec time{};
  return ::clock_gettime(clock, &time) == 0 ? ns_of(time) : 0;
}

}  // namespace

std::optional<std::int64_t> time_of_day(std::uint64_t time) {
  const auto recorded = static_cast<std::int64_t>(time);
  if (recorded <= 0) return std::nullopt;
  if (recorded > kTimeOfDay) return recorded;
  const std::int64_t since = now(CLOCK_MONOTONIC) - recorded;
  return since < 0 ? std::nullopt : std::optional(now(CLOCK_REALTIME) - since);
}

Result<MapTrust> check_map(const struct stat& file, const MapOwner& process) {
  if (!S_ISREG(file.st_mode)) return Error{"is not a regular file"};
  if (process.user && file.st_uid != *process.user && file.st_uid != 0) return Error{"is of another user"};
  // In its own mount namespace a user's process can show any file of root under this name.
  const bool is_secret = file.st_uid == 0 && (file.st_mode & S_IROTH) == 0;
  if (is_secret && process.user && *process.user != 0) return Error{"is not for that user"};
  if (process.began && ns_of(file.st_mtim) + kRounding < *process.began)
    return Error{"is older than the process: it is of an earlier process with this pid"};
  // st_ctim: unlike st_mtim it cannot be set by users.
  if (process.ended && ns_of(file.st_ctim) > *process.ended + kRounding)
    return Error{"was changed after the process had ended"};
  const bool is_known =
      process.began && (process.user || file.st_uid == 0) && (process.runs || process.ended);
  return is_known ? MapTrust::Its : MapTrust::Unsure;
}

std::optional<MapOwner> running_owner(std::uint32_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto bytes = read_file(folder + "/stat", kLargestStat);
  struct stat status {};
  const long per_second = ::sysconf(_SC_CLK_TCK);
  if (!bytes || per_second <= 0 || ::stat(folder.c_str(), &status) != 0) return std::nullopt;
  std::string_view rest = as_text(*bytes);
  rest.remove_prefix(rest.rfind(')') + 1);  // the name may contain anything
  constexpr int kBlanksBefore = 20;         // between the name and the start time
  for (int i = 0; i < kBlanksBefore && !rest.empty(); ++i)
    rest.remove_prefix(std::min(rest.size(), rest.find(' ') + 1));
  std::int64_t ticks = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), ticks).ec != std::errc{}) return std::nullopt;
  const std::int64_t start = ticks * (kSecond / per_second);
  return MapOwner{.runs = true,
                  .user = status.st_uid,
                  .began = now(CLOCK_REALTIME) - now(CLOCK_BOOTTIME) + start,
                  .ended = {},
                  .start = start};
}

MapOwner owner_of_map(std::uint32_t pid, std::uint64_t began, std::uint64_t last_sample) {
  const auto fork = time_of_day(began), last = time_of_day(last_sample);
  const auto running = running_owner(pid);
  const bool is_it = running && last && *running->began <= *last + kRounding &&
                     (!fork || std::abs(*running->began - *fork) <= kRounding);
  if (is_it) return *running;
  MapOwner owner;
  owner.began = fork;
  if (running && last) owner.ended = std::max(*running->began, *last);  // the pid was reused
  return owner;
}

}  // namespace tacho::format
