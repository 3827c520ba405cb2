#include "report/views/tui/sample_choice.h"

#include <algorithm>

namespace tacho::report {

ChosenSamples::ChosenSamples(Session& session, const SampleChoice& choice, Sink& to)
    : session_(session),
      choice_(choice),
      to_(to),
      functions_(session),
      stacks_(functions_, {ChainOrder::Caller}) {}

Result<> ChosenSamples::find_box() {
  return choice_.box ? box_source_.find_events(choice_.box->request, session_) : Result<>(Done{});
}

bool ChosenSamples::accepts_function(FunctionId id) {
  Answer& known = of_function_[id];
  if (known != Answer::Unknown) return known == Answer::Yes;
  const Function& function = functions_[id];
  const symbolize::Module* const module = function.module;
  const auto is_named = [&](const SampleChoice::Named& wanted) {
    return function.name() == wanted.name &&
           (module == nullptr ? wanted.module.empty() : module->short_name == wanted.module) &&
           (function.is_inlined || function.start == wanted.start);  // not another overload
  };
  const bool is_accepted =
      (!choice_.module || path_of(module) == *choice_.module) &&
      (!choice_.has_kernel_only || is_kernel(module)) &&
      (choice_.symbol.empty() || function.name().find(choice_.symbol) != std::string_view::npos) &&
      (!choice_.function || is_named(*choice_.function));
  known = is_accepted ? Answer::Yes : Answer::No;
  return is_accepted;
}

bool ChosenSamples::accepts_stack(const Stack& stack) {
  Answer& known = of_stack_[stack.id];
  if (known == Answer::Unknown) {
    const auto frames = stacks_.frames(stacks_.chain_of(stack));
    known = std::ranges::any_of(frames, [this](FunctionId id) { return accepts_function(id); }) ? Answer::Yes
                                                                                                : Answer::No;
  }
  return known == Answer::Yes;
}

bool ChosenSamples::accepts(const ResolvedSample& sample) {
  if (choice_.events && (sample.event_index < choice_.events->first ||
                         sample.event_index >= choice_.events->first + choice_.events->second))
    return false;
  if (choice_.tid && sample.tid() != *choice_.tid) return false;
  if (choice_.pid && sample.pid() != *choice_.pid) return false;
  if (choice_.comm && sample.comm != *choice_.comm) return false;
  if (choice_.socket) {
    const auto& topology = session_.features().environment.cpu_topology;
    const std::uint32_t cpu = sample.fields->cpu;
    const bool is_known = topology && cpu < topology->cpus.size();
    if ((is_known ? topology->cpus[cpu].socket : ~0U) != *choice_.socket) return false;
  }
  if (choice_.box) {
    if (!box_source_.takes(sample.event_index)) return false;
    const auto value = box_source_.value_of(sample);
    if (!value || !choice_.box->box.has(sample.fields->time, *value)) return false;
  }
  if (!choice_.looks_at_functions() || accepts_function(functions_.of_location(sample.location_id)))
    return true;
  return choice_.looks_at_callers && sample.stack != nullptr && accepts_stack(*sample.stack);
}

}  // namespace tacho::report
