#include "record/session/capture_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/records/event_set.h"
#include "format/records/perf_abi.h"
#include "format/records/sample.h"
#include "record/events/target.h"
#include "record/host/attachments.h"
#include "record/host/running_processes.h"
#include "record/kernel/perf_ring.h"
#include "record/objects/dropping_programs.h"
#include "record/output/record_counts.h"
#include "record/plan/stack_choice.h"
#include "record/session/capture_head.h"
#include "record/session/capture_place.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// Start-up records are written in pieces of about this size.
constexpr std::size_t kPieceBytes = std::size_t{32} << 10;

std::vector<int> processes_to_describe(const OpenedRecording& recording, const RecordOptions& options,
                                       const RunningProcesses& running) {
  const Target& target = options.target;
  if (target.watch == Watch::System) return running.all();
  if (target.watch == Watch::Command) return {static_cast<int>(recording.workload->pid())};
  return recording.tasks.processes;
}

// Drains the sideband rings meanwhile: they could fill up during a scan of many processes. BPF programs on
// tracepoints already walk stacks; these are dropped, since their samples are not enabled yet.
Result<> take_sideband(OpenedRecording& recording, CaptureOutput& output) {
  std::vector<std::byte> records;
  for (PerfRing& ring : recording.events.rings()) {
    if (ring.kind() == RingKind::Backward) continue;
    const std::size_t begin = records.size();
    ring.drain([&records](format::Bytes run) { records.insert(records.end(), run.begin(), run.end()); });
    cut_behind_trailers(records, begin, ring.trailer());
    ring.renamed().apply(records, begin);
    if (recording.stacks) recording.stacks->take_records(ring, records, begin);
  }
  return records.empty() ? Result<>(Done{}) : output.write_records(records);
}

// Bytes of sample_id_all in every record.
std::size_t trailer_of(const OpenedRecording& recording) {
  return format::sample_id_size(recording.plan.events.front().attr);
}

// The name of thread -1, which samples of summaries and plain ring buffers have; without it readers show
// ":-1".
constexpr std::string_view kNoThread = "[no thread]";

bool has_samples_without_thread(const Plan& plan) {
  return std::ranges::any_of(plan.connections, [](const Connection& connection) {
    return bpf::is_summary(connection.kind) || connection.kind == bpf::ChannelKind::PlainRing;
  });
}

void describe_kernel(const OpenedRecording& recording, const CaptureHead& head, format::ByteWriter& out) {
  const std::size_t trailer = trailer_of(recording);
  if (has_samples_without_thread(recording.plan))
    format::write_comm(out, {~0U, ~0U, kNoThread, false}, trailer);
  write_kernel_records(out, head.kernel_text, head.modules, trailer);
  write_image_records(out, head.images, trailer);
  write_program_records(out, head.programs, trailer);
  write_cgroup_records(out, trailer);
}

// Before its exec the command is a copy of this program, whose mappings must not be recorded for it: perf
// adds them to those of the exec, uses only the lowest mapping of the dynamic loader, and then often cannot
// unwind the loader's stacks.
RunningProcesses::Describe description_of(int process, const OpenedRecording& recording) {
  const auto& command = recording.workload;
  const bool is_our_copy = command && command->pid() == process && !command->is_started();
  return is_our_copy ? RunningProcesses::Describe::AllButMappings : RunningProcesses::Describe::All;
}

RunningProcesses processes_of(const OpenedRecording& recording, const RecordOptions& options) {
  const bool data = recording.plan.events.back().attr.has(abi::kMmapData);
  return {"/proc",
          trailer_of(recording),
          recording.reader,
          {data, recording.plan.events.back().attr.has(abi::kNamespaces), options.sampling.build_ids}};
}

// The head without processes and BPF programs. The first call uses the kernel symbols that were read ahead.
Result<CaptureHead> describe_host_and_plan(const OpenedRecording& recording, const RecordOptions& options,
                                           const std::vector<std::string>& command_line) {
  auto ahead = recording.kernel_symbols ? recording.kernel_symbols->take_symbols() : std::nullopt;
  auto kernel = ahead ? std::move(*ahead) : read_kernel_symbols(recording.host.page_size);
  if (!kernel) return std::move(kernel.error());
  auto head = describe_capture(recording.plan, std::move(*kernel), recording.objects, recording.tracing,
                               command_line);
  if (!head) return head;
  if (!options.sampling.build_ids) head->features.environment.build_ids.clear();
  head->features.attachments.insert(head->features.attachments.end(), recording.attachments.begin(),
                                    recording.attachments.end());
  return head;
}

void add_programs_and_stacks(const OpenedRecording& recording, CaptureHead& head) {
  add_programs(recording.plan, recording.objects, attached_programs(recording.objects, recording.dropping),
               head);
  head.features.environment.user_stacks = facts_of_choice(recording.plan);
}

// Adds facts about processes that no record has.
Result<> add_processes(const std::vector<int>& processes, const std::shared_ptr<ForeignReader>& reader,
                       CaptureHead& head) {
  ProcessTable table(reader);
  for (const int process : processes) table.add_process(process);
  auto packed = format::pack_attachment("processes", "/proc", std::as_bytes(std::span(table.text())));
  if (!packed) return std::move(packed.error());
  head.features.attachments.push_back(std::move(*packed));
  return Done{};
}

Result<> write_startup_records(OpenedRecording& recording, const CaptureHead& head,
                               const RecordOptions& options, CaptureOutput& output) {
  format::ByteWriter out;
  describe_kernel(recording, head, out);
  RunningProcesses running = processes_of(recording, options);
  for (const int process : processes_to_describe(recording, options, running)) {
    if (recording.stop()) return Error{"stopped by a signal", EINTR};
    running.describe_process(process, out, description_of(process, recording));
    if (out.size() < kPieceBytes) continue;
    if (auto done = output.write_plain(out.view()); !done) return done;
    if (auto done = take_sideband(recording, output); !done) return done;
    out.clear();
  }
  format::write_mark(out, abi::kRecordFinishedInit);
  if (auto done = output.write_plain(out.view()); !done) return done;
  return output.finish_round();
}

Result<std::unique_ptr<CaptureOutput>> open_output(const RecordOptions& options,
                                                   const format::EventSet& events,
                                                   format::Features features) {
  if (!options.files.to_pipe)
    return open_file_output(options.output, events, std::move(features), {options.compression_level});
  format::Fd out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!out) return output_error(system_error("standard output", errno).what, errno);
  return open_pipe_output(std::move(out), events, std::move(features), {options.compression_level},
                          options.files.view);
}

}  // namespace

std::vector<int> watched_processes(const OpenedRecording& recording, const RecordOptions& options) {
  return options.target.watch == Watch::System ? RunningProcesses("/proc", 0).all()
                                               : recording.tasks.processes;
}

void build_tables(const OpenedRecording& recording, const RecordOptions& options) {
  if (!recording.stacks) return;
  if (const auto path = recording.workload ? path_of_program(options.command.front()) : std::nullopt)
    recording.stacks->expect(*path, recording.stop);
  // Not all tables are built before the first sample.
  recording.stacks->look_at(options.target.watch == Watch::System
                                ? RunningProcesses("/proc", 0, recording.reader).busiest_first()
                                : recording.tasks.processes);
}

Result<std::unique_ptr<CaptureOutput>> begin_capture(OpenedRecording& recording, const RecordOptions& options,
                                                     const std::vector<std::string>& command_line,
                                                     const Messages& messages) {
  if (recording.stop()) return Error{"stopped by a signal", EINTR};
  build_tables(recording, options);
  auto head = describe_host_and_plan(recording, options, command_line);
  if (!head) return std::move(head.error());
  const auto listed = processes_of(recording, options);
  if (auto done = add_processes(processes_to_describe(recording, options, listed), recording.reader, *head);
      !done)
    return std::move(done.error());
  // Enabled before programs and mappings are listed: the lists and the records may overlap, but miss nothing.
  if (auto done = recording.events.enable_sideband(); !done) return std::move(done.error());
  add_programs_and_stacks(recording, *head);
  for (const std::string& note : head->notes) messages.note(note);
  if (auto room = check_disk(options); !room) return std::move(room.error());
  const FileIdentity before = identity_of(options.output);
  auto output = open_output(options, recording.events.event_set(), std::move(head->features));
  if (!output) return without_unusable_file(std::move(output.error()), before, options.output);
  if (auto done = write_startup_records(recording, *head, options, **output); !done) {
    return without_unusable_file(std::move(done.error()).in(options.output), before, options.output);
  }
  return output;
}

Result<CaptureStart> describe_now(const OpenedRecording& recording, const RecordOptions& options,
                                  const std::vector<std::string>& command_line) {
  auto head = describe_host_and_plan(recording, options, command_line);
  if (!head) return std::move(head.error());
  add_programs_and_stacks(recording, *head);
  RunningProcesses running = processes_of(recording, options);
  // Children of the recorded processes may have been reparented: scan all processes.
  const bool have_children = options.target.inherit && options.target.watch != Watch::Threads;
  const std::vector<int> processes =
      have_children ? running.all() : processes_to_describe(recording, options, running);
  if (auto done = add_processes(processes, recording.reader, *head); !done) return std::move(done.error());
  format::ByteWriter out;
  describe_kernel(recording, *head, out);
  for (const int process : processes)
    running.describe_process(process, out, description_of(process, recording));
  format::write_mark(out, abi::kRecordFinishedInit);
  const format::Bytes records = out.view();
  return CaptureStart{std::move(head->features), {records.begin(), records.end()}, std::move(head->notes)};
}

}  // namespace tacho::record
