#include "record/plan/sampling_attr.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/records/perf_abi.h"
#include "record/events/sample_fields.h"

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
  std::string note =
      fmt::format("-F: {} Hz is more than kernel.perf_event_max_sample_rate; sampling at {} Hz", frequency,
                  host.max_sample_rate);
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  return host.max_sample_rate;
}

// A term of the event wins over -c and -F, these over the default: an event each of a tracepoint, 4000
// samples a second else.
Result<> set_rate(format::EventAttr& attr, const EventRequest& request, const SamplingOptions& options,
                  const Host& host, std::vector<std::string>& notes) {
  const bool own = request.period.has_value() || request.frequency.has_value();
  const auto period = own ? request.period : options.period;
  auto frequency = own ? request.frequency : options.frequency;
  if (!own && options.most_frequent) frequency = std::max<std::uint64_t>(host.max_sample_rate, 1);
  if (period || attr.is_bpf_output()) {
    attr.sample_period = attr.is_bpf_output() ? 1 : *period;
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

}  // namespace

void copy_user_stacks(format::EventAttr& attr, std::uint32_t bytes) {
  attr.sample_type |= abi::kSampleRegsUser | abi::kSampleStackUser | abi::kSampleAddr | abi::kSampleDataSrc;
  attr.flags |= abi::kExcludeCallchainUser;
  attr.sample_stack_user = bytes;
  if (attr.sample_regs_user == 0) attr.sample_regs_user = all_registers();
}

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

namespace {

// The kernel and the rest: where samples are taken.
void choose_sides(format::EventAttr& attr, const SamplingOptions& options) {
  if (options.all_user) attr.flags = (attr.flags | abi::kExcludeKernel) & ~std::uint64_t{abi::kExcludeUser};
  if (options.all_kernel) attr.flags = (attr.flags | abi::kExcludeUser) & ~std::uint64_t{abi::kExcludeKernel};
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

}  // namespace

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
  choose_sides(attr, options);
  set_fields(attr, request, options);
  set_stacks(attr, stacks_of(request, options), options);
  // The kernel refuses an inheriting event in a perf event array. An inherited probe is worse: the kernel
  // reads the name of its file again, from the memory of the forking process, and fork and clone fail.
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

namespace {

namespace abi = format::abi;

// The program sees every hit of a tracepoint or probe, and walks before the kernel chooses.
bool has_walks_for_nothing(const EventRequest& request, const format::EventAttr& attr) {
  const bool is_tracepoint = attr.type == abi::kTracepoint;
  const bool is_chosen_later = attr.has(abi::kFreq) || attr.sample_period > 1;
  return (is_tracepoint && !request.filter.empty()) ||
         ((is_tracepoint || request.probe() != nullptr) && is_chosen_later);
}

std::string_view refusal_of(const EventRequest& request, const format::EventAttr& attr, bool is_asked_for,
                            bool per_thread) {
  if (per_thread) return "unwound stacks need a ring for each CPU, and --per-thread has none";
  if (!is_asked_for && has_walks_for_nothing(request, attr))
    return "not every hit becomes a sample, and each would be unwound (--call-graph ehframe does it all the "
           "same)";
  return {};
}

}  // namespace

Result<UnwindingChoice> unwinding_of(const EventRequest& request, const format::EventAttr& attr,
                                     const StackOptions& stacks, bool per_thread) {
  const bool is_asked_for = stacks.method == CallGraph::Unwound;
  UnwindingChoice choice;
  if (!is_asked_for && stacks.method != CallGraph::Best) return choice;
  if (attr.has(abi::kExcludeCallchainUser)) return choice;  // there is no user's side
  if (is_asked_for && per_thread)
    return use_error("--call-graph ehframe: its stacks need a ring for each CPU; leave --per-thread out");
  choice.may_use_frame_pointers = !is_asked_for;
  choice.refusal = refusal_of(request, attr, is_asked_for, per_thread);
  if (!choice.refusal.empty()) return choice;
  const std::uint16_t frames = stacks.max_frames == 0 ? kDefaultUnwoundFrames : stacks.max_frames;
  choice.frames = std::min(frames, kMostUnwoundFrames);
  return choice;
}

}  // namespace tacho::record
