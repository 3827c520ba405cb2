#include "record/program_listing.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <chrono>
#include <utility>

#include "format/printable.h"
#include "record/json_line.h"

namespace tacho::record {
namespace {

using format::printable;

bool matches(const std::string& pattern, const std::string& name) {
  if (pattern.empty()) return true;
  if (pattern.find_first_of("*?[") == std::string::npos) return name.find(pattern) != std::string::npos;
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// Of no run there is no time.
std::string time_of_one(std::uint64_t runs, std::uint64_t nanoseconds) {
  return runs == 0 ? "-" : std::to_string(nanoseconds / runs);
}

std::string cost_cells(const bpf::ListedProgram& program, const std::map<std::uint32_t, bpf::Cost>& costs,
                       std::uint64_t seconds) {
  const auto found = costs.find(program.id);
  const bpf::Cost cost = found == costs.end() ? bpf::Cost{} : found->second;
  const auto stretch = static_cast<double>(seconds);
  const double share = static_cast<double>(cost.nanoseconds) / 1e9 / stretch * 100;
  return fmt::format("{:>10.0f} {:>8} {:>6.2f} %", static_cast<double>(cost.runs) / stretch,
                     time_of_one(cost.runs, cost.nanoseconds), share);
}

std::string counted_cells(const bpf::ListedProgram& program) {
  if (program.runs == 0) return fmt::format("{:>12} {:>8}", "-", "-");
  return fmt::format("{:>12} {:>8}", program.runs, time_of_one(program.runs, program.nanoseconds));
}

}  // namespace

std::string programs_in_lines(const std::vector<bpf::ListedProgram>& programs,
                              const std::optional<std::map<std::uint32_t, bpf::Cost>>& costs,
                              std::uint64_t seconds, bool with_details) {
  const std::string cost_names = costs ? fmt::format("{:>10} {:>8} {:>8}", "runs/s", "ns/run", "of a CPU")
                                       : fmt::format("{:>12} {:>8}", "runs", "ns/run");
  std::string out =
      fmt::format("{:>6}  {:<16} {:<16} {:<24} {}  {}\n", "id", "type", "tag", "name", cost_names, "where");
  const std::string indent(8, ' ');
  for (const bpf::ListedProgram& program : programs) {
    const std::string cost = costs ? cost_cells(program, *costs, seconds) : counted_cells(program);
    out += fmt::format("{:>6}  {:<16} {:<16} {:<24} {}  {}\n", program.id, program.type, program.tag,
                       printable(program.name), cost,
                       program.places.empty() ? "-" : printable(program.places.front()));
    for (std::size_t i = 1; i < program.places.size(); ++i)
      out += fmt::format("{}also at: {}\n", indent, printable(program.places[i]));
    if (!with_details) continue;
    for (const std::string& holder : program.holders)
      out += fmt::format("{}held by: {}\n", indent, printable(holder));
    out += fmt::format(
        "{}loaded by user {}; {} bytes, {} of machine code; {} runs skipped as one was under way\n", indent,
        program.loaded_by, program.translated_bytes, program.machine_bytes, program.skipped);
  }
  return out;
}

std::string programs_in_json(const std::vector<bpf::ListedProgram>& programs,
                             const std::optional<std::map<std::uint32_t, bpf::Cost>>& costs,
                             std::uint64_t seconds) {
  std::string out;
  for (const bpf::ListedProgram& program : programs) {
    JsonLine json;
    json.number("id", program.id);
    json.text("type", program.type);
    json.text("name", program.name);
    json.text("tag", program.tag);
    json.number("loaded_by", program.loaded_by);
    json.number("translated_bytes", program.translated_bytes);
    json.number("machine_bytes", program.machine_bytes);
    json.number("runs", program.runs);
    json.number("run_ns", program.nanoseconds);
    json.number("skipped", program.skipped);
    if (costs) {
      const auto found = costs->find(program.id);
      const bpf::Cost cost = found == costs->end() ? bpf::Cost{} : found->second;
      json.number("measured_seconds", seconds);
      json.number("measured_runs", cost.runs);
      json.number("measured_ns", cost.nanoseconds);
    }
    json.texts("places", program.places);
    json.texts("holders", program.holders);
    out += json.finished();
  }
  return out;
}

Result<std::string> list_bpf_programs(const ListOptions& options) {
  std::optional<std::map<std::uint32_t, bpf::Cost>> costs;
  if (options.cost_seconds) {
    auto measured = bpf::measure_programs(std::chrono::seconds(*options.cost_seconds));
    if (!measured) return std::move(measured.error());
    costs = std::move(*measured);
  }
  auto programs = bpf::list_programs();
  if (!programs) return std::move(programs.error());
  std::erase_if(*programs,
                [&](const bpf::ListedProgram& program) { return !matches(options.pattern, program.name); });
  if (programs->empty() && !options.pattern.empty())
    return use_error("no loaded BPF program matches '" + options.pattern + "'");
  const std::uint64_t seconds = options.cost_seconds.value_or(0);
  if (options.json) return programs_in_json(*programs, costs, seconds);
  if (programs->empty()) return std::string("no BPF program is loaded\n");
  return programs_in_lines(*programs, costs, seconds, options.fields);
}

}  // namespace tacho::record
