// Events that begin another file (--switch-output-event), and are not recorded themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "format/result.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/options/options.h"
#include "record/plan/plan.h"

namespace tacho::record {

// The events of the option as a plan, with rings that hold no more than the news. `threads`: of the target.
Result<Plan> plan_switch_events(const RecordOptions& options, std::span<const int> threads, const Host& host);

class SwitchEvents {
 public:
  static Result<SwitchEvents> open(Plan& plan, const Host& host, const std::function<bool()>& stop);

  // To be watched for being readable, once for each time.
  std::vector<int> fds() const;
  Result<> enable() const { return events_.enable_samples(); }
  // How many there were since the last call; of those that found no room in the ring, at least one.
  std::uint64_t take();

 private:
  explicit SwitchEvents(KernelEvents events) : events_(std::move(events)) {}
  KernelEvents events_;
};

}  // namespace tacho::record
