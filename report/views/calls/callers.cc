#include "report/views/calls/callers.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace tacho::report {
namespace {

using ThreadIds = std::pair<std::uint32_t, std::uint32_t>;
using OpenCalls = std::vector<std::uint32_t>;  // calls that have begun, the outermost first

// One thread's, with how many of them are of each function: stacks may be too deep to be looked through for
// each call.
class OpenFunctions {
 public:
  explicit OpenFunctions(const std::vector<Call>& calls) : calls_(&calls) {}
  bool empty() const { return stack_.empty(); }
  std::uint32_t innermost() const { return stack_.back(); }
  bool has(std::uint32_t name) const { return counts_.contains(name); }

  void enter(std::uint32_t call) {
    stack_.push_back(call);
    ++counts_[(*calls_)[call].name];
  }
  // Takes off what ended before `call` began; a call that was not seen to its end (records were lost) is told
  // by its depth.
  void leave_for(const Call& call) {
    while (!stack_.empty()) {
      const Call& last = (*calls_)[stack_.back()];
      if (last.depth < call.depth && last.end >= call.end) return;
      stack_.pop_back();
      const auto count = counts_.find(last.name);
      if (--count->second == 0) counts_.erase(count);
    }
  }

 private:
  const std::vector<Call>* calls_;
  OpenCalls stack_;
  std::unordered_map<std::uint32_t, std::uint32_t> counts_;  // by name
};

}  // namespace

Callers find_callers(const CallList& list) {
  const auto& calls = list.calls();
  Callers tree;
  tree.callers.assign(calls.size(), Callers::kNone);
  tree.in_callees.assign(calls.size(), 0);
  tree.has_callees.assign(calls.size(), false);
  tree.recurses.assign(calls.size(), false);
  std::map<ThreadIds, OpenFunctions> stacks;
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    OpenFunctions& open = stacks.try_emplace({calls[i].pid, calls[i].tid}, calls).first->second;
    open.leave_for(calls[i]);
    if (!open.empty()) {
      const std::uint32_t caller = open.innermost();
      tree.callers[i] = caller;
      tree.in_callees[caller] += calls[i].end - calls[i].begin;
      tree.has_callees[caller] = true;
      tree.recurses[i] = open.has(calls[i].name);
    }
    open.enter(i);
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
