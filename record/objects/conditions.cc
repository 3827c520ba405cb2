#include "record/objects/conditions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "bpf/attach/follower.h"
#include "cli/expression.h"
#include "format/records/perf_abi.h"
#include "record/events/condition.h"
#include "record/events/recorders.h"

namespace tacho::record {
namespace {

constexpr std::string_view kOption = "--filter";

Error in_request(Error error, const EventRequest& request) {
  return std::move(error).in("-e " + request.text);
}

using Numbers = std::optional<bpf::PidNumbers>;

// In a pid namespace: compares the pid or tid that the kernel has for the step's.
Result<> translate(bpf::FilterStep& step, const Numbers& numbers, std::string_view place) {
  if (step.value != bpf::FilterValue::Process && step.value != bpf::FilterValue::Thread) return Done{};
  if (step.test != bpf::FilterTest::Equal || step.mask != ~std::uint64_t{0})
    return use_error(std::string(place) +
                     ": in a pid namespace, pid and tid can be compared by == and != only: those of the "
                     "kernel are in another order");
  const auto tid = static_cast<std::uint32_t>(step.than);
  const std::uint32_t kernel_tid = numbers && tid == step.than ? numbers->kernel_tid(tid) : 0;
  if (kernel_tid == 0)
    return use_error(std::string(place) + ": there is no process or thread " + std::to_string(step.than) +
                     " in this pid namespace");
  step.than = kernel_tid;
  return Done{};
}

Result<Condition> compile(const cli::Expression& expression, const format::PayloadSchema* payload,
                          const Numbers& numbers, std::string_view place = kOption) {
  auto condition = compile_condition(place, expression, {.payload = payload});
  if (!condition || !bpf::is_in_pid_namespace()) return condition;
  for (bpf::FilterStep& step : condition->steps)
    if (auto done = translate(step, numbers, place); !done) return std::move(done.error());
  return condition;
}

// For a condition on the thread and on members, where a recorder checks them at two moments.
Error mixes_moments(const EventRequest& request) {
  return use_error(std::string(kOption) + ": the recorder " + request.recorder +
                   " checks the thread at the start of a call and the members of its event at the end: a "
                   "condition can use either, not both. Its options choose threads, too (" +
                   request.recorder + "/comm=NAME/)");
}

Error lacks_filter(const bpf::UserObject& object, const EventRequest& request) {
  const auto filters = [&](const bpf::Channel& each) { return object.supports_filter_of(each); };
  if (!request.recorder.empty() && std::ranges::any_of(object.channels(), filters))
    return use_error(std::string(kOption) + ": the recorder " + request.recorder +
                     " reports other threads than the current one: a condition may only use members of its "
                     "event, and its options choose threads (" +
                     request.recorder + "/comm=NAME/)");
  if (!request.recorder.empty())
    return use_error(std::string(kOption) + ": the recorder " + request.recorder +
                     " does not support it; use its options (tacho record -e " + request.recorder +
                     "/help/), or filter the capture with tacho script --where");
  return use_error(
      std::string(kOption) + ": " + object.path() +
      " does not call tacho_wants() (tacho/emit.h), which evaluates it; call it, or filter the capture "
      "with tacho script --where");
}

Error lacks_member_filter(const bpf::UserObject& object, const bpf::Channel& channel) {
  if (is_recorder(object.path()))
    return use_error(std::string(kOption) + ": -e " + object.path() +
                     " cannot compare members of its event; use its options (" + object.path() +
                     "/help/), or filter the capture with tacho script --where");
  return use_error(std::string(kOption) + ": " + object.path() + " does not check its event '" +
                   channel.event +
                   "' after filling it, so members cannot be compared; use tacho_wants_this(" +
                   channel.event + ", &event) or tacho_submit() (tacho/emit.h)");
}

bool tests_thread(const Condition& condition) {
  return std::ranges::any_of(condition.steps, [](const bpf::FilterStep& step) {
    return step.value != bpf::FilterValue::Member && step.value != bpf::FilterValue::None;
  });
}

// A condition on members is checked when the event is filled, other conditions before. If an object checks an
// event of a ring buffer only when it is filled, the current thread may differ from the event's
// (tacho_reserve_for()), so conditions on threads are refused.
Result<> set_condition(bpf::UserObject& object, const cli::Expression& expression,
                       const EventRequest& request, const Numbers& numbers) {
  const auto& channels = object.channels();
  const auto filters = [&](const bpf::Channel& each) { return object.supports_filter_of(each); };
  const auto filters_at_once = [&](const bpf::Channel& each) {
    return each.kind == bpf::ChannelKind::PerfEventArray && filters(each);
  };
  const bool all_filter = !channels.empty() && std::ranges::all_of(channels, filters);
  const bool all_filter_at_once = !channels.empty() && std::ranges::all_of(channels, filters_at_once);
  if (!object.supports_filter() && !all_filter) return lacks_filter(object, request);
  std::vector<Condition> own;
  for (const bpf::Channel& channel : channels) {
    auto condition = compile(expression, channel.schema ? &*channel.schema : nullptr, numbers);
    if (!condition) return std::move(condition.error());
    if (condition->has_members && !filters(channel)) return lacks_member_filter(object, channel);
    const bool is_filled_later =
        !request.recorder.empty() && channel.kind == bpf::ChannelKind::RingWithHeaders;
    if (is_filled_later && object.supports_filter() && condition->has_members && tests_thread(*condition))
      return mixes_moments(request);
    if (!object.supports_filter() && !all_filter_at_once &&
        (!condition->has_members || tests_thread(*condition)))
      return lacks_filter(object, request);
    own.push_back(std::move(*condition));
  }
  if (std::ranges::any_of(own, &Condition::has_members)) {
    for (std::size_t i = 0; i < own.size(); ++i) object.set_filter(channels[i], own[i].steps);
    return Done{};
  }
  const auto general = compile(expression, nullptr, numbers);
  if (!general) return general.error();
  object.set_filter(general->steps);
  return Done{};
}

}  // namespace

Result<> compile_conditions(std::vector<EventRequest>& requests, std::vector<bpf::UserObject>& objects,
                            const std::optional<bpf::PidNumbers>& numbers) {
  std::size_t next_object = 0;
  for (EventRequest& request : requests) {
    bpf::UserObject* const object = request.object() != nullptr ? &objects[next_object++] : nullptr;
    const bool is_kernels_own = request.tracepoint() != nullptr && !request.sum;
    if (request.filter.empty() || is_kernels_own) continue;
    const auto expression = cli::parse_expression(request.filter_place, request.filter);
    if (!expression) return expression.error();
    if (object != nullptr) {
      if (auto set = set_condition(*object, *expression, request, numbers); !set)
        return in_request(std::move(set.error()), request);
      continue;
    }
    if (request.type == format::abi::kSoftware && request.config == format::abi::kBpfOutput)
      return use_error(
          std::string(kOption) + ": '" + request.text +
          "' is filled by a BPF program; put it after the -e of the program, which evaluates it");
    // The arguments of a probe, which the program that reads them compares.
    const auto values = bpf::schema_of(request.name, request.placed_arguments);
    const bool has_values = !request.placed_arguments.empty();
    auto condition = compile(*expression, has_values ? &values : nullptr, numbers, request.filter_place);
    if (!condition && request.filter_place != kOption) return std::move(condition.error());
    if (!condition) return in_request(std::move(condition.error()), request);
    request.condition = std::move(condition->steps);
    request.filter.clear();
  }
  return Done{};
}

Result<> attach_conditions(const Plan& plan, std::span<const OpenEvent> events, EventFilters& filters) {
  for (const OpenEvent& open : events) {
    const PlannedEvent& planned = plan.events[open.event];
    if (planned.condition.empty() || planned.unwound_frames != 0) continue;
    auto known = filters.find(open.event);
    if (known == filters.end()) {
      const auto hook =
          planned.probe_target.empty() ? bpf::EventFilter::Hook::Overflow : bpf::EventFilter::Hook::Probe;
      auto filter = bpf::EventFilter::load(planned.condition, hook);
      if (!filter) return std::move(filter.error()).in("--filter: event '" + planned.name + "'");
      known = filters.emplace(open.event, std::move(*filter)).first;
    }
    if (auto done = known->second.attach(open.fd.get()); !done)
      return std::move(done.error()).in("--filter: event '" + planned.name + "'");
  }
  return Done{};
}

}  // namespace tacho::record
