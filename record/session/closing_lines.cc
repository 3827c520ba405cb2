#include "record/session/closing_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/message_text.h"
#include "cli/nearest.h"
#include "format/container/loss_text.h"
#include "format/records/perf_abi.h"
#include "record/events/event_names.h"
#include "record/events/recorders.h"
#include "record/session/recording_losses.h"

namespace tacho::record {

namespace abi = format::abi;

std::vector<std::string> first_views(std::span<const EventRequest> events, const std::string& capture) {
  std::vector<std::string> lines, names;
  for (const EventRequest& request : events) {
    if (!request.view.empty()) {
      const std::string chosen =
          events.size() > 1 ? " --event " + cli::shell_word(request.name) : std::string();
      lines.push_back(fmt::format("{}: {}{} -i {}", request.catalogue_name, request.view, chosen,
                                  cli::shell_word(capture)));
      continue;
    }
    const RecorderRow* const row = find_recorder(request.recorder);
    if (row == nullptr) continue;
    const std::string name(row->object.empty() ? row->name : row->object);
    names.push_back(distinct_name(
        name, [&names](const std::string& one) { return std::ranges::find(names, one) != names.end(); }));
    // With several events a view gets --event, except tacho report, which shows all, and tacho calls, which
    // finds its events by their fields.
    const std::string_view view = view_of(*row, request.constants());
    const bool is_repeated = std::ranges::count(events, request.recorder, &EventRequest::recorder) > 1;
    const bool is_chosen = events.size() > 1 && !view.starts_with("tacho calls") &&
                           (is_repeated || !view.starts_with("tacho report"));
    lines.push_back(fmt::format("{}: {}{} -i {}", row->name, view,
                                is_chosen ? " --event " + names.back() : "", cli::shell_word(capture)));
  }
  return lines;
}

namespace {

// 0: it is no regular file.
std::uint64_t size_of_file(const std::string& name) {
  struct stat file {};
  return ::stat(name.c_str(), &file) == 0 && S_ISREG(file.st_mode) ? static_cast<std::uint64_t>(file.st_size)
                                                                   : 0;
}

}  // namespace

void report_captured(const CaptureFacts& captured, const RecordOptions& options, const Messages& messages) {
  std::vector<std::string> files = captured.files;
  if (captured.place == options.output && !options.files.to_pipe) files = {options.output};
  std::uint64_t bytes = 0;
  for (const std::string& name : files) bytes += size_of_file(name);
  if (bytes == 0) bytes = captured.bytes;  // it went into a pipe or a device
  const auto& views = captured.views;
  messages.bracketed(fmt::format("Captured and wrote {:.3f} MB {} ({} samples, {} lost){}",
                                 static_cast<double>(bytes) / (1 << 20), captured.place, captured.samples,
                                 captured.lost, views.size() == 1 ? "; " + views.front() : ""));
  if (views.size() > 1)
    for (const std::string& view : views) messages.bracketed(view);
}

void report_limit(const LoopReport& report, const RecordOptions& options, const Messages& messages) {
  if (report.limit == Limit::Size)
    messages.warn(fmt::format("{}: the capture has reached --max-size; the recording ends{}", options.output,
                              report.counts.samples > report.kept.samples
                                  ? fmt::format(", and {} samples that did not fit are dropped",
                                                report.counts.samples - report.kept.samples)
                                  : ""));
  if (report.limit == Limit::Free)
    messages.warn(options.output +
                  ": its file system has less free space than --min-free; the recording ends");
}

void report_merged_switches(const LoopReport& report, const Messages& messages) {
  if (report.merged_switches == 0) return;
  messages.bracketed(
      fmt::format("--switch-output-event: {}, {} of them while the next file was being started, which "
                  "started no file",
                  cli::counted(report.switch_events, "event"), report.merged_switches));
}

namespace {

// "process 12", "threads 12 and 2 more"; empty: another target.
std::string watched_tasks(const Target& target) {
  const bool are_processes = target.watch == Watch::Processes;
  if ((!are_processes && target.watch != Watch::Threads) || target.ids.empty()) return "";
  std::string text = are_processes ? "process" : "thread";
  const std::size_t more = target.ids.size() - 1;
  if (more != 0) text += are_processes ? "es" : "s";
  text += fmt::format(" {}", target.ids.front());
  return more == 0 ? text : text + fmt::format(" and {} more", more);
}

constexpr std::uint64_t kCpuCycles = 0;  // PERF_COUNT_HW_CPU_CYCLES

// Whether the event comes only while a program runs, at a given rate.
bool is_clock(const PlannedEvent& event) {
  const auto& attr = event.attr;
  return (attr.type == abi::kSoftware && (attr.config == abi::kCpuClock || attr.config == abi::kTaskClock)) ||
         (attr.type == abi::kHardware && attr.config == kCpuCycles);
}

// "min_us=10000, path=/x": the recorder's settings that leave events out, from its preset or as typed.
std::string filters_of(const EventRequest& request) {
  constexpr std::string_view kNoFilters[] = {"name", "binary", "type", "show", "depth", "lib", "count"};
  std::vector<std::string> filters;
  for (const ConstantSetting& one : request.constants())
    if (std::ranges::find(kNoFilters, one.name) == std::end(kNoFilters))
      filters.push_back(one.value ? one.name + "=" + *one.value : one.name);
  return fmt::format("{}", fmt::join(filters, ", "));
}

// A line for each recorder: its target, its settings, and a common cause of no events.
void report_silent_recorders(const RecordOptions& options, const Messages& messages) {
  std::string tasks = watched_tasks(options.target);
  if (tasks.empty() && options.target.watch == Watch::Command) tasks = "the command and what it starts";
  for (const EventRequest& request : options.events) {
    const RecorderRow* const row = find_recorder(request.recorder);
    if (row == nullptr || row->object.empty()) continue;
    std::string line = fmt::format("{}: no events recorded", row->name);
    if (!tasks.empty()) line += fmt::format(" of {} (-a records all processes)", tasks);
    if (const std::string filters = filters_of(request); !filters.empty())
      line += fmt::format("; {} may have left them out", filters);
    if (const std::string_view why = why_silent(row->object); !why.empty()) line += fmt::format("; {}", why);
    messages.bracketed(line);
  }
}

}  // namespace

void report_nothing(const OpenedRecording& recording, const RecordOptions& options,
                    const Messages& messages) {
  constexpr std::size_t kMostNames = 3;
  std::vector<std::string> names;
  bool are_clocks = true;
  for (const PlannedEvent& event : recording.plan.events) {
    if (event.is_sideband) continue;
    are_clocks = are_clocks && is_clock(event);
    if (std::ranges::find(names, event.name) == names.end()) names.push_back(event.name);
  }
  if (!recording.objects.empty()) return report_silent_recorders(options, messages);
  if (names.empty()) return;
  const std::string tasks = watched_tasks(options.target);
  const std::size_t more = names.size() > kMostNames ? names.size() - kMostNames : 0;
  names.resize(names.size() - more);
  std::string listed = fmt::format("{}", fmt::join(names, ", "));
  if (more != 0) listed += fmt::format(" and {} more", more);
  if (are_clocks && !tasks.empty()) {
    const bool is_process = options.target.watch == Watch::Processes;
    messages.bracketed(
        fmt::format("No event happened: {} slept, or ran less than one period of {}; tacho record -e offcpu "
                    "{} {} records where threads wait",
                    tasks, listed, is_process ? "-p" : "-t", options.target.ids.front()));
  } else {
    messages.bracketed(
        fmt::format("No event happened: {} did not come{}", listed, tasks.empty() ? "" : " in " + tasks));
  }
}

std::string not_redacted(const RecordOptions& options) {
  if (!options.files.redacts) return {};
  return fmt::format("; it is not redacted; tacho redact {} OUT redacts it", cli::shell_word(options.output));
}

namespace {

void report_skipped_runs(const OpenedRecording& recording, const Messages& messages) {
  std::uint64_t all = 0;
  std::vector<std::string> objects;
  for (const bpf::LoadedObject& object : recording.objects) {
    const std::uint64_t misses = object.recursion_misses();
    if (misses == 0) continue;
    all += misses;
    objects.push_back(fmt::format("{} {}", object.path(), misses));
  }
  if (all != 0)
    messages.warn(fmt::format(
        "warning: the kernel skipped {} of BPF programs ({}): another program or a bpf() call was "
        "active on their CPU; as many events may be missing or incomplete; fewer events in one "
        "recording, or no other BPF tool beside it, make it rarer",
        cli::counted(all, "run"), fmt::join(objects, ", ")));
  else if (!recording.objects.empty())
    messages.detail("no run of a BPF program was skipped");
}

// Calls that were nested deeper than the kernel can follow; larger rings would not help.
std::uint64_t report_too_deep(const OpenedRecording& recording, const Messages& messages) {
  constexpr std::size_t kMostNamed = 5;
  std::uint64_t all = 0;
  for (const bpf::LoadedObject& object : recording.objects) {
    const std::uint64_t lost = object.too_deep();
    if (lost == 0) continue;
    all += lost;
    const auto functions = object.too_deep_by_function();
    std::string named;
    for (std::size_t i = 0; i < std::min(functions.size(), kMostNamed); ++i)
      named += fmt::format("{}{} {}", i == 0 ? ": " : ", ", functions[i].first, functions[i].second);
    if (functions.size() > kMostNamed)
      named += fmt::format(" and {}", cli::counted(functions.size() - kMostNamed, "other function"));
    messages.warn(
        fmt::format("warning: {}: {} lost, nested deeper than the 64 calls of a thread whose returns "
                    "the kernel can follow; the calls around them are recorded{}",
                    object.path(), cli::counted(lost, "call"), named));
  }
  return all;
}

// Waits and calls of which only the begin is known.
std::uint64_t report_unseen_ends(const OpenedRecording& recording, std::uint64_t samples,
                                 const Messages& messages) {
  std::uint64_t all = 0;
  for (const bpf::LoadedObject& object : recording.objects) {
    const std::uint64_t lost = object.unseen_ends();
    if (lost == 0) continue;
    all += lost;
    messages.warn(fmt::format(
        "warning: {}: {} lost, {:.2f} % of all: the kernel did not trace the end, as when a thread is woken "
        "while it goes to sleep; the others are complete, and larger rings (-m) do not help",
        object.path(), cli::counted(lost, "event"),
        100.0 * static_cast<double>(lost) / static_cast<double>(samples + lost)));
  }
  return all;
}

// Samples of clocks that the kernel does not take while a BPF program or a bpf() call is active.
std::uint64_t report_left_out(const OpenedRecording& recording, const Messages& messages) {
  const auto due = recording.stacks ? recording.events.due_samples() : std::nullopt;
  const std::uint64_t lost = due ? recording.stacks->left_out_of(due->lost) : 0;
  if (lost == 0) return 0;
  messages.warn(fmt::format(
      "warning: {}: about {} of {} samples ({:.0f} %) are missing: the kernel takes none while a BPF program "
      "or a bpf() call is active on the CPU, as for other events and new programs here, nor while the host "
      "of "
      "a virtual machine runs others; with --call-graph fp the cost of BPF is in the samples",
      recording.plan.events[due->event].name, lost, due->lost,
      100.0 * static_cast<double>(lost) / static_cast<double>(due->lost)));
  return lost;
}

// Why events were lost, and which options help. Room helps against bursts only: copies of stacks fill any
// ring.
std::string full_rings(const Plan& plan) {
  const bool are_copied = std::ranges::any_of(plan.events, [](const PlannedEvent& event) {
    return (event.attr.sample_type & abi::kSampleStackUser) != 0;
  });
  const std::string room = fmt::format("-m {} (pages of each CPU) gives them more room", 4 * plan.ring_pages);
  if (are_copied)
    return "the rings were full of copied stacks: --call-graph fp copies none, -c N (or a lower -F) and "
           "--filter take fewer events, -e stackcount counts stacks in the kernel; " +
           room;
  return "the rings were full: -c N (or a lower -F) and --filter take fewer events; " + room;
}

}  // namespace

void report_losses(const RecordCounts& counts, std::uint64_t lost, const OpenedRecording& recording,
                   const Channels& channels, const RecordOptions& options, const Messages& messages) {
  const std::uint64_t samples = counts.samples;
  lost -= std::min(lost, report_too_deep(recording, messages));
  lost -= std::min(lost, report_unseen_ends(recording, samples, messages));
  lost -= std::min(lost, report_left_out(recording, messages));
  if (lost != 0) {
    const std::uint64_t all = samples + lost;
    const bool are_paused = recording.plan.events.front().attr.has(abi::kWriteBackward);
    messages.warn(fmt::format(
        "warning: {} of {} events were lost ({:.1f} %): {}", lost, all,
        100.0 * static_cast<double>(lost) / static_cast<double>(all),
        are_paused ? "they happened while the rings were read for a capture" : full_rings(recording.plan)));
    const auto losses =
        losses_in_capture(recording_losses(recording, &channels), counts, recording, options.target.cgroups);
    if (const std::string where = format::where_and_when_lost(losses); !where.empty())
      messages.warn("  lost: " + where);
  }
  if (const std::uint64_t sideband = recording.events.sideband_losses(); sideband != 0) {
    messages.warn(
        fmt::format("warning: {} of new processes and mappings lost: some frames will have no names",
                    cli::counted(sideband, "record")));
  }
  report_skipped_runs(recording, messages);
}

std::string silence_text(std::span<const std::string> silent) {
  if (silent.empty()) return {};
  constexpr std::size_t kMost = 5;
  std::string text = "names and stacks are missing of what does not answer (a file system that hangs?): " +
                     cli::some_of(silent.first(std::min(silent.size(), kMost)));
  if (silent.size() > kMost) text += fmt::format(", and {} more", silent.size() - kMost);
  return text;
}

}  // namespace tacho::record
