// --switch-output-event: events that start another file, and are not recorded themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/options/options.h"
#include "record/plan/plan.h"

namespace tacho::record {

// The events of the option as a plan, with the smallest rings. `threads`: of the target.
Result<Plan> plan_switch_events(const RecordOptions& options, std::span<const int> threads, const Host& host);

class SwitchEvents {
 public:
  static Result<SwitchEvents> open(Plan& plan, const Host& host, const std::function<bool()>& stop);

  // To be watched for being readable, once for each time.
  std::vector<int> fds() const;
  Result<> enable() const { return events_.enable_samples(); }
  // How many there were since the last call; at least one when the ring was full.
  std::uint64_t take();

 private:
  explicit SwitchEvents(KernelEvents events) : events_(std::move(events)) {}
  KernelEvents events_;
};

}  // namespace tacho::record
