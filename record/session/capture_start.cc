#include "record/session/capture_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bpf/thread_list.h"
#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/output.h"
#include "format/container/content_classes.h"
#include "format/records/perf_abi.h"
#include "format/records/sample.h"
#include "record/host/attachments.h"
#include "record/host/running_processes.h"
#include "record/objects/channel_rings.h"
#include "record/output/capture_output.h"
#include "record/output/record_queue.h"
#include "record/output/writing_thread.h"
#include "record/stacks/deferred_unwinder.h"
#include "record/stacks/stack_choice.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostFrames = 127;
constexpr std::size_t kMostBytes = 32 << 10;  // of a stack
constexpr std::size_t kMostThreads = 16384;   // as many as the map has room for
constexpr std::size_t kAtOnce = 1024;
constexpr std::chrono::seconds kMostSearchTime{5};
// Words of struct pt_regs of x86-64.
constexpr std::size_t kBp = 4, kBx = 5, kIp = 16, kCs = 17, kSp = 19;
constexpr std::uint64_t kCode32 = 0x23;  // the code segment of 32-bit programs

// Without a stack it is not unwound.
DeferredUnwinder::Stack copy_of(const bpf::ListedThread& thread, ForeignReader& reader) {
  DeferredUnwinder::Stack stack;
  stack.sample.process = thread.pid;
  stack.sample.walk.tid = thread.tid;
  stack.sample.walk.frames = {thread.registers[kIp]};
  stack.copy.sp = thread.registers[kSp];
  stack.copy.bp = thread.registers[kBp];
  stack.copy.rbx = thread.registers[kBx];
  stack.copy.frames = 1;
  stack.copy.is_bp_known = stack.copy.is_rbx_known = true;
  if (auto bytes = reader.memory_of(thread.tid, stack.copy.sp, kMostBytes))
    stack.copy.bytes = std::move(*bytes);
  stack.pass = thread.switches;
  return stack;
}

bool sleeps(const bpf::ListedThread& thread) {
  return !thread.is_on_cpu && thread.has_memory && thread.registers[kIp] != 0 &&
         thread.registers[kCs] != kCode32;
}

Result<std::vector<bpf::ListedThread>> sleeping_threads(const Target& target, const TargetTasks& tasks) {
  const bool by_process = target.watch == Watch::Processes, by_thread = target.watch == Watch::Threads;
  auto list = bpf::ThreadList::load(by_process  ? TACHO_THREADS_OF_PROCESSES
                                    : by_thread ? TACHO_NAMED_THREADS
                                                : TACHO_ALL_THREADS,
                                    by_process  ? std::span<const int>(tasks.processes)
                                    : by_thread ? std::span<const int>(tasks.threads)
                                                : std::span<const int>());
  if (!list) return std::move(list.error());
  auto threads = list->read();
  if (!threads) return std::move(threads.error());
  std::erase_if(*threads, [](const bpf::ListedThread& each) { return !sleeps(each); });
  if (threads->size() > kMostThreads) threads->resize(kMostThreads);
  std::ranges::stable_sort(*threads, {}, &bpf::ListedThread::pid);
  return threads;
}

// The end of the next batch of stacks, limited by the threads and processes that the unwinder supports.
std::size_t end_of_batch(const std::vector<bpf::ListedThread>& threads, std::size_t first) {
  std::size_t end = first, processes = 0;
  for (; end < threads.size() && end - first < kAtOnce; ++end) {
    const bool is_new = end == first || threads[end].pid != threads[end - 1].pid;
    if (is_new && processes++ == DeferredUnwinder::kMostLookedUp) break;
  }
  return end;
}

// Calls `sink` for each unwound stack.
Result<> unwind(const std::vector<bpf::ListedThread>& threads, const std::shared_ptr<ForeignReader>& reader,
                const std::function<bool()>& stop,
                const std::function<Result<>(const DeferredUnwinder::Stack&)>& sink) {
  const auto unwinder = std::make_shared<DeferredUnwinder>(kMostFrames, reader);
  if (auto done = unwinder->start(); !done) return done;
  const auto until = Clock::now() + kMostSearchTime;
  Result<> result = Done{};
  const auto late = [&stop] {
    return Error{stop() ? "stopped by a signal" : "unwinding took longer than 5 s", ETIMEDOUT};
  };
  for (std::size_t first = 0, end = 0; first < threads.size() && result; first = end) {
    DeferredUnwinder::Stacks stacks;
    end = end_of_batch(threads, first);
    for (std::size_t i = first; i < end && result; ++i) {
      if (stop() || Clock::now() > until) result = late();
      stacks.push_back(copy_of(threads[i], *reader));
    }
    unwinder->give(std::move(stacks));
    for (std::size_t left = end - first; left != 0 && result;) {
      const auto done = unwinder->take_done();
      for (const DeferredUnwinder::Stack& stack : done)
        if (result) result = sink(stack);
      left -= done.size();
      if (done.empty() && (stop() || Clock::now() > until)) {
        unwinder->give_up();
        result = late();
      } else if (done.empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  unwinder->end();
  return result;
}

}  // namespace

Result<> give_sleeping_stacks(std::span<const bpf::UserObject> objects,
                              const std::optional<bpf::PidNumbers>& numbers, const Target& target,
                              const TargetTasks& tasks, const std::shared_ptr<ForeignReader>& reader,
                              const std::function<bool()>& stop) {
  // A command has no threads that wait before the recording.
  if (target.watch == Watch::Command ||
      std::ranges::none_of(objects, &bpf::UserObject::asks_for_sleeping_stacks))
    return Done{};
  const auto give = [&](const DeferredUnwinder::Stack& stack) -> Result<> {
    std::vector<std::uint64_t> frames = stack.sample.walk.frames;
    std::erase(frames, TACHO_INTERRUPTED);
    for (const bpf::UserObject& object : objects) {
      if (!object.asks_for_sleeping_stacks()) continue;
      const std::uint32_t tid = bpf::kernel_tid_of(numbers, stack.sample.walk.tid);
      auto done = object.put_sleeping_stack(tid, stack.pass, frames);
      if (!done) return done;
    }
    return Done{};
  };
  const auto threads = sleeping_threads(target, tasks);
  auto done = threads ? unwind(*threads, reader, stop, give) : Result<>(threads.error());
  return done ? done
              : std::move(done.error()).in("waits that began before the recording have no user stacks");
}

namespace {

// The schemas of the connected channels, with the event names of this capture.
std::vector<format::PayloadSchema> schemas_of(const Plan& plan, std::span<const bpf::UserObject> objects) {
  std::vector<format::PayloadSchema> schemas;
  for (const Connection& connection : plan.connections) {
    const auto& channels = objects[connection.object].channels();
    const auto channel = std::ranges::find(channels, connection.map, &bpf::Channel::map);
    if (channel == channels.end() || !channel->schema) continue;
    format::PayloadSchema schema = *channel->schema;
    if (connection.kind != bpf::ChannelKind::PerfEventArray && !bpf::is_summary(connection.kind))
      schema = RingLayout::schema_of_rest(std::move(schema));
    schema.event = plan.events[connection.event].name;
    const auto same = [&](const format::PayloadSchema& other) { return other.event == schema.event; };
    if (std::ranges::none_of(schemas, same)) schemas.push_back(std::move(schema));
  }
  for (const ArgumentProbe& probe : plan.argument_probes) {
    const std::string& name = plan.events[probe.event].name;
    if (std::ranges::find(schemas, name, &format::PayloadSchema::event) == schemas.end())
      schemas.push_back(probe.sum ? bpf::layout_of(name, probe.arguments, *probe.sum).schema()
                                  : bpf::schema_of(name, probe.arguments));
  }
  return schemas;
}

// btf_id in a loaded program's bpf_prog_info; 0: it has none.
std::uint32_t btf_id_of(const bpf::LoadedProgram& program) {
  format::Cursor info(program.info.info);
  info.skip(offsetof(bpf_prog_info, btf_id));
  return info.u32();
}

void add_objects(std::span<const bpf::UserObject> objects, const std::vector<bpf::LoadedProgram>& loaded,
                 format::Environment& environment) {
  for (const bpf::UserObject& object : objects) {
    std::uint32_t btf_id = 0;
    for (const format::AttachedProgram& program : object.programs()) {
      const auto same = std::ranges::find(loaded, program.id, &bpf::LoadedProgram::id);
      if (btf_id == 0 && program.id != 0 && same != loaded.end()) btf_id = btf_id_of(*same);
    }
    if (auto btf = object.btf(); !btf.empty()) environment.btf.push_back({btf_id, std::move(btf)});
  }
}

// Whether an event samples kernel code: then symbols of the kernel and of BPF programs are needed.
bool samples_kernel(const Plan& plan) {
  return std::ranges::any_of(plan.events, [](const PlannedEvent& event) {
    return !event.is_sideband && !event.attr.has(abi::kExcludeKernel);
  });
}

// Feature GROUP_DESC: readers show the events of a group in columns.
std::vector<format::EventGroup> groups_of(const Plan& plan) {
  std::vector<format::EventGroup> groups;
  for (std::size_t event = 0; event < plan.events.size(); ++event) {
    const auto leader = plan.events[event].leader;
    if (!leader) continue;
    if (*leader == event) {
      const std::string& name = plan.events[event].group_name;
      groups.push_back({name.empty() ? "{anon_group}" : name, static_cast<std::uint32_t>(event), 0});
    }
    ++groups.back().members;
  }
  std::erase_if(groups, [](const format::EventGroup& group) { return group.members < 2; });
  return groups;
}

// Feature CLOCK_DATA, unless times are of the kernel's perf clock.
void describe_clock(const format::EventAttr& attr, format::Environment& environment) {
  timespec resolution{}, wall{}, now{};
  if (!attr.has(abi::kUseClockid) || clock_getres(attr.clockid, &resolution) != 0) return;
  const auto nanoseconds = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  };
  environment.clock_resolution_ns = nanoseconds(resolution);
  if (clock_gettime(CLOCK_REALTIME, &wall) != 0 || clock_gettime(attr.clockid, &now) != 0) return;
  environment.clock_data = {static_cast<std::uint32_t>(attr.clockid), nanoseconds(wall), nanoseconds(now)};
}

}  // namespace

Result<CaptureHead> describe_capture(const Plan& plan, KernelSymbols kernel,
                                     std::span<const bpf::UserObject> objects, format::TracingData tracing,
                                     const std::vector<std::string>& command_line) {
  CaptureHead head;
  format::Features& features = head.features;
  features.environment = describe_host(command_line);
  features.environment.groups = groups_of(plan);
  describe_clock(plan.events.front().attr, features.environment);
  features.environment.has_branch_stack = std::ranges::any_of(
      plan.events, [](const auto& event) { return event.attr.samples(abi::kSampleBranchStack); });
  features.tracing = std::move(tracing);
  features.schemas = schemas_of(plan, objects);

  head.kernel_text = std::move(kernel.text);
  head.images = std::move(kernel.images);
  if (!kernel.missing_reason.empty()) head.notes.push_back(std::move(kernel.missing_reason));
  auto attached = gather_attachments(std::move(kernel.list));
  if (!attached) return std::move(attached.error());
  features.attachments = std::move(*attached);

  head.modules = loaded_modules();
  features.environment.build_ids = kernel_build_ids(head.modules);
  if (!samples_kernel(plan)) head.notes.clear();
  return head;
}

void add_loaded_programs(std::span<const bpf::LoadedProgram> programs, format::Environment& environment) {
  std::size_t room = std::size_t{4} << 20;  // of BTF
  for (const bpf::LoadedProgram& program : programs) {
    environment.bpf_programs.push_back(program.info);
    const bool is_known =
        std::ranges::find(environment.btf, program.btf.id, &format::BtfBlob::id) != environment.btf.end();
    if (program.btf.id == 0 || is_known || program.btf.bytes.size() > room) continue;
    room -= program.btf.bytes.size();
    environment.btf.push_back(program.btf);
  }
  environment.bpf_maps = bpf::maps_of(programs);
}

void add_programs(const Plan& plan, std::span<const bpf::UserObject> objects,
                  std::vector<format::AttachedProgram> attached, CaptureHead& head) {
  if (auto programs = bpf::loaded_programs()) {
    head.programs = std::move(*programs);
  } else if (samples_kernel(plan)) {
    head.notes.push_back("BPF programs loaded before will have no names: " + programs.error().what);
  }
  format::Environment& environment = head.features.environment;
  environment.attached_programs = std::move(attached);
  add_objects(objects, head.programs, environment);
  add_loaded_programs(head.programs, environment);
  for (auto& [id, attachment] : bpf::attachments_by_links())
    environment.bpf_places.emplace_back(std::to_string(id), std::move(attachment));
}

namespace {

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
    if (recording.stacks) recording.stacks->take(ring, records, begin);
  }
  return records.empty() ? Result<>(Done{}) : output.write_records(records);
}

// Bytes of sample_id_all in every record.
std::size_t trailer_of(const OpenedRecording& recording) {
  return format::sample_id_size(recording.plan->events.front().attr);
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
  if (has_samples_without_thread(*recording.plan))
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
  const bool data = recording.plan->events.back().attr.has(abi::kMmapData);
  return {"/proc",
          trailer_of(recording),
          recording.reader,
          {data, recording.plan->events.back().attr.has(abi::kNamespaces), options.sampling.build_ids}};
}

// The head without processes and BPF programs. The first call uses the kernel symbols that were read ahead.
Result<CaptureHead> describe_host_and_plan(const OpenedRecording& recording, const RecordOptions& options,
                                           const std::vector<std::string>& command_line) {
  auto ahead = recording.kernel_symbols ? recording.kernel_symbols->take() : std::nullopt;
  auto kernel = ahead ? std::move(*ahead) : read_kernel_symbols(recording.host.page_size);
  if (!kernel) return std::move(kernel.error());
  auto head = describe_capture(*recording.plan, std::move(*kernel), recording.objects, recording.tracing,
                               command_line);
  if (!head) return head;
  if (!options.sampling.build_ids) head->features.environment.build_ids.clear();
  head->features.attachments.insert(head->features.attachments.end(), recording.attachments.begin(),
                                    recording.attachments.end());
  return head;
}

void add_programs_and_stacks(const OpenedRecording& recording, CaptureHead& head) {
  add_programs(*recording.plan, recording.objects, attached_programs(recording.objects, recording.dropping),
               head);
  head.features.environment.user_stacks = facts_of_choice(*recording.plan);
}

// Adds facts about processes that no record has.
Result<> add_processes(const std::vector<int>& processes, const std::shared_ptr<ForeignReader>& reader,
                       CaptureHead& head) {
  ProcessTable table(reader);
  for (const int process : processes) table.add(process);
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
    running.describe(process, out, description_of(process, recording));
    if (out.size() < kPieceBytes) continue;
    if (auto done = output.write_plain(out.view()); !done) return done;
    if (auto done = take_sideband(recording, output); !done) return done;
    out.clear();
  }
  format::write_mark(out, abi::kRecordFinishedInit);
  if (auto done = output.write_plain(out.view()); !done) return done;
  return output.finish_round();
}

// The file at a path: (device, inode), or nothing.
using FileIdentity = std::optional<std::pair<dev_t, ino_t>>;
FileIdentity identity_of(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  return std::pair{info.st_dev, info.st_ino};
}

// Removes a capture that failed before its first sample. If there was an older file of this name (`before`),
// the error says how it is named now.
Error without_unusable_file(Error failure, const FileIdentity& before, const std::string& output) {
  const FileIdentity now = identity_of(output);
  if (now && now != before) unlink(output.c_str());
  const std::string old = output + ".old";
  if (before && now != before && identity_of(old) == before)
    failure.what += "; nothing was recorded; the old file is now " + old;
  return failure;
}

// --min-free applies from the start.
Result<> check_disk(const RecordOptions& options) {
  if (!is_disk_short({.least_free = options.files.least_free, .path = folder_of(options)})) return Done{};
  return output_error(options.output +
                      ": its file system has less free space than --min-free; nothing is recorded");
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

Result<> check_place(const RecordOptions& options) {
  if (auto done = check_disk(options); !done) return done;
  return format::check_output(options.output);
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
  for (const int process : processes) running.describe(process, out, description_of(process, recording));
  format::write_mark(out, abi::kRecordFinishedInit);
  const format::Bytes records = out.view();
  return CaptureStart{std::move(head->features), {records.begin(), records.end()}, std::move(head->notes)};
}

std::string folder_of(const RecordOptions& options) {
  const auto slash = options.output.rfind('/');
  return slash == std::string::npos ? "." : options.output.substr(0, slash + 1);
}

void remove_output(const RecordOptions& options) {
  // With --overwrite the path may have an earlier capture, and a device is not removed.
  struct stat status {};
  const bool is_own = !options.files.to_pipe && !options.files.overwrite;
  if (is_own && ::lstat(options.output.c_str(), &status) == 0 && S_ISREG(status.st_mode))
    (void)::unlink(options.output.c_str());
}

Result<> check_size(const CaptureOutput& output, const RecordOptions& options) {
  const std::uint64_t most = options.files.most_bytes, head = output.bytes() + output.closing_room();
  if (most == 0 || head < most) return Done{};
  remove_output(options);
  return use_error(
      fmt::format("--max-size: the capture takes {:.1f} MB without any sample (what runs here, and "
                  "the kernel's names); nothing was recorded",
                  static_cast<double>(head) / (1 << 20)));
}

}  // namespace tacho::record
