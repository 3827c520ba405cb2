// What the kernel tells at once of processors that come on line (udev hears the same).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/cursor.h"
#include "format/file.h"
#include "format/result.h"
#include "record/kernel/kernel_events.h"
#include "record/session/poller.h"

namespace tacho::record {

// The CPU that came, if the message says that one did, and is the kernel's own: somebody may have it send
// others by /sys/devices/.../uevent.
std::optional<int> cpu_that_came(format::Bytes message);

class CpuUevents {
 public:
  // Where nothing is told (containers with users of their own), nobody is ever heard of.
  static CpuUevents open();
  // Since the last call, each as often as it came.
  std::vector<int> came();

 private:
  format::Fd socket_;
};

// Processors that leave and come while they are recorded: the kernel takes their events away with them, for
// good and without a word.

class CpuWatch {
 public:
  // `cpus`: those that are recorded, all on line now; -1 (wherever a thread runs) is none of them. `later`:
  // those that are off line now and to be recorded as well.
  explicit CpuWatch(std::vector<int> cpus, std::vector<int> later = {},
                    std::string online_file = "/sys/devices/system/cpu/online");

  struct Change {
    int cpu = 0;
    bool is_online = false;
  };
  // What happened to them since the last look. A machine that does not tell changes nothing. `came`: those
  // that came on line since then as the kernel told it, which may be a moment after the file says so: one
  // that was never seen away went and came.
  std::vector<Change> look(std::span<const int> came = {});

 private:
  void look_at(int cpu, bool is_online, std::size_t times_reported, std::vector<Change>& changes);

  std::vector<int> cpus_, gone_;
  std::vector<int> unreported_;  // seen to come, and not told yet
  std::string online_file_;
};

// Processors that go off line and come back while they are recorded: their events are opened anew.

class CpuHotplug {
 public:
  // Opens all that is to be recorded of a CPU, and enables what is enabled now.
  using ReopenCpu = std::function<Result<KernelEvents::Reopened>(int cpu)>;
  using Say = std::function<void(std::string_view)>;

  // `later`: CPUs that were off line when `events` were opened. `reopen_cpu` may be empty: then what comes is
  // told, and not recorded.
  CpuHotplug(KernelEvents& events, std::vector<int> later, ReopenCpu reopen_cpu, Say say);

  // To be called often: looks ten times a second. What a CPU did between its coming and the look is not
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
