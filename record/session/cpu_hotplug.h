// CPU hotplug: events of a CPU that went offline are opened again when it is back. Changes come from
// uevents (CpuUevents) and from /sys/devices/system/cpu/online (CpuWatch); CpuHotplug opens events again.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "record/kernel/kernel_events.h"
#include "record/session/poller.h"

namespace tacho::record {

// The CPU that came online by this uevent; nullopt: the message is another one, or was triggered by a write
// to /sys/devices/.../uevent.
std::optional<int> cpu_that_came(format::Bytes message);

// The kernel's uevents about CPUs that come online (udev receives the same).
class CpuUevents {
 public:
  // If uevents are not available (in a user namespace), came() is always empty.
  static CpuUevents open();
  // CPUs that came online since the last call; a CPU may be in it several times.
  std::vector<int> came();

 private:
  format::Fd socket_;
};

// Finds recorded CPUs that go offline and online: when a CPU goes offline, the kernel disables its events for
// good and reports nothing.
class CpuWatch {
 public:
  // `cpus`: the recorded CPUs that are online now; -1 (any CPU) is ignored. `later`: the recorded CPUs
  // that are offline now.
  explicit CpuWatch(std::vector<int> cpus, std::vector<int> later = {},
                    std::string online_file = "/sys/devices/system/cpu/online");

  struct Change {
    int cpu = 0;
    bool is_online = false;
  };
  // Changes since the last call; none if the file cannot be read. `came`: CPUs that came online by uevents,
  // which may arrive shortly after the file changes. A CPU in `came` that was not seen offline was offline in
  // between.
  std::vector<Change> take_changes(std::span<const int> came = {});

 private:
  void look_at(int cpu, bool is_online, std::size_t times_reported, std::vector<Change>& changes);

  std::vector<int> cpus_, gone_;
  std::vector<int> unreported_;  // seen to come online, uevent not received yet
  std::string online_file_;
};

// Opens the events of a CPU again when it is back online.
class CpuHotplug {
 public:
  // Opens all events of a CPU, and enables the ones that are enabled now.
  using ReopenCpu = std::function<Result<KernelEvents::Reopened>(int cpu)>;
  using Say = std::function<void(std::string_view)>;

  // `later`: CPUs that were offline when `events` were opened. Without `reopen_cpu` changes are only
  // reported.
  CpuHotplug(KernelEvents& events, std::vector<int> later, ReopenCpu reopen_cpu, Say say);

  // Checks the CPUs ten times a second; call it more often. Events of a CPU between its return and the check
  // are not recorded. `since_start`: time since the start of the recording.
  Result<> follow_cpus(Poller& poller, std::chrono::milliseconds since_start);

 private:
  Result<> came_online(int cpu, const std::string& when, Poller& poller);

  KernelEvents& events_;
  CpuWatch watch_;
  CpuUevents uevents_;
  ReopenCpu reopen_cpu_;
  Say say_;
  std::chrono::milliseconds next_look_{0};
};

}  // namespace tacho::record
