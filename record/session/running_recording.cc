#include "record/session/running_recording.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "format/records/perf_abi.h"
#include "record/host/host.h"
#include "record/objects/opened_objects.h"
#include "record/output/file_series.h"
#include "record/session/capture_place.h"
#include "record/session/capture_start.h"
#include "record/stacks/sleeping_stacks.h"

namespace tacho::record {

namespace abi = format::abi;

Copies copies_of(const Plan& plan) {
  return std::ranges::any_of(plan.events, &PlannedEvent::copies_stacks) ? Copies::Unwound : Copies::None;
}

CaptureSeries::Callbacks callbacks_of(const OpenedRecording& recording, const Channels* channels,
                                      const RecordOptions& options,
                                      const std::vector<std::string>& command_line) {
  CaptureSeries::Callbacks callbacks;
  callbacks.describe = [&recording, &options, &command_line] {
    return describe_now(recording, options, command_line);
  };
  const auto end = std::make_shared<CaptureEnd>(recording, channels, options.target.cgroups);
  callbacks.open = [&recording, &options, end](format::Features features) {
    features.environment.losses.counted_before = end->counted_before_next();
    return open_file_output(options.output, recording.events.event_set(), std::move(features),
                            {options.compression_level});
  };
  callbacks.end = [end](const RecordCounts& counts, CaptureOutput& output) {
    return end->write(counts, output);
  };
  return callbacks;
}

Result<std::unique_ptr<RunningRecording>> RunningRecording::start(
    OpenedRecording& recording, std::unique_ptr<CaptureOutput>& output, FilePinner* pinner,
    const RecordOptions& options, const std::vector<std::string>& command_line, const Messages& messages) {
  std::optional<Control> control;
  if (options.time.control) {
    auto opened = Control::open(*options.time.control);
    if (!opened) return std::move(opened.error());
    control.emplace(std::move(*opened));
  }
  Schedule schedule(options.time.delay, options.time.duration, recording.workload || control);
  auto channels = Channels::open(recording, recording.events, options.sampling.rate_of_objects,
                                 {.interval = options.time.interval,
                                  .is_split = options.files.is_named_by_time,
                                  .is_switched = control || !options.time.delay.ranges.empty()});
  if (!channels) return std::move(channels.error());
  const Summaries* const summaries = channels->summaries();
  if (options.time.interval && options.time.needs_summary &&
      (summaries == nullptr || !summaries->are_read_at_intervals())) {
    messages.warn(
        "--interval has no effect: none of the events is counted in the kernel; tacho table --interval "
        "prints a table for each interval, --switch-output=TIME writes a file for each");
  }
  std::unique_ptr<RunningRecording> running(new RunningRecording(recording, output, pinner, options, messages,
                                                                 std::move(control), std::move(schedule),
                                                                 std::move(*channels), command_line));
  // Before the rights to read other users' processes are dropped.
  if (auto done = give_sleeping_stacks(recording.objects, recording.numbers, options.target, recording.tasks,
                                       recording.reader, recording.stop);
      !done && !recording.stop())
    messages.note(done.error().what);
  const std::vector<int> processes = watched_processes(recording, options);
  if (pinner != nullptr)
    if (auto done = pinner->start(recording.plan.events.back().attr, processes); !done)
      messages.warn("files that may vanish are not kept open for their symbols: " + done.error().what);
  if (recording.stacks) recording.stacks->read_running(processes);
  // A file can fill up faster than processes are read, so they are read for the second file before samples
  // begin.
  FileSeries* const series = output->series();
  if (series != nullptr && options.files.switch_rule.bytes != 0) {
    if (auto done = series->prepare_next(); !done) return std::move(done.error());
    while (!series->is_next_prepared() && !recording.stop())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (recording.stop()) return Error{"stopped by a signal", EINTR};
  return running;
}

RunningRecording::RunningRecording(OpenedRecording& recording, std::unique_ptr<CaptureOutput>& output,
                                   FilePinner* pinner, const RecordOptions& options, const Messages& messages,
                                   std::optional<Control> control, Schedule schedule, Channels channels,
                                   const std::vector<std::string>& command_line)
    : opened_(recording),
      pinner_(pinner),
      options_(options),
      messages_(messages),
      control_(std::move(control)),
      schedule_(std::move(schedule)),
      channels_(std::move(channels)),
      end_(recording, &channels_, options.target.cgroups) {
  if (options.files.is_named_by_time && !options.files.overwrite)
    output = std::make_unique<CaptureSeries>(options.output, options.files.most_files, std::move(output),
                                             callbacks_of(recording, &channels_, options, command_line));
  output_ = output.get();
  if (FileSeries* const series = output_->series(); series != nullptr && options.files.packs_files()) {
    Packing packing{options.output, options.files.least_free, options.quiet};
    packing.longest = options.files.longest_packing;
    packer_.emplace(*series, pinner, std::move(packing), copies_of(recording.plan), messages);
  }
  recording.events.when_samples_switch(
      [this](std::span<const std::size_t> switched, Sampling now) { switch_samples(switched, now); });
}

Result<> RunningRecording::enable() {
  if (schedule_.starts_enabled())
    if (auto done = opened_.events.enable_samples(); !done) return done;
  if (opened_.switches)
    if (auto done = opened_.switches->enable(); !done) return done;
  return opened_.workload ? opened_.workload->start(opened_.stop) : Done{};
}

void RunningRecording::switch_samples(std::span<const std::size_t> switched, Sampling now) {
  if (now == Sampling::Off) switch_objects(switched, now);
  if (Summaries* const summaries = channels_.summaries()) summaries->switch_samples(switched, now);
  if (now == Sampling::On) switch_objects(switched, now);
}

// Programs run also while events are disabled: want_events() makes them emit nothing then, so that --max-rate
// and losses count only enabled events. When events are enabled, an iterator notes the waits in progress.
void RunningRecording::switch_objects(std::span<const std::size_t> switched, Sampling now) {
  const Plan& plan = opened_.plan;
  for (std::size_t i = 0; i < opened_.objects.size(); ++i) {
    std::vector<std::size_t> own;
    for (const Connection& each : plan.connections)
      if (each.object == i) own.push_back(each.event);
    for (const SampleProgram& each : plan.sample_programs)
      if (each.object == i) own.push_back(each.event);
    const auto is_switched = [&](std::size_t event) { return std::ranges::count(switched, event) != 0; };
    if (std::ranges::none_of(own, is_switched)) continue;
    opened_.objects[i].want_events(
        std::ranges::any_of(own, [&](std::size_t event) { return opened_.events.is_on(event); }));
    if (now == Sampling::Off) continue;
    if (auto done = opened_.objects[i].run_at_begin(); !done)
      messages_.note("waits that began before the recording are missing: " + done.error().what);
  }
}

Result<> RunningRecording::end_objects() const {
  for (const bpf::LoadedObject& object : opened_.objects)
    if (auto done = object.run_at_end(); !done) return done;
  return Done{};
}

void RunningRecording::drop_rights() {
  const OutputOptions& files = options_.files;
  const bool makes_files = files.is_named_by_time || files.overwrite;
  const bool packs = files.packs_files();
  const LaterWork work{
      .describes_again = makes_files,
      .lists_programs = std::ranges::any_of(
          opened_.plan.events, [](const PlannedEvent& event) { return event.attr.type == abi::kTracepoint; }),
      .has_objects = !opened_.objects.empty() || !opened_.plan.argument_probes.empty() ||
                     (opened_.stacks && opened_.stacks->writes_mappings()),
      .signals_command = opened_.workload.has_value(),
      .packs = packs,
      .reopens_cpus = opened_.stacks ||
                      std::ranges::find(opened_.plan.tasks, -1) != opened_.plan.tasks.end() ||
                      std::ranges::any_of(opened_.plan.events, &PlannedEvent::system_wide),
      .maps_rings = !opened_.plan.later_cpus.empty()};
  const auto kept =
      record::drop_rights(work, makes_files || packs || files.redacts ? folder_of_capture(options_) : "");
  if (kept) return messages_.detail("capabilities kept while recording: " + names_of(*kept));
  messages_.warn("warning: rights that are no longer needed could not be dropped: " + kept.error().what);
}

Result<KernelEvents::Reopened> RunningRecording::reopen_cpu(int cpu) {
  return record::reopen_cpu(cpu, opened_);
}

void RunningRecording::file_begun() {
  if (output_->series() == nullptr) return;
  for (const std::string& name : output_->series()->take_finished()) {
    messages_.bracketed("Finished " + name);
    if (packer_) packer_->add_capture(name);
  }
}

void RunningRecording::pack_finished() {
  if (packer_) packer_->step();
}

std::vector<std::string> RunningRecording::take_unpacked() {
  if (!packer_) return {};
  for (const std::string& name : output_->series()->take_finished()) packer_->add_capture(name);
  return packer_->stop();
}

Result<> RunningRecording::write_end(const RecordCounts& counts) {
  // A series and a flight recorder write the end of each file themselves.
  if (FileSeries* const series = output_->series()) return series->finish();
  return end_.write(counts, *output_);
}

}  // namespace tacho::record
