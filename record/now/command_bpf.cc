// `tacho bpf` without a capture: records the BPF programs that are loaded now, and runs tacho-report.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "bpf/object/loaded_programs.h"
#include "cli/exit_status.h"
#include "cli/option_rows.h"
#include "cli/options.h"
#include "cli/text_table.h"
#include "format/base/printable.h"
#include "format/records/perf_abi.h"
#include "record/host/attachments.h"
#include "record/host/host.h"
#include "record/host/report_program.h"
#include "record/host/running_kernel.h"
#include "record/list/listing.h"
#include "record/messages.h"
#include "record/now/host_now.h"
#include "record/parse_text.h"
#include "record/session/capture_head.h"

namespace tacho::record {
namespace {

// Writes a capture without samples; the views show its header.
Result<> write_programs(const format::Fd& memory, const std::vector<std::string>& command_line) {
  auto programs = bpf::loaded_programs();
  if (!programs) return std::move(programs.error());
  // For the names of functions that programs call.
  auto symbols = read_kernel_symbols(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  if (!symbols) return std::move(symbols.error());
  auto attached = gather_attachments(std::move(symbols->list));
  if (!attached) return std::move(attached.error());
  format::Features features;
  features.attachments = std::move(*attached);
  features.environment = describe_host(command_line);
  add_loaded_programs(*programs, features.environment);
  if (const auto listed = bpf::list_programs())
    for (const bpf::ListedProgram& program : *listed)
      for (const std::string& each : program.attachments)
        features.environment.bpf_places.emplace_back(std::to_string(program.id), each);
  format::EventAttr attr;
  attr.size = format::kCompatibleAttrSize;
  attr.type = format::abi::kSoftware;
  attr.config = format::abi::kDummy;
  attr.sample_type = format::abi::kSampleIdentifier | format::abi::kSampleTid | format::abi::kSampleTime;
  format::EventSet events;
  events.add_event({.attr = attr, .name = "dummy", .ids = {1}});
  auto writer = capture_in_memory(memory, events, std::move(features));
  if (!writer) return std::move(writer.error());
  return writer->close_file({});
}

// The options of --interval: the costs of programs in each interval.
struct Watching {
  std::uint64_t seconds = 0;
  std::optional<std::uint64_t> count;  // intervals; nullopt: until a signal
  bool as_json = false, is_wide = false;
};

// nullopt: without --interval, tacho-report handles all options.
Result<std::optional<Watching>> watching_of(const std::vector<std::string>& arguments) {
  Watching watching;
  const auto is_interval = [](const std::string& word) { return word.starts_with("--interval"); };
  if (std::ranges::none_of(arguments, is_interval)) return std::optional<Watching>();
  cli::CommandLine line;
  line.program = "tacho bpf";
  line.options = {cli::number("--interval", "S", "seconds", 1, 86400, watching.seconds),
                  {"--count", cli::Takes::Value, "N", "intervals",
                   [&watching](std::string_view text) {
                     return store(watching.count, cli::parse_number("--count", text, 1, ~std::uint32_t{0}));
                   }},
                  cli::flag("--json", "as JSON", watching.as_json),
                  cli::flag("--wide", "whole names", watching.is_wide)};
  line.words = [](const std::vector<std::string>& words) -> Result<> {
    return use_error("'" + words.front() +
                     "': --interval without FILE shows the programs of this host, all of them");
  };
  if (auto parsed = cli::parse(line, arguments); !parsed) return std::move(parsed.error());
  return std::optional(watching);
}

// False: a signal came.
bool sleep_for(std::uint64_t seconds, const StopSignals& signals) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    pollfd news{signals.fd(), POLLIN, 0};
    if (::poll(&news, 1, static_cast<int>(left.count())) > 0) return false;
  }
}

Costs counts_of(const std::vector<bpf::ListedProgram>& programs) {
  Costs counts;
  for (const bpf::ListedProgram& each : programs) counts[each.id] = {each.runs, each.nanoseconds};
  return counts;
}

// Prints a table for each interval, with the programs that ran in it, the most expensive first.
int watch(const Watching& watching, StopSignals& signals) {
  const auto statistics = bpf::count_runs();
  if (!statistics) return report_failure(statistics.error(), "bpf");
  auto before = bpf::list_programs();
  if (!before) return report_failure(before.error(), "bpf");
  Costs counts = counts_of(*before);
  for (std::uint64_t left = watching.count.value_or(~std::uint64_t{0}); left > 0; --left) {
    if (!sleep_for(watching.seconds, signals)) return cli::kWhole;
    auto programs = bpf::list_programs();
    if (!programs) return report_failure(programs.error(), "bpf");
    const Costs now = counts_of(*programs);
    Costs costs;
    for (const auto& [id, cost] : now)
      costs[id] = {cost.runs - counts[id].runs, cost.nanoseconds - counts[id].nanoseconds};
    counts = now;
    std::erase_if(*programs, [&](const bpf::ListedProgram& each) { return costs[each.id].runs == 0; });
    std::ranges::stable_sort(*programs, std::greater(),
                             [&](const bpf::ListedProgram& each) { return costs[each.id].nanoseconds; });
    // The terminal may have been resized.
    const std::size_t room = watching.is_wide ? 0 : cli::terminal_width();
    const std::string text = watching.as_json
                                 ? programs_in_json(*programs, costs, watching.seconds)
                                 : programs_in_lines(*programs, costs, watching.seconds, false, room) + '\n';
    if (const auto written = cli::write_stdout(format::printable_lines(text)); !written)
      return report_failure(written.error(), "bpf");
  }
  return cli::kWhole;
}

}  // namespace

int run_bpf(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line) {
  const auto watching = watching_of(arguments);
  if (!watching) return report_failure(watching.error(), "bpf");
  auto signals = StopSignals::block();
  if (!signals) return report_failure(signals.error(), "bpf");
  if (*watching) return watch(**watching, *signals);
  const auto program = report_program();
  if (!program)
    return report_failure(
        Error{"tacho-report is not installed beside tacho-record, and is needed to show the programs"},
        "bpf");
  const auto memory = memory_for_capture();
  if (!memory) return report_failure(memory.error(), "bpf");
  if (auto done = write_programs(*memory, command_line); !done) return report_failure(done.error(), "bpf");
  std::vector<std::string> words{*program, "bpf", "--no-pager"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto shown = show_capture(std::move(words), &*memory, {}, *signals);
  if (!shown) return report_failure(shown.error(), "bpf");
  return signals->start_ended_by() != 0 ? 128 + signals->start_ended_by() : *shown;
}

}  // namespace tacho::record
