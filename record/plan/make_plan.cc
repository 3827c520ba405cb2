#include "record/plan/make_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpf/object/channel.h"
#include "cli/nearest.h"
#include "format/records/perf_abi.h"
#include "record/events/event_names.h"
#include "record/events/event_spec.h"
#include "record/events/probe_arguments.h"
#include "record/events/recorders.h"
#include "record/events/sample_fields.h"
#include "record/events/target.h"
#include "record/plan/stack_choice.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

constexpr std::uint64_t kDefaultFrequency = 4000;  // Hz, perf's
constexpr std::uint64_t kSampleType = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid |
                                      abi::kSampleTime | abi::kSampleCpu | abi::kSamplePeriod |
                                      abi::kSampleCgroup;
constexpr std::uint64_t kSidebandFlags = abi::kMmap | abi::kComm | abi::kTask | abi::kMmap2 | abi::kCommExec |
                                         abi::kKsymbol | abi::kBpfEvent | abi::kNamespaces | abi::kCgroup;

Result<std::uint64_t> allowed(std::uint64_t frequency, const SamplingOptions& options, const Host& host,
                              std::vector<std::string>& notes) {
  if (host.max_sample_rate == 0 || frequency <= host.max_sample_rate) return frequency;
  if (options.strict_frequency) {
    return use_error(
        fmt::format("--strict-freq: {} Hz is more than kernel.perf_event_max_sample_rate, which is {} Hz; "
                    "lower -F or raise it",
                    frequency, host.max_sample_rate));
  }
  add_once(notes, fmt::format("-F: {} Hz is more than kernel.perf_event_max_sample_rate; sampling at {} Hz",
                              frequency, host.max_sample_rate));
  return host.max_sample_rate;
}

// Terms of the event override -c and -F, which override the default: each event of a tracepoint, else 4000
// samples a second.
Result<> set_rate(format::EventAttr& attr, const EventRequest& request, const SamplingOptions& options,
                  const Host& host, std::vector<std::string>& notes) {
  const bool own = request.period.has_value() || request.frequency.has_value();
  const auto period = own ? request.period : options.period;
  auto frequency = own ? request.frequency : options.frequency;
  if (!own && options.most_frequent) frequency = std::max<std::uint64_t>(host.max_sample_rate, 1);
  if (period || attr.is_bpf_output()) {
    attr.sample_period = attr.is_bpf_output() ? 1 : *period;
    // With PERIOD the kernel makes a sample of each software event, tracepoint and probe, whatever the
    // period. Readers take it from the attr.
    if (attr.sample_period > 1) attr.sample_type &= ~abi::kSamplePeriod;
    return Done{};
  }
  if (!frequency &&
      (request.probe() != nullptr || attr.type == abi::kTracepoint || attr.type == abi::kBreakpoint)) {
    attr.sample_period = 1;
    return Done{};
  }
  const auto rate = allowed(frequency.value_or(kDefaultFrequency), options, host, notes);
  if (!rate) return rate.error();
  attr.sample_period = *rate;
  attr.flags |= abi::kFreq;
  return Done{};
}

void set_stacks(format::EventAttr& attr, const StackOptions& stacks, const SamplingOptions& options) {
  if (stacks.method == CallGraph::None) return;
  attr.sample_type |= abi::kSampleCallchain;
  attr.sample_max_stack = stacks.max_frames;
  if (options.user_callchains) attr.flags |= abi::kExcludeCallchainKernel;
  if (options.kernel_callchains) attr.flags |= abi::kExcludeCallchainUser;
  if (stacks.method == CallGraph::LastBranches && attr.branch_sample_type == 0) {
    attr.sample_type |= abi::kSampleBranchStack;
    attr.branch_sample_type = call_stack_branches();
  }
  if (stacks.method == CallGraph::Dwarf) copy_user_stacks(attr, stacks.bytes);
}

// Stack options from the terms of the event, or else from the options.
StackOptions stacks_of(const EventRequest& request, const SamplingOptions& options) {
  StackOptions stacks = options.stacks;
  if (request.max_frames) {
    stacks.max_frames = *request.max_frames;
    if (stacks.method == CallGraph::None) stacks.method = CallGraph::Best;
  }
  if (request.call_graph) stacks.method = *request.call_graph;
  if (request.stack_bytes) stacks.bytes = *request.stack_bytes;
  return stacks;
}

void set_fields(format::EventAttr& attr, const EventRequest& request, const SamplingOptions& options) {
  attr.sample_type |= options.more_fields;
  if (options.data_addresses) attr.sample_type |= abi::kSampleAddr | abi::kSampleDataSrc;
  if (attr.type == abi::kTracepoint || attr.is_bpf_output()) attr.sample_type |= abi::kSampleRaw;
  attr.sample_regs_user = options.registers_user;
  attr.sample_regs_intr = options.registers_intr;
  attr.branch_sample_type = request.branches.value_or(options.branches);
  if (options.registers_user != 0) attr.sample_type |= abi::kSampleRegsUser;
  if (options.registers_intr != 0) attr.sample_type |= abi::kSampleRegsIntr;
  if (attr.branch_sample_type != 0) attr.sample_type |= abi::kSampleBranchStack;
}

// The fields that every event of a capture has, so that the record loop and every reader find id and time at
// the same offset.
format::EventAttr common_attr(const SamplingOptions& options) {
  format::EventAttr attr;
  attr.size = format::kCompatibleAttrSize;
  attr.sample_type = kSampleType;
  attr.read_format = abi::kReadId | abi::kReadLost;
  attr.flags = abi::kDisabled | abi::kSampleIdAll | abi::kWatermark;
  if (options.clock) {
    attr.flags |= abi::kUseClockid;
    attr.clockid = *options.clock;
  }
  return attr;
}

// perf_event_attr of one event, from its -e, the options and the host. `notes` gets messages about requests
// that are met only in part, each once.
Result<format::EventAttr> sampling_attr(const EventRequest& request, const SamplingOptions& options,
                                        const Host& host, Following following,
                                        std::vector<std::string>& notes) {
  format::EventAttr attr = common_attr(options);
  attr.type = request.type;
  attr.config = request.config;
  attr.config1 = request.config1;
  attr.config2 = request.config2;
  attr.bp_type = request.bp_type;
  attr.flags |= request.flags;
  if (request.reads_group) attr.sample_type |= abi::kSampleRead;
  if (request.most_precise) attr.flags |= std::uint64_t{3} << abi::kPreciseIpShift;
  if (options.all_user) attr.flags = (attr.flags | abi::kExcludeKernel) & ~std::uint64_t{abi::kExcludeUser};
  if (options.all_kernel) attr.flags = (attr.flags | abi::kExcludeUser) & ~std::uint64_t{abi::kExcludeKernel};
  set_fields(attr, request, options);
  set_stacks(attr, stacks_of(request, options), options);
  // The kernel refuses inherited events in a perf event array. For an inherited probe, the kernel reads the
  // file name again from the forking process's memory, so that fork and clone fail.
  const bool can_inherit = !attr.is_bpf_output() && request.probe() == nullptr;
  if (request.inherit.value_or(following.inherits) && can_inherit && following.children)
    attr.flags |= abi::kInherit;
  if (following.at_exec) attr.flags |= abi::kEnableOnExec;
  if (options.counts_of_threads) {
    attr.read_format |= abi::kReadTimeEnabled | abi::kReadTimeRunning;
    attr.flags |= abi::kInheritStat;
  }
  if (auto done = set_rate(attr, request, options, host, notes); !done) return std::move(done.error());
  return attr;
}

// Whether hits are unwound that become no sample: the program runs on every hit of a tracepoint or probe,
// before the kernel decides whether to sample.
bool unwinds_in_vain(const EventRequest& request, const format::EventAttr& attr) {
  const bool is_tracepoint = attr.type == abi::kTracepoint;
  const bool is_chosen_later = attr.has(abi::kFreq) || attr.sample_period > 1;
  return (is_tracepoint && !request.filter.empty()) ||
         ((is_tracepoint || request.probe() != nullptr) && is_chosen_later);
}

// Whether an event's stacks are unwound in the kernel (--call-graph ehframe, and -g if possible).
struct UnwindingChoice {
  std::uint16_t frames = 0;             // maximum of a walk; 0: the stacks are not unwound
  bool may_use_frame_pointers = false;  // if unwinding is refused: ehframe is only the default
  std::string refusal;                  // why frame pointers are used instead; empty: they are not
};

// `attr`: as the event will be opened. An error if the user chose ehframe and it is not possible.
Result<UnwindingChoice> unwinding_of(const EventRequest& request, const format::EventAttr& attr,
                                     const StackOptions& stacks, bool per_thread) {
  const bool is_explicit = stacks.method == CallGraph::Unwound;
  UnwindingChoice choice;
  if (!is_explicit && stacks.method != CallGraph::Best) return choice;
  if (attr.has(abi::kExcludeCallchainUser)) return choice;  // no user part
  if (is_explicit && per_thread)
    return use_error("--call-graph ehframe needs a ring for each CPU and cannot be used with --per-thread");
  choice.may_use_frame_pointers = !is_explicit;
  if (per_thread)
    choice.refusal = "unwound stacks need a ring for each CPU, and --per-thread has none";
  else if (!is_explicit && unwinds_in_vain(request, attr))
    choice.refusal =
        "not every hit becomes a sample, and each would be unwound (--call-graph ehframe does it all the "
        "same)";
  if (!choice.refusal.empty()) return choice;
  const std::uint16_t frames = stacks.max_frames == 0 ? kDefaultUnwoundFrames : stacks.max_frames;
  choice.frames = std::min(frames, kMostUnwoundFrames);
  return choice;
}

constexpr std::uint64_t kDefaultRingBytes = std::uint64_t{2} << 20;
constexpr std::uint64_t kThreadRingBytes = std::uint64_t{512} << 10;  // --per-thread: for each thread
constexpr std::uint64_t kSidebandRingBytes = std::uint64_t{256} << 10, kLeastPages = 16,
                        kMostRingPages = std::uint64_t{1} << 18;  // -m auto
// The fields of a ring buffer's sample.
constexpr std::uint64_t kRingFields = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid |
                                      abi::kSampleTime | abi::kSampleCpu | abi::kSamplePeriod |
                                      abi::kSampleRaw;
constexpr int kMonotonic = 1;  // CLOCK_MONOTONIC

using bpf::ChannelKind;

// Options that a ready-made recorder cannot have, whose events come through ring buffers or maps of BPF.
Result<> check_recorder(const std::string& name, bool is_summary, const RecordOptions& options) {
  if (options.files.overwrite)
    return use_error("--overwrite: -e " + name +
                     (is_summary ? " is counted in the kernel and read at the end; leave the option out"
                                 : " does not write into the rings that are overwritten; --switch-output "
                                   "--switch-max-files N keeps the last files"));
  if (!options.target.cgroups.empty())
    return use_error("-G: -e " + name + " chooses cgroups by its own option: -e \"" + name +
                     "/cgroup='NAME'/\" -a");
  return Done{};
}

// A map has counts, without time and CPU.
Result<> check_summary(const std::string& summary, const std::string& object, ChannelKind kind,
                       const RecordOptions& options) {
  if (options.files.overwrite)
    return use_error("--overwrite: " + summary +
                     " is read at the end; a perf event array has its last events");
  if (!options.target.cgroups.empty())
    return use_error(
        "-G: " + summary +
        " counts without cgroups; use --filter 'cgroup == \"/NAME\"', if its program calls tacho_wants() "
        "(tacho/emit.h)");
  if (!options.target.cpus.empty())
    return use_error("-C: " + summary + " counts on all CPUs; leave the option out");
  if (kind == ChannelKind::Summary || options.target.watch == Watch::System) return Done{};
  if (is_recorder(object))
    return use_error("-e " + object +
                     ": it counts all threads, so record it with -a; a COMMAND only sets the duration "
                     "then: -e " +
                     object + " -a -- COMMAND");
  return use_error(summary +
                   " counts all threads: record it with -a, or have its program call tacho_wants() "
                   "(tacho/emit.h)");
}

// A usage error if the map does not support the options. A perf event array has one slot for each CPU. A ring
// buffer is filled regardless of the kernel's target; only the headers of its events are known. `object`: its
// path, or the name of a ready-made recorder.
Result<> check_channel(const std::string& object, const std::string& map, ChannelKind kind,
                       const RecordOptions& options) {
  if (options.target.per_thread)
    return use_error("--per-thread: events of BPF programs have a ring for each CPU; leave the option out");
  if (kind == ChannelKind::PerfEventArray) return Done{};
  if (is_recorder(object))
    if (auto done = check_recorder(object, bpf::is_summary(kind), options); !done) return done;
  if (bpf::is_summary(kind)) return check_summary("the summary '" + map + "'", object, kind, options);
  const std::string ring = "the ring buffer '" + map + "'";
  if (options.files.overwrite)
    return use_error("--overwrite: " + ring + " cannot be overwritten; use a perf event array");
  if (!options.target.cgroups.empty())
    return use_error("-G: " + ring + " has no cgroup of its events; use a perf event array");
  if (kind == ChannelKind::RingWithHeaders) return Done{};
  if (options.target.watch != Watch::System || !options.target.cpus.empty())
    return use_error(
        ring +
        " has no threads of its events: record all with -a, or reserve its events with tacho_reserve() "
        "(tacho/emit.h)");
  return Done{};
}

class Planner {
 public:
  Planner(const RecordOptions& options, std::span<const ObjectFacts> objects, const PlanTarget& target,
          const Host& host)
      : options_(options), objects_(objects), target_(target), host_(host) {}

  Result<Plan> make(std::span<const EventRequest> requests) {
    if (auto done = choose_cpus(); !done) return std::move(done.error());
    choose_tasks();
    choose_rings();
    std::size_t object = 0;
    for (const EventRequest& request : requests) {
      if (request.object() != nullptr) {
        if (auto done = add_channels(request, object++); !done) return std::move(done.error());
      } else if (auto added = add_any(request); !added) {
        return std::move(added.error());
      }
    }
    read_groups();
    object = 0;
    for (const EventRequest& request : requests) {
      if (request.object() == nullptr) continue;
      if (auto done = bind(request, object++); !done) return std::move(done.error());
    }
    if (auto done = add_sample_programs(); !done) return std::move(done.error());
    if (plan_.events.empty()) return nothing_to_record();
    warn_of_objects();
    if (auto done = check_channels(); !done) return std::move(done.error());
    warn_of_unfed_events();
    warn_of_probes(requests);
    add_sideband();
    if (options_.sampling.switches) add_switches();
    return std::move(plan_);
  }

 private:
  Result<> choose_cpus() {
    plan_.cpus = host_.online_cpus;
    if (options_.target.per_thread) plan_.cpus = {-1};
    const bool is_all = options_.target.watch == Watch::System && options_.target.cpus.empty();
    if (is_all && !options_.target.per_thread) plan_.later_cpus = host_.offline_cpus;
    if (options_.target.cpus.empty()) return Done{};
    for (const int cpu : options_.target.cpus)
      if (std::ranges::find(host_.online_cpus, cpu) == host_.online_cpus.end())
        return use_error(
            fmt::format("-C: CPU {} is not online here ({} are)", cpu, host_.online_cpus.size()));
    plan_.cpus = options_.target.cpus;
    return Done{};
  }

  void choose_tasks() {
    if (options_.target.watch == Watch::System) plan_.tasks = {-1};
    if (options_.target.watch != Watch::Command)
      plan_.tasks.insert(plan_.tasks.end(), target_.threads.begin(), target_.threads.end());
    if (plan_.tasks.empty() && target_.command) plan_.tasks = {*target_.command};
  }

  // The largest rings that fit into the budget, together with the sideband's.
  std::uint64_t pages_within(std::uint64_t budget) {
    const std::uint64_t threads =
        options_.target.per_thread ? std::max<std::size_t>(plan_.tasks.size(), 1) : 1;
    const std::uint64_t rings = plan_.cpus.size() * threads;
    const std::uint64_t each = budget / rings;
    const std::uint64_t pages = (each - std::min(each, kSidebandRingBytes)) / host_.page_size;
    const std::uint64_t chosen = std::clamp(std::bit_floor(pages), kLeastPages, kMostRingPages);
    plan_.notes.push_back(fmt::format(
        "-m auto: {} rings of {} KiB and {} KiB, {:.1f} MiB in all", rings, chosen * host_.page_size >> 10,
        kSidebandRingBytes >> 10,
        static_cast<double>(rings * (chosen * host_.page_size + kSidebandRingBytes)) / (1 << 20)));
    return chosen;
  }

  void choose_rings() {
    const std::uint64_t bytes =
        options_.ring_bytes.value_or(options_.target.per_thread ? kThreadRingBytes : kDefaultRingBytes);
    const std::uint64_t wanted_pages =
        options_.ring_budget
            ? pages_within(*options_.ring_budget)
            : std::max<std::uint64_t>(
                  options_.ring_pages.value_or((bytes + host_.page_size - 1) / host_.page_size), 1);
    plan_.ring_pages = static_cast<std::size_t>(std::bit_ceil(wanted_pages));
    if (plan_.ring_pages != wanted_pages) {
      plan_.notes.push_back("-m: rings have a power of two of pages: " + std::to_string(plan_.ring_pages) +
                            " instead of " + std::to_string(wanted_pages));
    }
    plan_.sideband_pages =
        static_cast<std::size_t>(std::max<std::uint64_t>(kSidebandRingBytes / host_.page_size, 1));
  }

  std::uint32_t watermark(std::size_t pages) const {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(pages * host_.page_size / 4, std::numeric_limits<std::uint32_t>::max()));
  }

  // -t selects these threads only, without their children.
  Following following() const {
    return {options_.target.watch != Watch::Threads && !options_.target.per_thread, options_.target.inherit,
            options_.target.watch == Watch::Command && !options_.time.begins_late()};
  }

  Result<std::size_t> add(const EventRequest& request) {
    auto attr = sampling_attr(request, options_.sampling, host_, following(), plan_.notes);
    if (!attr) return std::move(attr.error());
    attr->wakeup = watermark(plan_.ring_pages);
    if (options_.files.overwrite) attr->flags |= abi::kWriteBackward;
    PlannedEvent planned{.attr = std::move(*attr),
                         .name = request.recorder.empty() ? request.name : own_name(request.name, request),
                         .filter = request.filter,
                         .filter_fields = request.filter_fields,
                         .probe_target = request.probe_target,
                         .most_precise = request.most_precise,
                         .condition = request.condition};
    if (auto done = choose_unwinding(request, planned); !done) return std::move(done.error());
    if (request.group != 0) join_group(request, planned);
    plan_.events.push_back(std::move(planned));
    return plan_.events.size() - 1;
  }

  // The samples of a probe with arguments come from a bpf-output event of its name.
  Result<std::size_t> add_any(const EventRequest& request) {
    if (!request.no_sum.empty())
      plan_.notes.push_back(
          fmt::format("-e {}: each hit is a sample, and nothing is added up in the kernel: {}", request.text,
                      request.no_sum));
    if (request.placed_arguments.empty() && !request.sum) return add(request);
    if (request.group != 0 || options_.target.per_thread)
      return use_error("-e " + request.text +
                       ": a probe with arguments cannot be in a group or with --per-thread");
    auto added = add(output_of(request));
    if (!added) return added;
    PlannedEvent probe{.attr = probe_attr(request),
                       .name = request.name,
                       .probe_target = request.probe_target,
                       .condition = request.condition};
    probe.attr.size = plan_.events[*added].attr.size;
    auto sum = request.sum;
    if (sum && plan_.events[*added].attr.samples(abi::kSampleCallchain)) {
      if (request.tracepoint() != nullptr)
        return use_error("-e " + request.text +
                         ": hits of a tracepoint are counted without stacks (-g); -e "
                         "stackcount/tracepoint='...'/ counts stacks");
      plan_.notes.push_back("-e " + request.text +
                            ": with -g each hit is a sample, and nothing is added up in the kernel");
      sum.reset();
    }
    if (sum) {
      auto fits = check_channel(request.text, request.catalogue_name, bpf::ChannelKind::Summary, options_);
      if (!fits) return std::move(fits.error());
      leave_to_recorder(plan_.events[*added]);
    }
    plan_.argument_probes.push_back({*added, std::move(probe), request.placed_arguments, sum});
    if (options_.target.watch != Watch::System) {
      PlannedEvent& event = plan_.events[*added];
      event.system_wide = true;
      event.attr.flags &= ~std::uint64_t{abi::kEnableOnExec};
      plan_.follows_threads = true;
    }
    return added;
  }

  Result<> choose_unwinding(const EventRequest& request, PlannedEvent& planned) {
    const StackOptions stacks = stacks_of(request, options_.sampling);
    auto choice = unwinding_of(request, planned.attr, stacks, options_.target.per_thread);
    if (!choice) return std::move(choice.error());
    planned.unwound_frames = choice->frames;
    planned.may_use_frame_pointers = choice->may_use_frame_pointers;
    planned.unwind_fallback_reason = std::move(choice->refusal);
    if (!planned.unwind_fallback_reason.empty()) (void)do_without_unwinding(planned, plan_.notes);
    // The kernel part: the kernel refuses more than its limit.
    if (planned.unwound_frames != 0 && planned.attr.sample_max_stack > kKernelFrames)
      planned.attr.sample_max_stack = 0;
    return Done{};
  }

  // The first event of a group is its leader; the others count while the leader does.
  void join_group(const EventRequest& request, PlannedEvent& planned) {
    const std::pair key{request.option, request.group};
    if (group_ != key) {
      group_ = key;
      leader_ = plan_.events.size();
    }
    planned.leader = leader_;
    planned.group_name = request.group_name;
    if (leader_ != plan_.events.size())
      planned.attr.flags &= ~std::uint64_t{abi::kDisabled | abi::kEnableOnExec};
  }

  // With the modifier S only the leader samples, with the counts of the whole group and without children.
  // Readers expect the fields of a member's samples to be the leader's.
  void read_groups() {
    for (std::size_t leader = 0; leader < plan_.events.size(); ++leader) {
      const auto in_group = [leader](const PlannedEvent& event) { return event.leader == leader; };
      const auto first = plan_.events.begin() + static_cast<std::ptrdiff_t>(leader);
      const auto end = std::find_if_not(first, plan_.events.end(), in_group);
      const auto reads = [](const PlannedEvent& event) { return event.attr.samples(abi::kSampleRead); };
      if (end - first < 2 || std::none_of(first, end, reads)) continue;
      first->attr.sample_type |= abi::kSampleRead;
      for (auto member = first; member != end; ++member) {
        member->attr.read_format |= abi::kReadGroup;
        member->attr.flags &= ~std::uint64_t{abi::kInherit};
        if (member == first) continue;
        member->attr.sample_type = first->attr.sample_type;
        member->attr.sample_period = 0;
        member->attr.flags &= ~std::uint64_t{abi::kFreq};
      }
    }
  }

  std::string own_name(const std::string& wanted, const EventRequest& request) {
    std::string name = distinct_name(wanted, [this](const std::string& one) {
      return std::ranges::find(plan_.events, one, &PlannedEvent::name) != plan_.events.end();
    });
    if (name != wanted)
      plan_.notes.push_back("the events of -e " + request.text + " are recorded as '" + name + "'");
    return name;
  }

  // The short form: one event for each channel, named by the object.
  Result<> add_channels(const EventRequest& request, std::size_t object) {
    if (!request.object()->bindings.empty()) return Done{};
    for (const MapBinding& channel : objects_[object].channels) {
      EventRequest output;
      output.config = abi::kBpfOutput;
      output.name = own_name(channel.event, request);
      // An event with stacks by declaration: the program takes the whole stack, with or without -g.
      if (options_.sampling.stacks.method == CallGraph::None && takes_stacks(objects_[object], channel.map))
        output.call_graph = CallGraph::Best;
      const auto added = add(output);
      if (!added) return added.error();
      connect({object, channel.map, *added});
      for (const auto& [map, event] : objects_[object].unfinished)
        if (event == channel.event && can_make_samples(plan_.events[*added].attr))
          plan_.unfinished.push_back({object, map, *added, bpf::ChannelKind::RingWithHeaders});
    }
    return Done{};
  }

  // Whether the recorder can write samples of this event itself: it can set every field but a call chain.
  static bool can_make_samples(const format::EventAttr& attr) {
    std::uint64_t known = kRingFields | abi::kSampleAddr | abi::kSampleCallchain;
    for (const std::uint64_t each : kFieldsBehindPayload) known |= each;
    return (attr.sample_type & ~known) == 0;
  }

  // Whether the program puts user stacks into the payload.
  static bool takes_stacks(const ObjectFacts& object, const std::string& map) {
    return object.walk_use.in_payloads && std::ranges::count(object.rings_with_stacks, map) != 0;
  }

  // The recorder makes the event's samples, with the fields that it has. Returns whether stacks were
  // requested for them.
  static bool leave_to_recorder(PlannedEvent& event) {
    format::EventAttr& attr = event.attr;
    const bool has_stack = attr.samples(abi::kSampleCallchain);
    attr.sample_type &= kRingFields;
    attr.flags &= ~std::uint64_t{abi::kExcludeCallchainKernel | abi::kExcludeCallchainUser};
    attr.branch_sample_type = attr.sample_regs_user = attr.sample_regs_intr = 0;
    attr.sample_stack_user = attr.sample_max_stack = 0;
    return has_stack;
  }

  // Joins a channel to its event. The recorder makes the samples of a ring buffer: they have only the fields
  // that the headers of its events have.
  void connect(Connection connection) {
    const auto& rings = objects_[connection.object].rings;
    const auto ring = std::ranges::find(rings, connection.map, [](const auto& each) { return each.first; });
    if (ring != rings.end()) {
      connection.kind = ring->second;
      format::EventAttr& attr = plan_.events[connection.event].attr;
      const bool has_cgroup =
          attr.samples(abi::kSampleCgroup) &&
          std::ranges::count(objects_[connection.object].rings_with_cgroups, connection.map) != 0;
      const bool has_stack = leave_to_recorder(plan_.events[connection.event]);
      if (has_cgroup) attr.sample_type |= abi::kSampleCgroup;
      const auto& with_stacks = objects_[connection.object].rings_with_stacks;
      const bool brings_stack = std::ranges::find(with_stacks, connection.map) != with_stacks.end();
      if (brings_stack) attr.sample_type |= abi::kSampleCallchain;
      const ObjectFacts& object = objects_[connection.object];
      if (has_stack && !brings_stack)
        plan_.notes.push_back(
            object.is_recorder() ? "-e " + object.path + " records no stacks"
            : bpf::is_summary(connection.kind)
                ? "the summary '" + connection.map +
                      "' has only stacks that its program puts into the map (ROLE(\"stack\") in "
                      "tacho/event.h)"
                : "the ring buffer '" + connection.map +
                      "' has only stacks that its program puts into the payload (ROLE(\"stack\") in "
                      "tacho/event.h); with a perf event array, the kernel records stacks");
      if (connection.kind == bpf::ChannelKind::PlainRing)
        plan_.warnings.push_back(
            "events of the ring buffer '" + connection.map +
            "' have the time at which they were read, and no thread or CPU; to record these, use "
            "RING_CHANNEL() and tacho_reserve() (tacho/emit.h)");
    }
    plan_.connections.push_back(std::move(connection));
  }

  // The long form: "map:channel.event=evt", where evt is another -e.
  Result<> bind(const EventRequest& request, std::size_t object) {
    for (const MapBinding& binding : request.object()->bindings) {
      const auto& channels = objects_[object].channels;
      if (std::ranges::find(channels, binding.map, &MapBinding::map) == channels.end()) {
        return unknown_map(objects_[object], binding.map);
      }
      const auto is_meant = [&](const PlannedEvent& event) {
        return event.name == binding.event && event.attr.is_bpf_output();
      };
      const auto event = std::ranges::find_if(plan_.events, is_meant);
      if (event == plan_.events.end()) return unknown_event(binding);
      connect({object, binding.map, static_cast<std::size_t>(event - plan_.events.begin())});
    }
    return Done{};
  }

  static Error unknown_map(const ObjectFacts& object, const std::string& map) {
    std::vector<std::string> names;
    for (const MapBinding& channel : object.channels) names.push_back(channel.map);
    const std::string tail = names.empty() ? "; it has none" : cli::suggestion_or_all(map, names);
    return use_error(object.path + ": unknown map '" + map + "' (a perf event array)" + tail);
  }

  Error unknown_event(const MapBinding& binding) const {
    std::vector<std::string> names;
    for (const PlannedEvent& event : plan_.events) {
      if (event.attr.is_bpf_output()) names.push_back(event.name);
    }
    const std::string nearest = cli::suggestion(binding.event, names);
    return use_error(
        "map:" + binding.map + ".event=" + binding.event + ": no bpf-output event has that name" +
        (nearest.empty() ? "; add -e bpf-output/no-inherit,name=" + binding.event + "/" : nearest));
  }

  // The named events to which a program can be attached.
  std::vector<std::size_t> sampling_events() const {
    std::vector<std::size_t> found;
    for (std::size_t event = 0; event < plan_.events.size(); ++event) {
      const format::EventAttr& attr = plan_.events[event].attr;
      const bool is_dummy = attr.type == abi::kSoftware && attr.config == abi::kDummy;
      if (plan_.events[event].probe_target.empty() && attr.type != abi::kTracepoint &&
          attr.type != abi::kBreakpoint && !is_dummy && !attr.is_bpf_output())
        found.push_back(event);
    }
    return found;
  }

  // Programs run on the sampling events of -e, in the order of both; without any, each on a cpu-clock event.
  Result<> add_sample_programs() {
    auto& programs = plan_.sample_programs;
    for (std::size_t object = 0; object < objects_.size(); ++object)
      for (const std::string& name : objects_[object].sample_programs) programs.push_back({object, name, 0});
    std::vector<std::size_t> events = sampling_events();
    if (!events.empty() && events.size() < programs.size()) return too_few_events(events);
    if (events.empty()) {
      for (const SampleProgram& program : programs) {
        EventRequest clock;
        clock.config = abi::kCpuClock;
        clock.name = programs.size() == 1 ? "cpu-clock" : program.program;
        const auto added = add(clock);
        if (!added) return added.error();
        events.push_back(*added);
      }
    }
    for (std::size_t i = 0; i < programs.size(); ++i) {
      programs[i].event = events[i];
      PlannedEvent& event = plan_.events[events[i]];
      if (!event.condition.empty())
        return use_error(
            "--filter: '" + event.name +
            "' runs your BPF program, and the kernel runs only one on an event; put --filter after "
            "the -e of the program, if that calls tacho_wants() (tacho/emit.h)");
      if (std::exchange(event.unwound_frames, 0) == 0) continue;
      event.unwind_fallback_reason = "it runs your BPF program";
      (void)do_without_unwinding(event, plan_.notes);
    }
    return Done{};
  }

  Error too_few_events(const std::vector<std::size_t>& events) const {
    const SampleProgram& attached = plan_.sample_programs[events.size() - 1];
    const SampleProgram& other = plan_.sample_programs[events.size()];
    const auto described = [&](const SampleProgram& program) {
      return fmt::format("'{}' ({})", program.program, objects_[program.object].path);
    };
    return use_error(fmt::format(
        "the kernel runs only one perf_event program on an event, and programs {} and {} would share '{}'; "
        "give a sampling event with -e for each ({} in all), or none: then each gets its own cpu-clock",
        described(attached), described(other), plan_.events[events.back()].name,
        plan_.sample_programs.size()));
  }

  // A map has one slot for each CPU, so one event samples every thread there, and a table of threads filters.
  Result<> check_channels() {
    if (plan_.connections.empty()) return Done{};
    for (const auto& [object, map, event, kind] : plan_.connections)
      if (auto done = check_channel(objects_[object].path, map, kind, options_); !done) return done;
    if (options_.target.watch == Watch::System) return Done{};
    for (const Connection& connection : plan_.connections) {
      PlannedEvent& event = plan_.events[connection.event];
      if (event.leader)
        return use_error("the event '" + event.name +
                         "' of a BPF program is in a group, which can be recorded with -a only");
      event.system_wide = true;
      event.attr.flags &= ~std::uint64_t{abi::kEnableOnExec};
    }
    plan_.follows_threads = true;
    return Done{};
  }

  Error nothing_to_record() const {
    const ObjectFacts& object = objects_.front();
    std::string what =
        "nothing to record: " + object.path +
        " has no perf event array, no ring buffer, no SUMMARY() and no program of section perf_event";
    for (const std::string& line : object.unsupported_output) what += "; " + line;
    return use_error(what);
  }

  void warn_of_objects() {
    for (const ObjectFacts& object : objects_)
      for (const std::string& line : object.unsupported_output)
        plan_.warnings.push_back(object.path + ": " + line);
    for (const ObjectFacts& object : objects_)
      for (const std::string& line : object.doubts) plan_.warnings.push_back(object.path + ": " + line);
  }

  void warn_of_unfed_events() {
    for (std::size_t event = 0; event < plan_.events.size(); ++event) {
      const bool is_fed =
          std::ranges::find(plan_.connections, event, &Connection::event) != plan_.connections.end() ||
          std::ranges::find(plan_.argument_probes, event, &ArgumentProbe::event) !=
              plan_.argument_probes.end();
      if (is_fed || !plan_.events[event].attr.is_bpf_output()) continue;
      const std::string& name = plan_.events[event].name;
      plan_.warnings.push_back(fmt::format(
          "no BPF map feeds the event {0}, which stays empty; add -e PROGRAM.bpf.o/map:MAP.event={0}/",
          name));
    }
  }

  // The kernel cannot inherit a probe (sampling_attr()).
  void warn_of_probes(std::span<const EventRequest> requests) {
    const auto would_inherit = [this](const EventRequest& request) {
      return request.probe() != nullptr && request.arguments.empty() && !request.sum &&
             request.inherit.value_or(following().inherits);
    };
    if (!following().children || options_.target.watch == Watch::System) return;
    if (std::ranges::none_of(requests, would_inherit)) return;
    plan_.warnings.push_back(
        options_.target.watch == Watch::Command
            ? "probes record the command's first thread only; -a with --filter 'comm == \"NAME\"' records "
              "all "
              "threads of a program"
            : "probes record the threads that run now, not the ones that they start; -a records all threads");
  }

  void add_sideband() {
    format::EventAttr attr = sideband_attr(options_.sampling, following());
    attr.wakeup = watermark(plan_.sideband_pages);
    // Unwinding a new process may need its mappings (record/stacks), so each sideband record must wake the
    // recorder.
    const auto is_unwound = [](const PlannedEvent& event) { return event.unwound_frames != 0; };
    if (std::ranges::any_of(plan_.events, is_unwound)) attr.wakeup = 1;
    // It takes no samples, but without exclude_kernel the kernel checks the right to sample itself.
    const auto spares_kernel = [](const PlannedEvent& event) { return event.attr.has(abi::kExcludeKernel); };
    const bool user_only = std::ranges::all_of(plan_.events, spares_kernel);
    // Unwinding stack copies needs the data mappings between code mappings, too, and so do names of data.
    const auto keeps_stack = [](const PlannedEvent& event) {
      return event.attr.samples(abi::kSampleStackUser);
    };
    if (std::ranges::any_of(plan_.events, keeps_stack) ||
        std::ranges::any_of(objects_, &ObjectFacts::has_data_addresses))
      attr.flags |= abi::kMmapData;
    if (user_only) attr.flags |= abi::kExcludeKernel | abi::kExcludeHv;
    plan_.events.push_back(
        {.attr = std::move(attr), .name = user_only ? "dummy:uHG" : "dummy:HG", .is_sideband = true});
  }

  // Context switches can be many: they go into the samples' rings, which are large, and not into the
  // sideband, where they could cost a mapping. One event that follows everything has them for all.
  void add_switches() {
    const auto follows = [](const PlannedEvent& event) { return !event.attr.is_bpf_output(); };
    const auto carrier = std::ranges::find_if(plan_.events, follows);  // the sideband event is last
    carrier->attr.flags |= abi::kContextSwitch;
  }

  const RecordOptions& options_;
  std::span<const ObjectFacts> objects_;
  const PlanTarget& target_;
  const Host& host_;
  Plan plan_;
  std::pair<std::size_t, std::size_t> group_;  // the last one: index of its -e, and of the group in it
  std::size_t leader_ = 0;                     // of that group
};

}  // namespace

format::EventAttr sideband_attr(const SamplingOptions& options, Following following) {
  format::EventAttr attr = common_attr(options);
  attr.type = abi::kSoftware;
  attr.config = abi::kDummy;
  attr.sample_period = 1;
  attr.flags |= kSidebandFlags;
  if (options.build_ids) attr.flags |= abi::kBuildId;
  if (options.data_addresses) attr.flags |= abi::kMmapData;
  if (following.children && following.inherits) attr.flags |= abi::kInherit;
  return attr;
}

Result<Plan> make_plan(const RecordOptions& options, std::span<const EventRequest> requests,
                       std::span<const ObjectFacts> objects, const PlanTarget& target, const Host& host) {
  const bool has_ring =
      std::ranges::any_of(objects, [](const ObjectFacts& each) { return !each.rings.empty(); }) ||
      std::ranges::any_of(requests, [](const EventRequest& each) { return each.sum.has_value(); });
  // BPF programs have only this clock, and all records need the same one.
  if (has_ring && options.sampling.clock.value_or(kMonotonic) != kMonotonic)
    return use_error("-k: BPF programs have times of CLOCK_MONOTONIC only; -k mono is the default with them");
  RecordOptions with_clock = options;
  if (has_ring) with_clock.sampling.clock = kMonotonic;
  auto plan = Planner(with_clock, objects, target, host).make(requests);
  if (!plan) return plan;
  choose_stacks_of_objects(*plan, objects);
  return options.target.has_all_events_in_each ? repeated_in_cgroups(std::move(*plan), target.cgroups)
                                               : in_cgroups(std::move(*plan), target.cgroups);
}

Result<Plan> in_cgroups(Plan plan, std::span<const format::Fd> cgroups) {
  if (cgroups.empty()) return plan;
  const auto events = static_cast<std::size_t>(
      std::ranges::count(plan.events, false, [](const PlannedEvent& event) { return event.is_sideband; }));
  if (cgroups.size() != 1 && cgroups.size() != events) {
    return use_error("-G: " + std::to_string(cgroups.size()) + " cgroups for " + std::to_string(events) +
                     (events == 1 ? " event" : " events") +
                     "; give one for all events, or one for each (an empty name: all cgroups)");
  }
  std::size_t next = 0;
  for (PlannedEvent& event : plan.events) {
    if (event.is_sideband) continue;
    event.cgroup = cgroups[cgroups.size() == 1 ? 0 : next].get();
    ++next;
  }
  return plan;
}

Result<Plan> repeated_in_cgroups(Plan plan, std::span<const format::Fd> cgroups) {
  if (cgroups.size() > 1 && !(plan.connections.empty() && plan.sample_programs.empty())) {
    return use_error(
        "BPF objects are loaded once, so their events can be limited to one cgroup only; give one of the " +
        std::to_string(cgroups.size()) + ", or their common parent (-G)");
  }
  const auto sideband =
      std::ranges::find_if(plan.events, [](const PlannedEvent& event) { return event.is_sideband; });
  const std::vector<PlannedEvent> once(plan.events.begin(), sideband);
  std::vector<PlannedEvent> all;
  for (const format::Fd& cgroup : cgroups) {
    const std::size_t begin = all.size();
    for (PlannedEvent event : once) {
      event.cgroup = cgroup.get();
      if (event.leader) *event.leader += begin;
      all.push_back(std::move(event));
    }
  }
  all.insert(all.end(), sideband, plan.events.end());
  plan.events = std::move(all);
  return plan;
}

}  // namespace tacho::record
