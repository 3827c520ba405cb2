#include "record/stacks/walk_hooks.h"

#include <algorithm>

#include "format/perf_abi.h"
#include "record/kernel/perf_event.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// Events of the recorder's own, which write the walks into the rings of the samples.
PlannedEvent walk_event(const PlannedEvent& sample) {
  PlannedEvent event;
  event.name = "stacks";
  event.attr.size = sample.attr.size;
  event.attr.type = abi::kSoftware;
  event.attr.config = abi::kBpfOutput;
  event.attr.sample_period = 1;
  // What LOST records of the event end with is what those of the samples end with.
  constexpr std::uint64_t kOfTrailer = abi::kSampleTid | abi::kSampleTime | abi::kSampleId |
                                       abi::kSampleStreamId | abi::kSampleCpu | abi::kSampleIdentifier;
  event.attr.sample_type = (sample.attr.sample_type & kOfTrailer) | abi::kSampleIdentifier | abi::kSampleRaw;
  event.attr.read_format =
      abi::kReadId | (sample.attr.read_format & abi::kReadLost);  // where the kernel has it
  event.attr.flags =
      sample.attr.flags & (abi::kUseClockid | abi::kWriteBackward | abi::kWatermark | abi::kSampleIdAll);
  event.attr.clockid = sample.attr.clockid;
  event.attr.wakeup = sample.attr.wakeup;
  return event;
}

// Holds the program on a tracepoint. It takes no samples and is not inherited: when a child's copy of an
// event with a program goes, the kernel takes the program off the tracepoint for everybody.
PlannedEvent holder_of(const PlannedEvent& sample) {
  PlannedEvent event;
  event.name = sample.name;
  event.attr.size = sample.attr.size;
  event.attr.type = sample.attr.type;
  event.attr.config = sample.attr.config;
  event.attr.sample_period = 1;
  event.attr.flags = abi::kDisabled;
  return event;
}

}  // namespace

bpf::StackHook hook_of(const PlannedEvent& event) {
  if (event.attr.type == abi::kTracepoint) return bpf::StackHook::Tracepoint;
  return event.probe_target.empty() ? bpf::StackHook::Overflow : bpf::StackHook::Probe;
}

Result<WalksEvent> open_walks(bpf::StackWalker& walker, const OpenEvent& open, const PlannedEvent& planned,
                              const Host& host) {
  const PlannedEvent writer = walk_event(planned);
  auto walks = open_event(writer, -1, open.cpu);
  if (!walks) return explain_refusal(writer, open.cpu, walks.error().code, host).in("--call-graph eh");
  if (auto done = share_ring(*walks, open.fd); !done) return std::move(done.error()).in("--call-graph eh");
  const auto id = id_of_event(*walks);
  if (!id) return id.error();
  if (auto done = walker.put_output(open.cpu, walks->get()); !done) return std::move(done.error());
  return WalksEvent{std::move(*walks), writer.attr, *id};
}

// The condition of --filter is asked first, and runs the walk itself.
Result<> WalkHooks::attach_behind_condition(const OpenEvent& open, const PlannedEvent& planned,
                                            bpf::StackHook hook) {
  auto known = conditions_.find(open.event);
  if (known == conditions_.end()) {
    const auto kind =
        hook == bpf::StackHook::Overflow ? bpf::EventFilter::Hook::Overflow : bpf::EventFilter::Hook::Probe;
    auto filter = bpf::EventFilter::load(planned.condition, kind, walker_->program(hook));
    if (!filter) return std::move(filter.error());
    known = conditions_.emplace(open.event, std::move(*filter)).first;
  }
  return known->second.attach(open.fd.get());
}

Result<> WalkHooks::attach(const OpenEvent& open, const PlannedEvent& planned, const Host& host) {
  const auto hook = hook_of(planned);
  int held_by = open.fd.get();
  if (hook == bpf::StackHook::Tracepoint) {
    if (!hooked_.emplace(planned.attr.type, planned.attr.config).second) return Done{};
    const PlannedEvent holder = holder_of(planned);
    auto opened = open_event(holder, -1, std::max(open.cpu, 0));
    if (!opened) return explain_refusal(holder, open.cpu, opened.error().code, host).in("--call-graph eh");
    holders_.push_back(std::move(*opened));
    held_by = holders_.back().get();
  }
  if (!planned.condition.empty() && hook != bpf::StackHook::Tracepoint) {
    if (auto done = attach_behind_condition(open, planned, hook); !done)
      return std::move(done.error()).in("--filter: event '" + planned.name + "'");
    return Done{};
  }
  auto link = walker_->attach(hook, held_by);
  if (!link) return std::move(link.error()).in("--call-graph eh: event '" + planned.name + "'");
  if (hook == bpf::StackHook::Tracepoint) {
    held_.push_back(std::move(*link));
  } else {
    links_.insert_or_assign({open.event, open.cpu, open.task}, std::move(*link));
  }
  return Done{};
}

}  // namespace tacho::record
