#include "record/session/recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "bpf/attach/follower.h"
#include "cli/exit_status.h"
#include "cli/nearest.h"
#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"
#include "record/events/target.h"
#include "record/host/answers.h"
#include "record/host/host.h"
#include "record/host/probes.h"
#include "record/kernel/perf_event.h"
#include "record/objects/channels.h"
#include "record/objects/conditions.h"
#include "record/objects/load_objects.h"
#include "record/objects/opened_objects.h"
#include "record/objects/ring_layout.h"
#include "record/output/file_series.h"
#include "record/plan/adaptation.h"
#include "record/plan/make_plan.h"
#include "record/plan/plan.h"
#include "record/plan/requests.h"
#include "record/plan/stack_choice.h"
#include "record/session/capture_end.h"
#include "record/session/capture_place.h"
#include "record/session/capture_series.h"
#include "record/session/capture_start.h"
#include "record/session/closing_lines.h"
#include "record/session/control.h"
#include "record/session/flight_recorder.h"
#include "record/session/recording_losses.h"
#include "record/session/running_recording.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

std::string suggestion_for(const bpf::UnknownWord& unknown) {
  std::string nearest = cli::suggestion(unknown.word, unknown.known);
  const bool is_near = !nearest.empty() || unknown.known.empty();
  return is_near ? nearest : "; there are: " + cli::some_of(unknown.known);
}

// Messages about declarations of an object that have no effect.
std::vector<std::string> doubts_of(const bpf::Declarations& declared) {
  constexpr std::size_t kMostDoubts = 10;
  std::vector<std::string> doubts;
  for (const std::string& problem : declared.problems)
    doubts.push_back(problem + "; its payload prints as hex");
  for (const bpf::UnknownWord& each : declared.unknown_words)
    doubts.push_back(fmt::format("{}: there is no {} '{}'{}", each.declaration, each.kind,
                                 cli::shortened(each.word), suggestion_for(each)));
  if (doubts.size() <= kMostDoubts) return doubts;
  const std::size_t more = doubts.size() - kMostDoubts;
  doubts.resize(kMostDoubts);
  doubts.push_back(fmt::format("{} more of its declarations have unknown words", more));
  return doubts;
}

std::vector<ObjectFacts> facts_of(const std::vector<bpf::UserObject>& objects) {
  std::vector<ObjectFacts> facts;
  for (const bpf::UserObject& object : objects) {
    ObjectFacts& fact = facts.emplace_back(ObjectFacts{object.path(),
                                                       {},
                                                       object.perf_event_programs(),
                                                       {},
                                                       {},
                                                       {},
                                                       object.walk_use(),
                                                       object.unsupported_output(),
                                                       doubts_of(object.declared()),
                                                       object.unfinished_channels()});
    for (const bpf::Channel& channel : object.channels()) {
      fact.channels.push_back({channel.map, channel.event});
      if (channel.kind != bpf::ChannelKind::PerfEventArray)
        fact.rings.emplace_back(channel.map, channel.kind);
      if (channel.summary ? channel.summary->has_stack()
                          : channel.schema && RingLayout(*channel.schema).has_stack())
        fact.rings_with_stacks.push_back(channel.map);
      if (channel.summary ? channel.summary->has_cgroup() : channel.kind == bpf::ChannelKind::RingWithHeaders)
        fact.rings_with_cgroups.push_back(channel.map);
      const auto is_data_address = [](const format::PayloadField& field) {
        return field.format == "uaddr" && field.role != "stack";
      };
      fact.has_data_addresses |=
          channel.schema && std::ranges::any_of(channel.schema->fields, is_data_address);
    }
  }
  return facts;
}

bool runs(const bpf::LoadedObject& object) {
  return std::ranges::any_of(object.programs(),
                             [](const auto& program) { return program.state == "attached"; });
}

// Whether the event can have samples: an event of BPF programs needs one that is attached.
bool can_happen(const Plan& plan, std::span<const bpf::LoadedObject> objects, std::size_t event) {
  if (plan.events[event].is_sideband) return false;
  if (!plan.events[event].attr.is_bpf_output()) return true;
  return std::ranges::any_of(plan.connections, [&](const Connection& connection) {
    return connection.event == event && runs(objects[connection.object]);
  });
}

// Warns about objects of whose optional programs none could be attached.
Result<> check_that_programs_run(const Plan& plan, std::span<const bpf::LoadedObject> objects,
                                 const Messages& messages) {
  bool any_idle = false;
  for (const bpf::LoadedObject& object : objects) {
    if (const std::size_t count = object.unprobed_functions(); count != 0)
      messages.note(fmt::format("{}: the kernel refuses probes on {} of the functions, which are left out",
                                object.path(), count));
    if (runs(object)) continue;
    any_idle = true;
    std::string line = "warning: " + object.path() + ": none of its programs was attached";
    for (const format::AttachedProgram& program : object.programs())
      line += fmt::format("; {} ({}): {}", program.name, program.section, program.state);
    messages.warn(line);
  }
  if (!any_idle) return Done{};
  for (std::size_t event = 0; event < plan.events.size(); ++event) {
    if (can_happen(plan, objects, event)) return Done{};
  }
  return Error{"nothing to record: no BPF program could be attached, and no other event was named"};
}

void print_plan(const OpenedRecording& recording, const Messages& messages) {
  const Plan& plan = recording.plan;
  for (const std::string& warning : plan.warnings) messages.warn("warning: " + warning);
  for (const DroppingProgram& program : recording.dropping) messages.warn(warning_of(program));
  for (const auto* notes : {&recording.notes, &plan.notes})
    for (const std::string& note : *notes) messages.note(note);
  for (const PlannedEvent& event : plan.events) {
    messages.detail(fmt::format(
        "event {}: type {}, config {}, {} {}, on {} CPUs", event.name, event.attr.type, event.attr.config,
        event.attr.has(abi::kFreq) ? "frequency" : "period", event.attr.sample_period, plan.cpus.size()));
  }
  for (const auto& [what, how] : facts_of_choice(plan)) messages.detail("stacks of " + what + ": " + how);
  for (const SampleProgram& program : plan.sample_programs) {
    messages.detail(fmt::format("{}: program {} runs on the samples of event {}",
                                recording.objects[program.object].path(), program.program,
                                plan.events[program.event].name));
  }
}

std::uint64_t sum_of(const std::vector<Losses>& losses) {
  std::uint64_t lost = 0;
  for (const Losses& loss : losses) lost += loss.lost;
  return lost;
}

void report_command(const OpenedRecording& recording, const LoopReport& report, const RecordOptions& options,
                    const Messages& messages) {
  if (!report.command_left_running) return;
  messages.warn(fmt::format("warning: {} (process {}) {}", options.command.front(), recording.workload->pid(),
                            report.failure || report.limit != Limit::None
                                ? "still runs and is no longer recorded"
                                : "did not end and still runs"));
}

// Warns about removed cgroups: in the open folder of a removed cgroup no file can be found.
void report_removed_cgroups(const OpenedRecording& recording, const RecordOptions& options,
                            const Messages& messages) {
  const auto& names = options.target.cgroups;
  for (std::size_t i = 0; i < std::min(recording.cgroups.size(), names.size()); ++i) {
    const format::Fd& folder = recording.cgroups[i];
    if (!folder || ::faccessat(folder.get(), "cgroup.procs", F_OK, 0) == 0 || errno == EACCES) continue;
    messages.warn(
        fmt::format("warning: -G: the cgroup {} was removed during the recording; a new cgroup of that name "
                    "is not recorded",
                    names[i]));
  }
}

std::string kept_samples_text(const RecordCounts& kept) {
  if (kept.samples == 0) return "no samples";
  const std::uint64_t span = kept.last_time - std::min(kept.first_time, kept.last_time);
  return fmt::format("the first {} samples, of {:.3f} s", kept.samples, static_cast<double>(span) / 1e9);
}

// In all files of a recording.
std::uint64_t bytes_written(CaptureOutput& output) {
  const FileSeries* const series = output.series();
  return series != nullptr ? series->total_bytes() : output.bytes();
}

// Truncates the file to its last whole round, and says what it has.
FinishResult finish_after_failure(CaptureOutput& output, Error failure, const LoopReport& report,
                                  const RecordOptions& options) {
  const auto cut = output.close_after_failure();
  Error error = std::move(failure).in(options.output);
  const auto kept = output.kept(report.kept);
  const std::uint64_t samples = kept ? kept->samples : 0;
  if (!kept)
    error.what += "; no capture was made";
  else
    error.what +=
        cut ? fmt::format("; the capture ends there: it has {} ({:.3f} MB)", kept_samples_text(*kept),
                          static_cast<double>(bytes_written(output)) / (1 << 20))
            : fmt::format("; its end could not be repaired: {}", cut.error().what);
  if (const std::uint64_t lost = report.counts.samples - std::min(samples, report.counts.samples); lost != 0)
    error.what += fmt::format("; {} samples{} are lost", lost, samples != 0 ? " after them" : "");
  return {std::move(error), static_cast<bool>(cut)};
}

// Printed when samples are enabled: then a script may start the workload.
std::string begin_line(const RecordOptions& options) {
  const TimeOptions& time = options.time;
  const std::string end = !options.command.empty() ? ""
                          : time.duration          ? "; it ends by itself"
                                                   : "; Ctrl-C ends it";
  if (options.files.overwrite)
    return "Recording into memory has begun: SIGUSR2 writes a capture of the last samples" + end;
  if (time.delay.starts_disabled) return "Ready: samples begin with the command enable of --control" + end;
  if (!time.begins_late()) return "Recording has begun" + end;
  return fmt::format("Recording has begun: samples after {} ms{}", time.delay.ranges.front().begin.count(),
                     end);
}

}  // namespace

Result<PreparedRecording> prepare_recording(const RecordOptions& options, const Messages& messages,
                                            std::shared_ptr<ForeignReader> reader,
                                            std::function<bool()> stop) {
  if (options.files.to_pipe && !options.files.is_named)
    messages.bracketed("Standard output is a pipe, so the capture goes there; -o FILE writes a file");
  auto host = read_host();
  if (!host) return std::move(host.error());
  PreparedRecording out;
  out.host = std::move(*host);
  out.reader = std::move(reader);
  out.stop = std::move(stop);
  auto tasks = tasks_of(options.target);
  if (!tasks) return std::move(tasks.error());
  out.tasks = std::move(*tasks);
  if (auto done = check_target_answers(*out.reader, options.command, options.target.watch, out.tasks); !done)
    return std::move(done.error());
  for (const auto* events : {&options.events, &options.switch_events})
    if (auto done = check_files_answer(*out.reader, *events); !done) return std::move(done.error());
  auto cgroups = open_cgroups(options.target.cgroups);
  if (!cgroups) return std::move(cgroups.error());
  out.cgroups = std::move(*cgroups);
  for (const int id : out.tasks.gone)
    messages.warn(fmt::format("warning: there is no process or thread {}; the others are recorded", id));
  auto probes = find_probes(options.events, out.stop);
  if (!probes) return std::move(probes.error());
  for (const std::string& warning : warnings_of_return_probes(*probes)) messages.warn("warning: " + warning);
  auto requests = resolve_tracepoints(*probes, out.tracing);
  if (!requests) return requests.error();
  const auto sees_pids = [](const EventRequest& each) {
    return each.object() != nullptr || !each.filter.empty() || each.sum;
  };
  if (std::ranges::any_of(*requests, sees_pids))
    if (auto done = store(out.numbers, bpf::PidNumbers::load()); !done) return std::move(done.error());
  auto objects = open_objects(*requests, out.numbers, out.stop, messages);
  if (!objects) return std::move(objects.error());
  out.objects = std::move(objects->objects);
  out.attachments = std::move(objects->attachments);
  if (options.command.empty() && !objects->environment.empty())
    return use_error(
        "-e fastcalls: its library is loaded when a program starts; record a COMMAND, or use -e calls");
  if (!options.command.empty()) {
    const auto output = options.files.to_screen ? Workload::Output::Nowhere
                        : options.files.to_pipe ? Workload::Output::ToErrors
                                                : Workload::Output::AsOurs;
    auto workload = Workload::create(options.command, output, objects->environment);
    if (!workload) return std::move(workload.error());
    if (auto pinned = workload->pin(options.repeat.cpus); !pinned) return std::move(pinned.error());
    out.workload.emplace(std::move(*workload));
  }
  set_own_pids(out.objects, out.workload ? static_cast<int>(out.workload->pid()) : 0, out.numbers);
  if (auto done = compile_conditions(*requests, out.objects, out.numbers); !done)
    return std::move(done.error());
  const bool leaves_out_kernel =
      may_exclude_kernel(options) && is_kept_out_of_kernel(out.host) && exclude_kernel(*requests) != 0;
  const auto facts = facts_of(out.objects);
  const PlanTarget target{out.tasks.threads,
                          out.workload ? std::optional(static_cast<int>(out.workload->pid())) : std::nullopt,
                          out.cgroups};
  auto plan = make_plan(options, *requests, facts, target, out.host);
  if (!plan) return std::move(plan.error());
  if (leaves_out_kernel)
    out.notes.push_back(
        fmt::format("kernel.perf_event_paranoid is {}: only user code is recorded (:u); to record the "
                    "kernel too, run as root or with CAP_PERFMON",
                    out.host.perf_event_paranoid));
  if (options.target.watch == Watch::System && out.cgroups.empty() && bpf::is_in_pid_namespace())
    out.notes.emplace_back(
        "this is a pid namespace (a container): processes outside of it are recorded with pid 0, without "
        "user stacks and names; record on the host, or in a container with its pid namespace (docker run "
        "--pid=host)");
  for (const std::string& name : options.target.cgroups) messages.detail("only processes in cgroup " + name);
  if (plan->follows_threads) {
    if (!out.numbers)
      if (auto done = store(out.numbers, bpf::PidNumbers::load()); !done) return std::move(done.error());
    // With -p or -t the command only sets the duration.
    const bool is_target = out.workload && options.target.watch == Watch::Command;
    const auto command = is_target ? std::optional(static_cast<int>(out.workload->pid())) : std::nullopt;
    auto follower = follow_target(options.target, out.tasks, command, out.numbers);
    if (!follower) return std::move(follower.error());
    out.follower = std::move(*follower);
  }
  if (!options.switch_events.empty()) {
    auto switches = plan_switch_events(options, target, out.host);
    if (!switches) return std::move(switches.error());
    out.switch_plan = std::move(*switches);
  }
  auto filtering = configure_objects(out.objects, out.follower ? &*out.follower : nullptr,
                                     options.sampling.rate_of_objects, messages);
  if (!filtering) return std::move(filtering.error());
  out.filtering = std::move(*filtering);
  out.plan = std::move(*plan);
  return out;
}

Result<std::unique_ptr<OpenedRecording>> open_events(PreparedRecording prepared, const Messages& messages) {
  raise_descriptor_limit();
  std::unique_ptr<KernelSymbolsAhead> symbols;
  if (prepared.objects.empty()) symbols = std::make_unique<KernelSymbolsAhead>(prepared.host.page_size);
  auto stacks = StackUnwinding::load(prepared.plan, prepared.host,
                                     [messages](std::string_view line) { messages.detail(line); });
  if (!stacks) return std::move(stacks.error());
  const Plan with_walker = adapted(std::move(prepared.plan), stacks->adaptation);
  auto loaded = load_objects(with_walker, prepared.objects, stacks->walker ? &*stacks->walker : nullptr);
  if (!loaded) return std::move(loaded.error());
  const Plan plan = adapted(with_walker, loaded->adaptation);
  if (auto done = check_that_programs_run(plan, loaded->objects, messages); !done)
    return std::move(done.error());
  auto opened =
      open_with_stacks(std::move(stacks->walker), plan, prepared.host, prepared.reader, prepared.stop);
  if (!opened) return std::move(opened.error());
  auto out =
      std::make_unique<OpenedRecording>(std::move(prepared), std::move(loaded->objects), std::move(*opened));
  out->kernel_symbols = std::move(symbols);
  const auto& events = out->events.open_events();
  if (auto done = connect_objects(*out, events); !done) return std::move(done.error());
  const auto table = out->follower ? std::optional(out->follower->table_fd()) : std::nullopt;
  bpf::StackWalker* const walks = out->stacks ? &out->stacks->walker() : nullptr;
  auto probes = ArgumentProbes::open(out->plan, out->events, out->host, table, walks);
  if (!probes) return std::move(probes.error());
  out->argument_probes = std::move(*probes);
  if (auto done = attach_conditions(out->plan, events, out->conditions); !done)
    return std::move(done.error());
  if (out->switch_plan) {
    auto switches = SwitchEvents::open(*out->switch_plan, out->host, out->stop);
    if (!switches) return std::move(switches.error());
    out->switches = std::make_unique<SwitchEvents>(std::move(*switches));
  }
  out->dropping = dropping_programs(out->plan, out->events, out->objects);
  print_plan(*out, messages);
  return out;
}

Result<std::unique_ptr<CaptureOutput>> begin_flight(OpenedRecording& recording, const RecordOptions& options,
                                                    const std::vector<std::string>& command_line,
                                                    const Messages& messages) {
  if (auto done = check_place(options); !done) return std::move(done.error());
  build_tables(recording, options);
  if (auto done = recording.events.enable_sideband(); !done) return std::move(done.error());
  auto now = describe_now(recording, options, command_line);
  if (!now) return std::move(now.error());
  for (const std::string& note : now->notes) messages.note(note);
  const auto last =
      options.files.is_named_by_time ? FlightRecorder::LastName::PathAndTime : FlightRecorder::LastName::Path;
  return std::unique_ptr<CaptureOutput>(
      std::make_unique<FlightRecorder>(options.output, options.files.most_files, last, std::move(*now),
                                       callbacks_of(recording, nullptr, options, command_line)));
}

Result<RunResult> run_recording(OpenedRecording& recording, std::unique_ptr<CaptureOutput>& output,
                                FilePinner* pinner, const RecordOptions& options,
                                const std::vector<std::string>& command_line, const StopSignals& signals,
                                const Messages& messages) {
  if (auto done = check_size(*output, options); !done) return std::move(done.error());
  auto running = RunningRecording::start(recording, output, pinner, options, command_line, messages);
  if (!running) {
    remove_output(options);
    return std::move(running.error());
  }
  auto loop = RecordLoop::create(**running, signals);
  if (!loop) {
    remove_output(options);
    return std::move(loop.error());
  }
  if (auto done = (*running)->enable(); !done) return std::move(done.error());
  messages.bracketed(begin_line(options));
  LoopReport report = loop->run_loop();
  report.left_out = (*running)->channels().left_out();
  return RunResult{std::move(report), std::move(*running)};
}

void leave_stuck(const LoopReport& report, const RecordOptions& options, const Messages& messages) {
  const std::string what = report.failure ? report.failure->what + ", and the" : "the";
  messages.warn(options.output + ": " + what +
                " disk does not respond: the file ends with what was written before" + not_redacted(options));
  _exit(cli::kNoOutput);
}

FinishResult finish_recording(const OpenedRecording& recording, const RunResult& finished,
                              CaptureOutput& output, const RecordOptions& options, const Messages& messages) {
  const LoopReport& report = finished.report;
  // The reader of a pipe may close it early.
  if (report.failure && report.failure->code == EPIPE && options.files.to_pipe) {
    messages.detail("the reader of the capture ended, so the recording ends");
    report_command(recording, report, options, messages);
    return {report.command_status.value_or(cli::kWhole)};
  }
  report_limit(report, options, messages);
  messages.detail(fmt::format("woken up {} times to write data", report.wakeups));
  if (report.failure) {
    report_command(recording, report, options, messages);
    return finish_after_failure(output, *report.failure, report, options);
  }
  std::uint64_t lost = report.counts.lost;
  if (recording.events.counts_losses())
    lost = sum_of(recording_losses(recording, &finished.running->channels()));
  else
    lost += sum_of(finished.running->channels().losses());
  const FileSeries* const series = output.series();
  CaptureFacts captured{.place = series != nullptr ? series->place(options.output) : options.output,
                        .files = series != nullptr ? series->files() : std::vector<std::string>(),
                        .bytes = bytes_written(output),
                        .samples = report.limit == Limit::Size ? report.kept.samples : report.counts.samples,
                        .lost = lost,
                        .views = {}};
  if (!options.files.to_pipe) captured.views = first_views(options.events, options.output);
  if (recording.stacks) {
    const StackCounts counts = recording.stacks->counts();
    const std::string line = stack_counts_text(counts);
    if (!line.empty() && are_mostly_whole(counts))
      messages.detail(line);
    else if (!line.empty())
      messages.bracketed(line);
    messages.detail(table_facts_text(recording.stacks->tables()));
  }
  if (report.counts.samples == 0 && lost == 0) report_nothing(recording, options, messages);
  report_removed_cgroups(recording, options, messages);
  if (options.says_losses)
    report_losses(report.counts, lost, recording, finished.running->channels(), options, messages);
  report_merged_switches(report, messages);
  for (const std::string& line : finished.running->channels().troubles()) messages.warn(line);
  report_left_out(report.left_out, options.sampling.rate_of_objects, messages);
  for (const DroppingProgram& program : new_dropping_programs(recording))
    messages.warn(warning_of(program) + " (loaded while recording)");
  report_command(recording, report, options, messages);
  return {report.command_status.value_or(cli::kWhole), true, std::move(captured)};
}

}  // namespace tacho::record
