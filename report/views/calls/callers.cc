#include "report/views/calls/callers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tacho::report {
namespace {

using ThreadIds = std::pair<std::uint32_t, std::uint32_t>;
using OpenCalls = std::vector<std::uint32_t>;  // calls that have begun, the outermost first

// Takes off what ended before `call` began; a call that was not seen to its end (records were lost) is told
// by its depth.
void leave(OpenCalls& stack, const std::vector<Call>& calls, const Call& call) {
  while (!stack.empty() && (calls[stack.back()].depth >= call.depth || calls[stack.back()].end < call.end))
    stack.pop_back();
}

}  // namespace

Callers find_callers(const CallList& list) {
  const auto& calls = list.calls();
  Callers tree;
  tree.callers.assign(calls.size(), Callers::kNobody);
  tree.in_callees.assign(calls.size(), 0);
  tree.has_callees.assign(calls.size(), false);
  tree.recurses.assign(calls.size(), false);
  std::map<ThreadIds, OpenCalls> stacks;
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    OpenCalls& stack = stacks[{calls[i].pid, calls[i].tid}];
    leave(stack, calls, calls[i]);
    if (!stack.empty()) {
      tree.callers[i] = stack.back();
      tree.in_callees[stack.back()] += calls[i].end - calls[i].begin;
      tree.has_callees[stack.back()] = true;
      tree.recurses[i] =
          std::ranges::any_of(stack, [&](std::uint32_t above) { return calls[above].name == calls[i].name; });
    }
    stack.push_back(i);
  }
  return tree;
}

std::vector<CallStep> call_steps(const CallList& list, const Callers& tree) {
  const auto& calls = list.calls();
  std::map<ThreadIds, std::vector<CallStep>> threads;
  std::map<ThreadIds, OpenCalls> stacks;
  const auto end_last = [&](std::vector<CallStep>& steps, OpenCalls& stack) {
    const std::uint32_t call = stack.back();
    stack.pop_back();
    if (tree.has_callees[call])
      steps.push_back({calls[call].end, call, static_cast<std::uint32_t>(stack.size()), true});
  };
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    const ThreadIds thread{calls[i].pid, calls[i].tid};
    OpenCalls& stack = stacks[thread];
    auto& steps = threads[thread];
    while (!stack.empty() && stack.back() != tree.callers[i]) end_last(steps, stack);
    steps.push_back({calls[i].begin, i, static_cast<std::uint32_t>(stack.size()), false});
    stack.push_back(i);
  }
  std::vector<CallStep> all;
  for (auto& [thread, steps] : threads) {
    while (!stacks[thread].empty()) end_last(steps, stacks[thread]);
    std::uint64_t latest = 0;  // a thread's steps stay in their order
    for (CallStep& step : steps) latest = step.time = std::max(step.time, latest);
    all.insert(all.end(), steps.begin(), steps.end());
  }
  std::ranges::stable_sort(all, {}, &CallStep::time);
  return all;
}

}  // namespace tacho::report
