// Processors that go off line and come back while they are recorded: their events are opened anew.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"
#include "record/cpu_watch.h"
#include "record/host/cpu_uevents.h"
#include "record/kernel/kernel_events.h"
#include "record/news.h"

namespace tacho::record {

class CpuReturns {
 public:
  // Opens all that is to be recorded of a CPU, and enables what is enabled now.
  using OpenAgain = std::function<Result<KernelEvents::Reopened>(int cpu)>;
  using Say = std::function<void(std::string_view)>;

  // `later`: CPUs that were off line when `events` were opened. `open_again` may be empty: then what comes is
  // told, and not recorded.
  CpuReturns(KernelEvents& events, std::vector<int> later, OpenAgain open_again, Say say);

  // To be called often: looks ten times a second. What a CPU did between its coming and the look is not
  // recorded. `since_start`: of the recording.
  Result<> look(News& news, std::chrono::milliseconds since_start);

 private:
  Result<> take_in(int cpu, const std::string& when, News& news);

  KernelEvents& events_;
  CpuWatch watch_;
  CpuUevents uevents_;
  OpenAgain open_again_;
  Say say_;
  std::chrono::milliseconds next_look_{0};
};

}  // namespace tacho::record
