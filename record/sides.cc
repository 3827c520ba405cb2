#include "record/sides.h"

#include <algorithm>
#include <string>

namespace tacho::record {
namespace {

namespace abi = format::abi;

// "cpu-clock:u", "cycles:ppu", "sched:sched_switch:u", "cpu/event=1/u".
std::string with_user_modifier(const EventRequest& request) {
  const std::string& name = request.name;
  const auto colons = std::ranges::count(name, ':');
  const bool has_modifiers = colons > (request.kind == EventKind::Tracepoint ? 1 : 0);
  return name + (has_modifiers || name.find('/') != std::string::npos ? "u" : ":u");
}

}  // namespace

bool may_leave_out_kernel(const RecordOptions& options) {
  return options.target.watch != Watch::System && !options.sampling.all_user && !options.sampling.all_kernel;
}

std::size_t leave_out_kernel(std::vector<EventRequest>& requests) {
  std::size_t changed = 0;
  for (EventRequest& request : requests) {
    const bool is_of_kernel = request.kind == EventKind::Counter || request.kind == EventKind::Tracepoint;
    if (!is_of_kernel || (request.flags & (abi::kExcludeUser | abi::kExcludeKernel)) != 0) continue;
    request.flags |= abi::kExcludeKernel | abi::kExcludeHv;
    request.name = with_user_modifier(request);
    ++changed;
  }
  return changed;
}

}  // namespace tacho::record
