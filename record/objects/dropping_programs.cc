#include "record/objects/dropping_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "bpf/object/loaded_programs.h"
#include "format/records/perf_abi.h"

namespace tacho::record {
namespace {

std::vector<DroppingProgram> own_programs(std::span<const bpf::LoadedObject> objects) {
  std::vector<DroppingProgram> found;
  for (const bpf::LoadedObject& object : objects) {
    const auto dropping = object.dropping_programs();
    for (const format::AttachedProgram& program : object.programs()) {
      if (program.id == 0 || std::ranges::find(dropping, program.id) == dropping.end()) continue;
      found.push_back({program, {}});
    }
  }
  return found;
}

// Makes a text safe for a capture and a terminal: names of programs are untrusted.
std::string plain(std::string_view name) {
  std::string text(name);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// Adds the event to the program's list.
void add(std::vector<DroppingProgram>& found, const bpf::TracepointProgram& program,
         const std::string& event) {
  auto known = std::ranges::find(found, program.id, [](const auto& each) { return each.program.id; });
  if (known == found.end()) {
    if (!program.may_drop) return;
    found.push_back({{plain(program.name), "tracepoint", "", program.id, "attached"}, {}});
    known = found.end() - 1;
  }
  if (std::ranges::find(known->events, event) == known->events.end()) known->events.push_back(event);
}

std::string what_it_drops(const DroppingProgram& dropping) {
  if (dropping.events.empty()) return "samples of other recorders on its tracepoint";
  return fmt::format("samples of {}", fmt::join(dropping.events, ", "));
}

}  // namespace

std::vector<DroppingProgram> dropping_programs(const Plan& plan, const KernelEvents& events,
                                               std::span<const bpf::LoadedObject> objects) {
  std::vector<DroppingProgram> found = own_programs(objects);
  // Programs belong to the tracepoint, so one descriptor of an event lists all.
  std::vector<bool> is_asked(plan.events.size());
  for (const OpenEvent& open : events.open_events()) {
    if (is_asked[open.event] || plan.events[open.event].attr.type != format::abi::kTracepoint) continue;
    is_asked[open.event] = true;
    for (const bpf::TracepointProgram& program : bpf::programs_on_tracepoint(open.fd.get()))
      add(found, program, plan.events[open.event].name);
  }
  return found;
}

std::string warning_of(const DroppingProgram& dropping) {
  const format::AttachedProgram& program = dropping.program;
  const bool is_of_recording = !program.object.empty();
  return fmt::format(
      "warning: {} does not always return 1: each time the kernel drops {}, and counts no loss{}",
      is_of_recording ? fmt::format("{}: program '{}' ({})", program.object, program.name, program.section)
                      : fmt::format("BPF program '{}' (id {}), not ours,", program.name, program.id),
      what_it_drops(dropping),
      is_of_recording
          ? "; end it with `return 1`, or attach it with SEC(\"raw_tp/...\") or SEC(\"tp_btf/...\")"
          : "");
}

std::vector<format::AttachedProgram> attached_programs(std::span<const bpf::LoadedObject> objects,
                                                       std::span<const DroppingProgram> dropping) {
  std::vector<format::AttachedProgram> programs;
  for (const bpf::LoadedObject& object : objects) {
    programs.insert(programs.end(), object.programs().begin(), object.programs().end());
  }
  for (const DroppingProgram& each : dropping) {
    auto known = std::ranges::find(programs, each.program.id, &format::AttachedProgram::id);
    if (known == programs.end()) known = programs.insert(known, each.program);
    known->state += "; does not always return 1: drops " + what_it_drops(each) + ", uncounted";
  }
  return programs;
}

}  // namespace tacho::record
