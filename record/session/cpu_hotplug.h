// CPU hotplug: events of a CPU that went offline are opened again when it is back. Changes come from
// uevents and from /sys/devices/system/cpu/online.
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

// Uevents of CPUs that come online (udev receives the same).

// The CPU that came online, if the message is that, and from the kernel: other messages may be triggered
// through /sys/devices/.../uevent.
std::optional<int> cpu_that_came(format::Bytes message);

class CpuUevents {
 public:
  // Without uevents (containers with a user namespace) it returns nothing.
  static CpuUevents open();
  // Since the last call, each as often as it came.
  std::vector<int> came();

 private:
  format::Fd socket_;
};

// Finds recorded CPUs that go offline and online: when a CPU goes offline, the kernel disables its events for
// good and reports nothing.

class CpuWatch {
 public:
  // `cpus`: the recorded ones, all online now; -1 (any CPU) is ignored. `later`: CPUs that are offline now
  // and to be recorded as well.
  explicit CpuWatch(std::vector<int> cpus, std::vector<int> later = {},
                    std::string online_file = "/sys/devices/system/cpu/online");

  struct Change {
    int cpu = 0;
    bool is_online = false;
  };
  // Changes since the last look. None where the file cannot be read. `came`: CPUs that came online since
  // then by uevents, which may arrive a moment after the file changes: a CPU in `came` that was never seen
  // offline was offline in between.
  std::vector<Change> look(std::span<const int> came = {});

 private:
  void look_at(int cpu, bool is_online, std::size_t times_reported, std::vector<Change>& changes);

  std::vector<int> cpus_, gone_;
  std::vector<int> unreported_;  // seen to come online, uevent not received yet
  std::string online_file_;
};

// CPU hotplug: events of a CPU that went offline are opened again when it is back.

class CpuHotplug {
 public:
  // Opens all events of a CPU, and enables the ones that are enabled now.
  using ReopenCpu = std::function<Result<KernelEvents::Reopened>(int cpu)>;
  using Say = std::function<void(std::string_view)>;

  // `later`: CPUs that were offline when `events` were opened. `reopen_cpu` may be empty: then changes are
  // reported, and not recorded.
  CpuHotplug(KernelEvents& events, std::vector<int> later, ReopenCpu reopen_cpu, Say say);

  // Call it often: it looks ten times a second. Events between a CPU's coming and the look are not
  // recorded. `since_start`: of the recording.
  Result<> look(Poller& poller, std::chrono::milliseconds since_start);

 private:
  Result<> take_in(int cpu, const std::string& when, Poller& poller);

  KernelEvents& events_;
  CpuWatch watch_;
  CpuUevents uevents_;
  ReopenCpu reopen_cpu_;
  Say say_;
  std::chrono::milliseconds next_look_{0};
};

}  // namespace tacho::record
