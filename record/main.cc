// tacho-record: options -> plan -> open -> loop -> close.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "cli/guarded_main.h"
#include "format/base/file.h"
#include "format/base/printable.h"
#include "record/doctor/doctor.h"
#include "record/events/sample_fields.h"
#include "record/host/foreign_reader.h"
#include "record/host/host.h"
#include "record/host/report_program.h"
#include "record/list/listing.h"
#include "record/live/live.h"
#include "record/messages.h"
#include "record/now/host_now.h"
#include "record/options/options.h"
#include "record/session/closing_lines.h"
#include "record/session/packing.h"
#include "record/session/pinned_files.h"
#include "record/session/recording.h"
#include "record/session/running_recording.h"
#include "record/session/workload.h"
#include "record/stat/command_stat.h"

namespace {

using namespace tacho;
using namespace tacho::record;

struct Recorded {
  int status = 0;         // of this program
  bool is_whole = false;  // the capture
  std::optional<Captured> captured = {};
  Copies copies = Copies::None;
  std::vector<std::string> unpacked = {};  // of several files: those without packed names
  int stop_signal = 0;                     // that ended it; 0: none did
};

// The state of the capture after the recording failed.
enum class FileState : std::uint8_t { None, Open, Closed };

Result<Recorded> record_events(const RecordOptions& options, const std::vector<std::string>& command_line,
                               const std::shared_ptr<ForeignReader>& reader, StopSignals& signals,
                               FileState& file_state, FilePinner* pinner = nullptr) {
  const Messages messages(options);
  for (const std::string& note : options.notes) messages.note(note);
  if (!reader->failure().empty())
    messages.warn("warning: files and memory of other processes are not read: " + reader->failure());
  auto prepared = prepare(options, messages, reader, [&signals] { return signals.ends_start(); });
  if (!prepared) return std::move(prepared.error());
  auto opened = open_events(std::move(*prepared), messages);
  if (!opened) return std::move(opened.error());
  OpenedRecording& recording = **opened;
  auto output = options.files.overwrite ? begin_flight(recording, options, command_line, messages)
                                        : begin_capture(recording, options, command_line, messages);
  if (!output) return std::move(output.error());
  file_state = FileState::Open;
  const auto ran = run(recording, *output, pinner, options, command_line, signals, messages);
  if (!ran) {
    // An empty capture; the first failure is the one to report.
    if ((*output)->close_after_failure()) file_state = FileState::Closed;
    return ran.error();
  }
  if (ran->report.writer_is_stuck) leave_stuck(ran->report, options, messages);
  const auto finished = finish(recording, *ran, **output, options, messages);
  if (const std::string silence = described_silence(reader->silent()); !silence.empty())
    messages.warn("warning: " + silence);
  if (finished.is_closed) file_state = FileState::Closed;
  if (!finished.status) {
    if (const auto unpacked = ran->running->take_unpacked(); !unpacked.empty())
      messages.note(
          fmt::format("symbols are not packed into {} of the finished files, up to {}; tacho pack "
                      "FILE packs them",
                      unpacked.size(), unpacked.back()));
    return finished.status.error();
  }
  return Recorded{*finished.status,           !ran->report.failure,          finished.captured,
                  copies_of(*recording.plan), ran->running->take_unpacked(), ran->report.stop_signal};
}

int fail(const Error& error, std::string_view command = "record") {
  print_failure(error, command);
  return cli::status_of(error);
}

// A failed recording. If a signal came before the recording began: the status of a program that it ended.
int fail_recording(const StopSignals& signals, const Error& error, std::string_view command = "record") {
  const int number = signals.start_ended_by();
  if (number == 0) return fail(error, command);
  print_failure(Error{fmt::format("ended by signal {} before recording began: {}", number, error.what)});
  return 128 + number;
}

// After a failed recording: redacts the partial capture, or says that it is not redacted.
int end_failed(Error failure, FileState file_state, const RecordOptions& options,
               const StopSignals& signals) {
  const bool is_there = file_state != FileState::None && ::access(options.output.c_str(), F_OK) == 0;
  if (is_there && file_state == FileState::Open) failure.what += not_redacted(options);
  if (is_there && file_state == FileState::Closed && options.files.redacts) {
    const Packing finishing{options.output, options.files.least_free, options.quiet};
    const auto done = redact_capture(finishing, options.files.redacted_classes, signals, Messages(options));
    if (!done) failure.what += "; " + done.error().what;
  }
  return fail_recording(signals, failure);
}

int say(const std::string& line, std::string_view command = "record") {
  const auto written = cli::write_stdout(line + '\n');
  return written ? cli::kWhole : fail(written.error(), command);
}

// `tacho list`.
int run_list(const std::vector<std::string>& arguments) {
  const auto options = parse_list_options(arguments);
  if (!options) return fail(options.error(), "list");
  if (options->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  auto lines = options->programs                    ? list_bpf_programs(*options)
               : options->recorders                 ? list_recorders(*options)
               : is_probe_pattern(options->pattern) ? list_probes(*options)
                                                    : list_events(*options);
  if (!lines) return fail(lines.error(), "list");
  if (lines->empty()) return cli::kWhole;  // JSON of no BPF program
  lines->pop_back();                       // puts() ends the last line
  return say(format::printable_lines(*lines), "list");
}

// The help of the first EVENT/help/.
std::optional<int> handle_recorder_help(const RecordOptions& options, std::string_view command) {
  for (const EventRequest& request : options.events) {
    if (!request.asks_for_help) continue;
    auto text = recorder_help(request);
    if (!text) return fail(text.error(), command);
    text->pop_back();
    return say(format::printable_lines(*text));
  }
  return std::nullopt;
}

// Waits for the view, which ends with the recording. It may also end first (`| head`), which is no failure.
int end_live(LiveView& view, const Result<Recorded>& recorded, FileState file_state,
             const StopSignals& signals) {
  if (!recorded && file_state == FileState::None) view.kill();
  const int shown = view.finish();
  if (recorded) return recorded->status != cli::kWhole ? recorded->status : shown;
  return recorded.error().code == EPIPE ? shown : fail_recording(signals, recorded.error(), "live");
}

// `tacho live`.
int run_live(const std::vector<std::string>& command_line) {
  const auto live = parse_live_options({command_line.begin() + 2, command_line.end()});
  if (!live) return fail(live.error(), "live");
  if (live->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  auto parsed = parse_options(live->recording);
  if (!parsed) return fail(parsed.error(), "live");
  if (parsed->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  RecordOptions& options = parsed->options;
  if (const auto status = handle_recorder_help(options, "live")) return *status;
  if (options.output != "-")
    return fail(use_error("-o: nothing is kept here; tacho record writes captures"), "live");
  auto words = live_view(*live, options.events);
  if (!words) return fail(words.error(), "live");
  const auto reader = ForeignReader::start();
  auto signals = StopSignals::block();
  if (!signals) return fail(signals.error(), "live");
  auto view = LiveView::start(std::move(*words));
  if (!view) return fail(view.error(), "live");
  if (auto done = choose_output(options.output, options.files, look_at_standard_output()); !done)
    return fail(done.error(), "live");
  options.files.view = view->end_fd();
  options.compression_level.reset();
  options.time.needs_summary = false;  // the interval is also that of tables
  FileState file_state = FileState::None;
  const auto recorded = record_events(options, command_line, reader, *signals, file_state);
  return end_live(*view, recorded, file_state, *signals);
}

// Standard error while another process owns the terminal: kept in memory, and printed in the end.
class HeldErrors {
 public:
  explicit HeldErrors(bool is_wanted) {
    if (!is_wanted || ::isatty(STDERR_FILENO) == 0) return;
    held_ = format::Fd(::memfd_create("tacho top", MFD_CLOEXEC));
    terminal_ = format::Fd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
    if (held_ && terminal_) (void)::dup2(held_.get(), STDERR_FILENO);
  }
  HeldErrors(const HeldErrors&) = delete;
  HeldErrors& operator=(const HeldErrors&) = delete;
  ~HeldErrors() { print(); }
  void print() {
    if (!held_ || !terminal_) return;
    std::fflush(stderr);
    (void)::dup2(terminal_.get(), STDERR_FILENO);
    constexpr std::size_t kMost = std::size_t{64} << 10;
    const auto text = format::read_at(held_.get(), 0, kMost);
    if (text) (void)std::fwrite(text->data(), 1, text->size(), stderr);
    held_ = {};
  }

 private:
  format::Fd held_, terminal_;
};

// `tacho top`.
int run_top(const std::vector<std::string>& command_line) {
  auto parsed = parse_top_options({command_line.begin() + 2, command_line.end()});
  if (!parsed) return fail(parsed.error(), "top");
  if (parsed->recording.outcome == cli::Parsed::HelpShown) return cli::kWhole;
  RecordOptions& options = parsed->recording.options;
  if (const auto status = handle_recorder_help(options, "top")) return *status;
  if (options.sampling.show_registers || options.show_version)
    return fail(use_error("only tacho record prints versions and registers"), "top");
  const auto reader = ForeignReader::start();
  auto signals = StopSignals::block();
  if (!signals) return fail(signals.error(), "top");
  auto view = LiveView::start(std::move(parsed->top.view), parsed->top.has_screen);
  if (!view) return fail(view.error(), "top");
  if (auto done = choose_output(options.output, options.files, look_at_standard_output()); !done) {
    view->kill();
    return fail(done.error(), "top");
  }
  options.files.to_screen = true;
  options.files.view = view->end_fd();
  options.compression_level.reset();
  options.time.needs_summary = false;
  HeldErrors errors(parsed->top.has_screen);
  FileState file_state = FileState::None;
  const auto recorded = record_events(options, command_line, reader, *signals, file_state);
  if (!recorded && file_state == FileState::None)
    view->kill();
  else if (recorded && recorded->stop_signal != 0 && parsed->top.has_screen)
    view->terminate();
  const int shown = view->finish();
  errors.print();
  if (!recorded && recorded.error().code != EPIPE) return fail_recording(*signals, recorded.error(), "top");
  if (LiveView::is_of_crash(shown)) return shown;
  // The user or a signal ended it: the status of the command does not count.
  const bool is_left = !recorded || recorded->stop_signal != 0 || shown >= 128;
  return shown != cli::kWhole && shown < 128 ? shown : is_left ? cli::kWhole : recorded->status;
}

int run_program(const std::vector<std::string>& command_line) {
  // tacho starts its other commands of this program by a first argument: `tacho list` by --list-events.
  const std::string first = command_line.size() > 1 ? command_line[1] : "";
  const auto rest = [&] { return std::vector<std::string>(command_line.begin() + 2, command_line.end()); };
  if (first == "--list-events") return run_list(rest());
  if (first == "--doctor") return run_doctor(rest());
  if (first == "--live") return run_live(command_line);
  if (first == "--top") return run_top(command_line);
  if (first == "--count-events") {
    const auto status = run_stat(rest());
    return status ? *status : fail(status.error(), "stat");
  }
  if (first == "--bpf") return run_bpf(rest(), command_line);
  if (first == "--stacks") return run_stacks(rest(), command_line);
  auto parsed = parse_options({command_line.begin() + 1, command_line.end()});
  if (!parsed) return fail(parsed.error());
  if (parsed->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  if (const auto status = handle_recorder_help(parsed->options, "record")) return *status;
  if (parsed->options.show_version) return say(fmt::format("tacho {}", version()));
  if (parsed->options.sampling.show_registers) return say("available registers: " + register_names());
  RecordOptions& options = parsed->options;
  if (auto done = choose_output(options.output, options.files, look_at_standard_output()); !done)
    return fail(done.error());
  // The reader of a pipe runs on this host: compressing would cost both sides.
  if (options.files.to_pipe && !options.files.is_compression_chosen) options.compression_level.reset();
  if (options.files.redacts)
    if (auto done = check_redaction(); !done) return fail(done.error());
  const auto reader = ForeignReader::start();
  auto signals = StopSignals::block();
  if (!signals) return fail(signals.error());
  FileState file_state = FileState::None;
  const bool packs = options.files.packs_files() && report_program();
  FilePinner pinner(reader);
  const auto recorded =
      record_events(options, command_line, reader, *signals, file_state, packs ? &pinner : nullptr);
  const PinnedFiles pinned = pinner.take();
  // The reader of a pipe may end early, which is no failure unless the command has not run.
  if (!recorded && recorded.error().code == EPIPE && options.files.to_pipe) {
    if (options.command.empty()) return cli::kWhole;
    return end_failed(
        output_error("the reader of the capture ended before the command started; it was not run", EPIPE),
        file_state, options, *signals);
  }
  if (!recorded) return end_failed(recorded.error(), file_state, options, *signals);
  const Packing finishing{options.output, options.files.least_free, options.quiet};
  if (recorded->is_whole && options.files.packs_files()) {
    Packing packing = finishing;
    packing.pinned = &pinned;
    packing.silent = reader->silent();
    std::erase_if(packing.silent, [](const std::string& name) { return !name.starts_with('/'); });
    packing.longest = options.files.longest_packing;
    std::vector<std::string> captures = recorded->unpacked;
    if (!options.files.is_named_by_time) captures.push_back(options.output);
    pack_files(captures, recorded->copies, packing, *signals, Messages(options));
  }
  Result<> redacted = Done{};
  if (options.files.redacts)
    redacted = redact_capture(finishing, options.files.redacted_classes, *signals, Messages(options));
  if (recorded->captured) report_captured(*recorded->captured, options, Messages(options));
  if (!redacted) return fail(redacted.error());
  return recorded->status;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("tacho record", [&] { return run_program({argv, argv + argc}); });
}
