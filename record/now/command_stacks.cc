// `tacho stacks`: records the stack of every thread now, and runs tacho-report.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <span>
#include <utility>

#include "bpf/object/btf_schema.h"
#include "bpf/object/object.h"
#include "bpf/support/shipped_files.h"
#include "cli/completion.h"
#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "cli/option_rows.h"
#include "cli/options.h"
#include "format/base/byte_writer.h"
#include "format/container/capture_writer.h"
#include "format/extensions/attachment.h"
#include "format/extensions/payload_schema.h"
#include "format/records/perf_abi.h"
#include "format/records/sample.h"
#include "record/events/sample_fields.h"
#include "record/events/target.h"
#include "record/host/attachments.h"
#include "record/host/event_candidates.h"
#include "record/host/foreign_reader.h"
#include "record/host/report_program.h"
#include "record/host/running_kernel.h"
#include "record/host/running_processes.h"
#include "record/messages.h"
#include "record/now/host_now.h"
#include "record/now/thread_stacks.h"
#include "record/objects/channel_rings.h"
#include "record/options/options.h"
#include "record/parse_text.h"
#include "record/plan/plan.h"
#include "record/session/capture_head.h"
#include "record/session/closing_lines.h"
#include "record/session/packing.h"
#include "record/session/pinned_files.h"
#include "record/session/workload.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

constexpr std::uint64_t kId = 1;  // of the only event
constexpr std::string_view kEvent = "stacks";

struct Options {
  TargetOptions target;
  std::string output, capture;
  std::vector<std::string> view;  // options for the text
  bool stops_all = false, is_quiet = false;
  cli::Parsed outcome = cli::Parsed::Run;
};

cli::CommandLine describe(Options& options) {
  cli::CommandLine line;
  line.program = "tacho stacks";
  line.synopsis = "-p PID | -t TID | -a [-o FILE] [options]; stacks FILE [options]";
  line.description =
      "Shows every thread, running or blocked: its state, the system call it is in, the mutex it waits for "
      "and the mutex's owner, and its current stack in kernel and user mode. Threads with equal stacks are "
      "shown together, and mutexes that wait for each other as a deadlock. Blocked threads are not stopped; "
      "running threads are, usually for less than a millisecond, and the longest time is printed. With FILE, "
      "a capture written by -o, shows the threads in that.";
  line.options = {
      {"-p,--pid", cli::Takes::Value, "PID[,PID...]", "all threads of these processes",
       [&options](std::string_view text) {
         return store(options.target.processes, parse_id_list(text), "-p");
       }},
      {"-t,--tid", cli::Takes::Value, "TID[,TID...]", "these threads",
       [&options](std::string_view text) {
         return store(options.target.threads, parse_id_list(text), "-t");
       }},
      cli::flag("-a,--all-cpus", "every thread of the system, also kernel threads", options.target.all_cpus),
      cli::text("-o,--output", "FILE", "also write a capture, for all views and other machines",
                options.output),
      cli::flag(
          "--stop",
          "stop every thread by ptrace, one after another, and read kernel stacks from /proc (the default "
          "if the kernel's BPF iterator over threads cannot be used)",
          options.stops_all),
      cli::passed_on("--json", cli::Takes::Nothing, "", "one JSON object (docs/stacks.md)", options.view),
      cli::passed_on("--wide", cli::Takes::Nothing, "", "do not shorten names to the width of the terminal",
                     options.view),
      {"--max-stack", cli::Takes::Value, "N", "show at most N frames of a stack (default: all)",
       [&options](std::string_view text) -> Result<> {
         if (const auto number = cli::parse_number("--max-stack", text, 1, 65535); !number)
           return number.error();
         options.view.insert(options.view.end(), {"--max-stack", std::string(text)});
         return Done{};
       }},
      cli::flag("-q,--quiet", "no notes", options.is_quiet),
  };
  line.words = [&options](const std::vector<std::string>& words) -> Result<> {
    if (words.size() > 1) return use_error("'" + words[1] + "': only one capture can be shown");
    options.capture = words.front();
    return Done{};
  };
  line.epilog =
      "Examples:\n"
      "  tacho stacks -p 4711                where a program hangs\n"
      "  tacho stacks -a -o now.data         the whole system, for another machine\n"
      "  tacho stacks now.data               shows that capture there\n"
      "\n"
      "Exit status: 0 whole, 1 wrong use, 2 nothing could be read, 3 parts are missing, 4 output failed.\n";
  return line;
}

Result<Options> parse(const std::vector<std::string>& arguments) {
  Options options;
  const auto outcome = cli::parse_or_complete(describe(options), arguments, complete_recording);
  if (!outcome) return outcome.error();
  options.outcome = *outcome;
  const TargetOptions& target = options.target;
  const int named = (target.all_cpus ? 1 : 0) + (target.processes.empty() ? 0 : 1) +
                    (target.threads.empty() ? 0 : 1) + (options.capture.empty() ? 0 : 1);
  if (options.outcome == cli::Parsed::Run && named != 1)
    return use_error("give one of -p PID, -t TID and -a, or a capture");
  return options;
}

using Field = format::PayloadField;

Field number_field(std::string name, std::uint32_t offset, std::uint32_t bytes, std::string format = {}) {
  Field field;
  field.name = std::move(name);
  field.bit_offset = 8 * offset;
  field.bit_size = 8 * bytes;
  field.format = std::move(format);
  return field;
}

// Names of system calls, from the recorder `syscall`; empty: it is not embedded.
std::vector<std::pair<std::int64_t, std::string>> names_of_calls() {
  for (const bpf::ShippedRecorder& each : bpf::shipped_recorders()) {
    if (each.name != "syscall") continue;
    const auto object = bpf::parse_elf_object(each.object);
    const bpf::ElfSection* const types = object ? object->find_section(".BTF") : nullptr;
    if (types == nullptr) return {};
    const auto declared = bpf::read_declarations(types->content);
    const format::PayloadSchema* const schema = declared ? declared->event("syscall") : nullptr;
    if (schema == nullptr) return {};
    const auto field = std::ranges::find(schema->fields, "call", &Field::name);
    if (field != schema->fields.end()) return field->enumerators;
  }
  return {};
}

// The schema of the payload that payload_of() makes.
format::PayloadSchema schema() {
  format::PayloadSchema out;
  out.event = kEvent;
  out.type_name = "thread";
  Field state = number_field("state", 0, 4), call = number_field("call", 4, 4);
  state.kind = call.kind = format::FieldKind::Enum;
  state.role = "key";
  call.is_signed = true;
  for (std::size_t i = 0; i < std::size(kThreadStates); ++i)
    state.enumerators.emplace_back(static_cast<std::int64_t>(i), kThreadStates[i]);
  call.enumerators = names_of_calls();
  std::erase_if(call.enumerators, [](const auto& each) { return each.first < 0; });
  call.enumerators.emplace_back(-1, "none");
  Field arguments = number_field("args", 8, 8, "hex");
  arguments.count = 6;
  arguments.is_array = true;
  Field pause = number_field("paused_ns", 72, 8);
  pause.unit = "ns";
  Field between = number_field("looks_ns", 88, 8);
  between.unit = "ns";
  Field kind = number_field("lock_kind", 96, 4);
  kind.kind = format::FieldKind::Enum;
  kind.enumerators = {{static_cast<std::int64_t>(LockKind::Mutex), "mutex"},
                      {static_cast<std::int64_t>(LockKind::ReadWriteLock), "read-write lock"}};
  Field file = number_field("file", 104, 1);
  file.kind = format::FieldKind::Text;
  file.count = 0;
  out.fields = {std::move(state),
                std::move(call),
                std::move(arguments),
                number_field("lock", 56, 8, "uaddr"),
                number_field("owner", 64, 4),
                number_field("lacks_user_stack", 68, 4),
                std::move(pause),
                number_field("owner_later", 80, 4),
                number_field("moved", 84, 4),
                std::move(between),
                std::move(kind),
                std::move(file)};
  out.size = 105;
  return out;
}

std::vector<std::byte> payload_of(const ThreadStack& thread, std::chrono::nanoseconds between_looks) {
  constexpr std::uint64_t kMostMoves = 0xffffffff;
  format::ByteWriter out;
  out.u32(static_cast<std::uint32_t>(thread.state)).u32(static_cast<std::uint32_t>(thread.call.number));
  for (const std::uint64_t each : thread.call.arguments) out.u64(each);
  out.u64(thread.lock.address).u32(thread.lock.owner).u32(thread.missing_reason.empty() ? 0 : 1);
  out.u64(static_cast<std::uint64_t>(thread.paused.count()));
  out.u32(thread.lock.owner_later).u32(static_cast<std::uint32_t>(std::min(thread.moved, kMostMoves)));
  out.u64(static_cast<std::uint64_t>(between_looks.count()));
  out.u32(static_cast<std::uint32_t>(thread.lock.kind)).zeros(4);
  // RAW begins after a word of 4 bytes, so these make it end at a multiple of 8.
  out.padded_text(thread.call.file, 8).zeros(4);
  return std::move(out).take_bytes();
}

format::EventAttr attr() {
  format::EventAttr attr;
  attr.size = format::kCompatibleAttrSize;
  attr.type = abi::kSoftware;
  attr.config = abi::kBpfOutput;
  attr.sample_period = 1;
  attr.sample_type = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid | abi::kSampleTime |
                     abi::kSamplePeriod | abi::kSampleCallchain | abi::kSampleRaw | abi::kSampleRegsUser |
                     abi::kSampleStackUser;
  attr.flags = abi::kSampleIdAll | abi::kExcludeCallchainUser | abi::kUseClockid | abi::kMmap | abi::kMmap2 |
               abi::kComm | abi::kTask;
  attr.clockid = CLOCK_MONOTONIC;
  attr.sample_regs_user = user_register_mask();
  attr.sample_stack_user = kMostStackBytes;
  return attr;
}

void write_sample(format::ByteWriter& out, const ThreadStack& thread, std::chrono::nanoseconds between_looks,
                  std::uint64_t time) {
  const std::size_t begin = out.size();
  const bool is_in_kernel = !thread.kernel.empty();
  const std::uint64_t ip = is_in_kernel ? thread.kernel.front() : instruction_of(thread).value_or(0);
  out.u32(abi::kRecordSample).u16(is_in_kernel ? abi::kCpumodeKernel : abi::kCpumodeUser).u16(0);
  out.u64(kId).u64(ip).u32(thread.pid).u32(thread.tid).u64(time).u64(1);
  out.u64(is_in_kernel ? thread.kernel.size() + 1 : 0);
  if (is_in_kernel) out.u64(abi::kContextKernel);
  for (const std::uint64_t each : thread.kernel) out.u64(each);
  const auto payload = payload_of(thread, between_looks);
  out.u32(static_cast<std::uint32_t>(payload.size())).bytes(payload);
  const bool has_user = !thread.registers.empty();
  constexpr std::uint64_t kAbi32 = 1, kAbi64 = 2;
  out.u64(!has_user ? 0 : thread.is_32_bit ? kAbi32 : kAbi64);
  for (const std::uint64_t each : thread.registers) out.u64(each);
  const std::size_t stack = thread.stack.size() / 8 * 8;
  out.u64(stack);
  if (stack != 0) out.bytes(std::span(thread.stack).first(stack)).u64(stack);
  out.patch(begin + 6, static_cast<std::uint16_t>(out.size() - begin));
}

Result<CaptureHead> head_of(const ThreadsNow& now, const std::vector<std::string>& command_line,
                            const std::shared_ptr<ForeignReader>& reader) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto kernel = read_kernel_symbols(page);
  if (!kernel) return std::move(kernel.error());
  Plan plan;
  plan.events.push_back({.attr = attr(), .name = std::string(kEvent)});
  auto head = describe_capture(plan, std::move(*kernel), {}, {}, command_line);
  if (!head) return std::move(head.error());
  head->features.schemas = {schema()};
  add_programs(plan, {}, {}, *head);
  ProcessTable table(reader);
  for (const std::uint32_t process : now.processes) table.add_process(static_cast<int>(process));
  auto packed = format::pack_attachment("processes", "/proc", std::as_bytes(std::span(table.text())));
  if (!packed) return std::move(packed.error());
  head->features.attachments.push_back(std::move(*packed));
  return head;
}

// `path`: empty: write into `memory`, which stays open.
Result<> write_capture(const ThreadsNow& now, const std::vector<std::string>& command_line,
                       const std::shared_ptr<ForeignReader>& reader, const std::string& path,
                       const format::Fd& memory) {
  const std::uint64_t time = monotonic_now();
  format::EventSet events;
  events.add_event({.attr = attr(), .name = std::string(kEvent), .ids = {kId}});
  const std::size_t trailer = format::sample_id_size(attr());
  // Mappings first: a process may end, or map other files.
  format::ByteWriter described;
  const bool has_locks = now.between_looks.count() != 0;  // these may be variables in data mappings
  RunningProcesses running("/proc", trailer, reader, {.data_mappings = has_locks});
  for (const std::uint32_t process : now.processes)
    running.describe_process(static_cast<int>(process), described);
  auto head = head_of(now, command_line, reader);
  if (!head) return std::move(head.error());
  format::ByteWriter kernel;
  write_kernel_records(kernel, head->kernel_text, head->modules, trailer);
  write_image_records(kernel, head->images, trailer);
  write_program_records(kernel, head->programs, trailer);
  auto writer = [&]() -> Result<format::CaptureWriter> {
    if (!path.empty()) return format::CaptureWriter::create(path, events, std::move(head->features));
    return capture_in_memory(memory, events, std::move(head->features));
  }();
  if (!writer) return std::move(writer.error());
  format::ByteWriter samples;
  for (const ThreadStack& thread : now.threads) write_sample(samples, thread, now.between_looks, time);
  format::write_mark(described, abi::kRecordFinishedInit);
  format::Features late;
  late.environment.sample_time = {time, time};
  Result<> done = writer->write_plain(kernel.view());
  if (done) done = writer->write_plain(described.view());
  if (done) done = writer->write_records(samples.view());
  if (done) done = writer->finish_round();
  if (done) done = writer->close_file(late);
  return done ? std::move(done) : std::move(done.error()).in(path.empty() ? "the capture in memory" : path);
}

int fail(const Error& error, const StopSignals* signals = nullptr) {
  print_failure(error, "stacks");
  if (signals != nullptr && signals->start_ended_by() != 0) return 128 + signals->start_ended_by();
  return cli::status_of(error);
}

void print_note(const std::string& line) { print_failure(Error{line}, "stacks"); }

// Prints what is missing, one line for each reason.
bool print_missing(const ThreadsNow& now, bool is_quiet) {
  std::vector<std::pair<std::string, std::size_t>> reasons;
  for (const ThreadStack& each : now.threads) {
    if (each.missing_reason.empty()) continue;
    auto known = std::ranges::find(reasons, each.missing_reason, &std::pair<std::string, std::size_t>::first);
    if (known == reasons.end()) known = reasons.insert(known, {each.missing_reason, 0});
    ++known->second;
  }
  constexpr std::size_t kMostPrinted = 5;
  for (std::size_t i = 0; i < std::min(reasons.size(), kMostPrinted) && !is_quiet; ++i)
    print_note(fmt::format("{} without the user's part of the stack: {}",
                           cli::counted(reasons[i].second, "thread"), reasons[i].first));
  if (reasons.size() > kMostPrinted && !is_quiet)
    print_note(fmt::format("{} like these", cli::counted(reasons.size() - kMostPrinted, "more reason")));
  return !reasons.empty();
}

}  // namespace

int run_stacks(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line) {
  const auto options = parse(arguments);
  if (!options) return fail(options.error());
  if (options->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  const auto program = report_program();
  if (!program)
    return fail(Error{"tacho-report, which unwinds stacks, is not installed beside tacho-record"});
  const auto reader =
      ForeignReader::start(std::chrono::seconds(1), {.holds_files = true, .reads_kernel_stacks = true});
  auto signals = StopSignals::block();
  if (!signals) return fail(signals.error());
  std::vector<std::string> words{*program, "stacks"};
  words.insert(words.end(), options->view.begin(), options->view.end());
  if (!options->capture.empty()) {
    words.insert(words.end(), {"-i", options->capture});
    const auto shown = show_capture(std::move(words), nullptr, {}, *signals);
    return shown ? *shown : fail(shown.error());
  }
  auto target = choose_target(options->target, false);
  if (!target) return fail(target.error());
  const auto now = threads_now(*target, options->stops_all ? Looking::Stopping : Looking::WithoutStopping,
                               reader, [&signals] { return signals->ends_start(); });
  if (!now) return fail(now.error(), &*signals);
  if (now->threads.empty()) {
    const std::string silence = silence_text(reader->silent());
    return fail(Error{silence.empty() ? "every thread has ended" : silence});
  }
  for (const std::string& note : now->notes)
    if (!options->is_quiet) print_note(note);
  // Files that are deleted, or in another mount namespace, are opened here.
  FilePinner pinner(reader);
  if (auto started = pinner.start(attr(), {now->processes.begin(), now->processes.end()}); !started)
    return fail(started.error());
  format::Fd memory;
  if (options->output.empty()) {
    auto made = memory_for_capture();
    if (!made) return fail(made.error());
    memory = std::move(*made);
  }
  if (auto done = write_capture(*now, command_line, reader, options->output, memory); !done)
    return fail(done.error());
  const PinnedFiles pinned = pinner.take_pinned();
  // Files only: tacho-report is not asked to leave out memory.
  std::vector<std::string> silent = reader->silent();
  std::erase_if(silent, [](const std::string& name) { return !name.starts_with('/'); });
  if (const std::string& input = options->output; !input.empty()) {
    RecordOptions quiet;
    quiet.quiet = true;
    const Packing packing{.capture = input, .is_quiet = true, .pinned = &pinned, .silent = silent};
    unwind_copies(packing, *signals, Messages(quiet));
    pack_symbols(packing, *signals, Messages(quiet));
  }
  if (!options->is_quiet && !silent.empty()) print_note(silence_text(silent));
  for (const std::string& file : silent) words.insert(words.end(), {"--skip-file", file});
  words.emplace_back("--no-pager");
  if (!memory) words.insert(words.end(), {"-i", options->output});
  const auto shown = show_capture(std::move(words), memory ? &memory : nullptr, pinned, *signals);
  if (!shown) return fail(shown.error());
  if (signals->start_ended_by() != 0) return 128 + signals->start_ended_by();
  const bool is_incomplete = print_missing(*now, options->is_quiet);
  return *shown == cli::kWhole && is_incomplete ? cli::kIncomplete : *shown;
}

}  // namespace tacho::record
