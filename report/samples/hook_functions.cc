#include "report/samples/hook_functions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Made for each tracepoint, or named for each kind of program.
constexpr std::string_view kPrefixes[] = {
    "__traceiter_",  "perf_trace_",   "__bpf_trace_",          "trace_event_raw_event_", "perf_call_bpf_",
    "bpf_trace_run", "bpf_get_stack", "bpf_perf_event_output", "__SCT__tp_func_"};
// syscall_trace_enter() and the others of its kind only run while a tracepoint of system calls is in use.
constexpr std::string_view kNames[] = {"perf_syscall_enter",  "perf_syscall_exit",   "perf_tp_event",
                                       "trace_call_bpf",      "syscall_trace_enter", "syscall_exit_work",
                                       "trace_syscall_enter", "trace_syscall_exit",  "syscall_trace_exit",
                                       "syscall_trace_leave"};

}  // namespace

bool is_hook_function(std::string_view name) {
  return std::ranges::any_of(kPrefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); }) ||
         std::ranges::find(kNames, name) != std::end(kNames);
}

bool is_taken_by_hook(const format::EventAttr& attr) {
  return (attr.type == abi::kTracepoint || attr.is_bpf_output()) && !attr.has(abi::kExcludeCallchainKernel);
}

HookFunctions::HookFunctions(std::vector<Range> functions) : functions_(std::move(functions)) {
  std::ranges::sort(functions_);
}

bool HookFunctions::has(std::uint64_t address, const symbolize::SpaceVersion& space) const {
  const auto after = std::ranges::upper_bound(functions_, address, {}, &Range::first);
  if (after != functions_.begin() && address < std::prev(after)->second) return true;
  const symbolize::Mapping* const mapping = space.range_at({address}, abi::kCpumodeKernel).mapping;
  return mapping != nullptr && mapping->module->kind == symbolize::ModuleKind::Bpf;
}

std::size_t HookFunctions::count_at_leaf(const format::U64Array& chain,
                                         const symbolize::SpaceVersion& space) const {
  if (chain.size() < 2 || chain[0] != abi::kContextKernel) return 0;
  std::size_t count = 0;
  // The next word is a kernel address too, so the last one of the kernel's part is never counted.
  while (count + 2 < chain.size() && chain[count + 2] < abi::kContextMax && has(chain[count + 1], space))
    ++count;
  return count;
}

}  // namespace tacho::report
