#include "record/options/sampling_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "cli/expression.h"
#include "cli/option_rows.h"
#include "format/records/perf_abi.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

using cli::flag;
using cli::Takes;

Result<> set_frequency(SamplingOptions& options, std::string_view text) {
  options.most_frequent = text == "max";
  if (options.most_frequent) return Done{};
  return store(options.frequency,
               cli::parse_number("-F", text, 1, std::numeric_limits<std::uint32_t>::max()));
}

Result<> set_call_graph(SamplingOptions& options, std::string_view text) {
  auto stacks = parse_call_graph(text);
  if (!stacks) return std::move(stacks.error()).in("--call-graph");
  if (stacks->max_frames == 0) stacks->max_frames = options.stacks.max_frames;
  options.stacks = *stacks;
  return Done{};
}

// "=?" lists the registers; without a value all are recorded.
Result<> set_registers(SamplingOptions& options, std::uint64_t& registers, std::string_view text,
                       std::string_view option) {
  if (text == "?") {
    options.show_registers = true;
    return Done{};
  }
  auto parsed = text.empty() ? Result<std::uint64_t>(all_registers()) : parse_registers(text);
  if (!parsed) return std::move(parsed.error()).in(option);
  if (*parsed == 0)
    return use_error(std::string(option) + ": the registers of this machine are not known here");
  registers = *parsed;
  return Done{};
}

// On x86 the kernel gives three weights instead of one; perf requests these.
#if defined(__x86_64__) || defined(__i386__)
constexpr std::uint64_t kWeight = abi::kSampleWeightStruct;
#else
constexpr std::uint64_t kWeight = abi::kSampleWeight;
#endif

cli::Option sets_bits(std::string names, std::string help, std::uint64_t bits, std::uint64_t& target) {
  return {std::move(names), Takes::Nothing, "", std::move(help),
          [bits, &target](std::string_view) -> Result<> {
            target |= bits;
            return Done{};
          }};
}

// Fields that the kernel fills into every sample on request.
struct FieldRow {
  const char* names;
  const char* help;
  std::uint64_t bits;
};
constexpr FieldRow kFields[] = {
    {"--phys-data", "Record physical data addresses, if the processor reports virtual ones",
     abi::kSamplePhysAddr},
    {"--data-page-size", "Record the page size of the data address", abi::kSampleDataPageSize},
    {"--code-page-size", "Record the page size of the code address", abi::kSampleCodePageSize},
    {"-W,--weight", "Record the cost of a memory access, if the processor reports it (0 for software events)",
     kWeight},
    {"--transaction",
     "Record the state of memory transactions, if the processor reports it (0 for software events)",
     abi::kSampleTransaction},
    {"-R,--raw-samples", "Record raw data of all events that have it (tracepoints always do)",
     abi::kSampleRaw},
};

// Adds a filter to the events of the last -e; all filters of an event must match. `of_tracepoints` is in the
// kernel's language, `of_others` in tacho's, which is compiled to BPF.
Result<> add_filter(std::vector<EventRequest>& events, const std::string& of_tracepoints,
                    const std::string& of_others, const char* option) {
  if (events.empty()) return use_error(std::string(option) + ": it belongs after the -e that it is for");
  const std::size_t last = events.back().option;
  const auto is_tracepoint = [](const EventRequest& event) {
    return event.tracepoint() != nullptr && !event.sum;
  };
  const auto is_meant = [last](const EventRequest& event) { return event.option == last; };
  const auto first = std::ranges::find_if(events, is_meant);
  const bool are_tracepoints = is_tracepoint(*first);
  if (std::any_of(first, events.end(),
                  [&](const auto& each) { return is_tracepoint(each) != are_tracepoints; }))
    return use_error(
        std::string(option) +
        ": tracepoints have another language for it than other events; give the tracepoints a -e "
        "and a --filter of their own");
  const std::string& filter = are_tracepoints ? of_tracepoints : of_others;
  if (!are_tracepoints) {
    if (auto sound = cli::parse_expression(option, filter); !sound) return std::move(sound.error());
  }
  for (EventRequest& event : events) {
    if (!is_meant(event)) continue;
    event.filter = event.filter.empty() ? filter : "(" + event.filter + ") && (" + filter + ")";
  }
  return Done{};
}

// For tracepoints: common_pid is a thread's number, and the recorder has several threads, so their name is
// compared too.
std::string own_exclusion() {
  std::string filter = "common_pid != " + std::to_string(getpid());
  return filter + " && COMM != \"tacho-record\" && COMM != \"tacho-reader\"";
}

// "1/100"
Result<> set_sample_rate(SamplingOptions& options, std::string_view text) {
  constexpr std::uint64_t kMost = 1'000'000'000;
  if (!text.starts_with("1/"))
    return use_error("--sample-rate: '" + std::string(text) +
                     "' is not 1/N, as 1/100 for every hundredth event");
  return store(options.rate_of_objects.one_in,
               cli::parse_number("--sample-rate 1/", text.substr(2), 1, kMost));
}

void add_rate_rows(std::vector<cli::Option>& rows, SamplingOptions& options) {
  rows.push_back(
      {"-F,--freq", Takes::Value, "HZ",
       "Samples a second of counters, clocks and software events; max: the kernel's limit. Default: 4000",
       [&options](std::string_view text) { return set_frequency(options, text); }});
  rows.push_back(flag("--strict-freq", "Refuse a frequency above the kernel's limit instead of lowering it",
                      options.strict_frequency));
  rows.push_back({"--sample-rate", Takes::Value, "1/N",
                  "Record every Nth event of BPF objects. Objects that call tacho_wants() count on each CPU "
                  "and drop the other events in the kernel, before a stack is walked. For other objects the "
                  "recorder drops events, counting over all CPUs: all such objects together, and each ring "
                  "buffer without RING_CHANNEL() by itself",
                  [&options](std::string_view text) { return set_sample_rate(options, text); }});
  rows.push_back(cli::number("--max-rate", "N",
                             "Record at most N events a second of BPF objects: of each that calls "
                             "tacho_wants(), of all others together, and of each ring buffer without "
                             "RING_CHANNEL(). The number of dropped events is printed at the end",
                             1, std::uint64_t{1} << 40, options.rate_of_objects.most_a_second));
  rows.push_back({"-c,--count", Takes::Value, "PERIOD",
                  "Take a sample every PERIOD events (of clocks: ns) instead",
                  [&options](std::string_view text) {
                    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
                    return store(options.period, cli::parse_number("-c", text, 1, kMost));
                  }});
}

void add_stack_rows(std::vector<cli::Option>& rows, SamplingOptions& options) {
  rows.push_back(
      {"-g", Takes::Nothing, "",
       "Record the stack of every sample: as --call-graph ehframe, if kernel and rights allow it; else as "
       "stack copies, which are unwound when the recording ends, and for events of BPF programs as fp. A "
       "message gives the reason (-v and tacho header: the method of every event)",
       [&options](std::string_view) -> Result<> {
         // A method that was named is kept, as perf does.
         if (options.stacks.method == CallGraph::None) options.stacks.method = CallGraph::Best;
         return Done{};
       }});
  rows.push_back({"--call-graph", Takes::Value, "METHOD",
                  "Record the stack of every sample. fp[,FRAMES]: by frame pointers; dwarf[,BYTES]: copies "
                  "registers and BYTES of the stack (default: 8192), to be unwound when the capture is read; "
                  "lbr: the calls recorded by the processor; ehframe[,FRAMES]: unwound in the kernel by the "
                  "binaries' .eh_frame, complete without frame pointers (x86-64, arm64)",
                  [&options](std::string_view text) { return set_call_graph(options, text); }});
  rows.push_back({"--max-stack", Takes::Value, "FRAMES",
                  "Record at most FRAMES frames of a stack. Default: kernel.perf_event_max_stack",
                  [&options](std::string_view text) {
                    return store(options.stacks.max_frames,
                                 cli::parse_number("--max-stack", text, 1, kMostStackFrames));
                  }});
  rows.push_back(flag("--user-callchains", "Record only the user part of stacks", options.user_callchains));
  rows.push_back(
      flag("--kernel-callchains", "Record only the kernel part of stacks", options.kernel_callchains));
  rows.push_back(sets_bits("-b,--branch-any", "Record the branches before each sample (-j any)",
                           abi::kBranchAny, options.branches));
  rows.push_back({"-j,--branch-filter", Takes::Value, "FILTER[,FILTER]",
                  "Record branches of these kinds before each sample, if the processor can: any, any_call, "
                  "any_ret, ind_call, ind_jmp, call, cond, in_tx, no_tx, abort_tx, stack, save_type, priv; "
                  "u, k and hv choose the privilege level",
                  [&options](std::string_view text) -> Result<> {
                    auto bits = parse_branch_filter(text);
                    if (!bits) return std::move(bits.error()).in("-j");
                    options.branches |= *bits;
                    return Done{};
                  }});
}

void add_field_rows(std::vector<cli::Option>& rows, SamplingOptions& options) {
  rows.push_back(
      flag("-d,--data", "Record data addresses with each sample, and data mappings", options.data_addresses));
  for (const FieldRow& row : kFields)
    rows.push_back(sets_bits(row.names, row.help, row.bits, options.more_fields));
  rows.push_back({"-I,--intr-regs", Takes::Optional, "REGISTERS",
                  "Record the registers at each sample: ax,bx,...; without a value all, =? lists them",
                  [&options](std::string_view text) {
                    return set_registers(options, options.registers_intr, text, "--intr-regs");
                  }});
  rows.push_back({"--user-regs", Takes::Optional, "REGISTERS",
                  "Record the user registers at the entry into the kernel; values as for -I",
                  [&options](std::string_view text) {
                    return set_registers(options, options.registers_user, text, "--user-regs");
                  }});
  rows.push_back(
      {"-k,--clockid", Takes::Value, "CLOCK",
       "Take times from monotonic, monotonic_raw, boottime, realtime or tai. Default: the kernel's "
       "perf clock",
       [&options](std::string_view text) { return store(options.clock, parse_clock(text), "-k"); }});
}

}  // namespace

Result<> add_events(std::vector<EventRequest>& events, std::string_view text) {
  return add_parsed(events, parse_events(text));
}

Result<> add_parsed(std::vector<EventRequest>& events, Result<std::vector<EventRequest>> parsed) {
  if (!parsed) return std::move(parsed.error());
  const std::size_t option = events.empty() ? 1 : events.back().option + 1;
  for (EventRequest& event : *parsed) event.option = option;
  std::move(parsed->begin(), parsed->end(), std::back_inserter(events));
  return Done{};
}

void add_sampling_rows(std::vector<cli::Option>& rows, SamplingOptions& options,
                       std::vector<EventRequest>& events) {
  rows.push_back(
      {"--filter", Takes::Value, "FILTER",
       "Record only events of the -e before it that match FILTER. The kernel evaluates it, before a stack is "
       "walked. For tracepoints, in the kernel's language: 'prev_pid > 0 && prev_comm ~ \"ba*\"'. For other "
       "events, in the language of --where, with pid, tid, uid, gid, cpu, comm, cgroup and cgroup_id: 'comm "
       "~ \"nginx*\" && uid != 0'; for BPF objects that call tacho_wants_this() also with members of the "
       "payload. If it is repeated, all filters must match",
       [&events](std::string_view text) {
         return add_filter(events, std::string(text), std::string(text), "--filter");
       }});
  rows.push_back({"--exclude-perf", Takes::Nothing, "",
                  "Leave out the recorder's own events of the -e before it", [&events](std::string_view) {
                    return add_filter(events, own_exclusion(),
                                      fmt::format("pid != {} && comm != \"tacho-reader\"", getpid()),
                                      "--exclude-perf");
                  }});
  add_rate_rows(rows, options);
  add_stack_rows(rows, options);
  rows.push_back(
      flag("--all-user", "Sample only user code, whatever the events' modifiers are", options.all_user));
  rows.push_back(
      flag("--all-kernel", "Sample only the kernel, whatever the events' modifiers are", options.all_kernel));
  add_field_rows(rows, options);
  rows.push_back(flag("-s,--stat", "Record each thread's counts when it ends (report -T shows them)",
                      options.counts_of_threads));
  rows.push_back(flag("--switch-events", "Record context switches", options.switches));
  rows.push_back(flag("-B,--no-buildid", "Record mappings without build ids", options.build_ids, false));
}

Result<> check_sampling(const SamplingOptions& options) {
  if (options.period && (options.frequency || options.most_frequent))
    return use_error("-F and -c exclude each other");
  if (options.all_user && options.all_kernel)
    return use_error("--all-user and --all-kernel exclude each other");
  if (options.user_callchains && options.kernel_callchains) {
    return use_error(
        "--user-callchains and --kernel-callchains exclude each other; -g alone takes both parts");
  }
  return Done{};
}

}  // namespace tacho::record
