// tacho-record: which command, and `tacho record` from its options to its files.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "cli/guarded_main.h"
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
#include "record/session/record_events.h"
#include "record/session/workload.h"
#include "record/stat/command_stat.h"

namespace {

using namespace tacho;
using namespace tacho::record;

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

// `tacho list`.
int run_list(const std::vector<std::string>& arguments) {
  const auto options = parse_list_options(arguments);
  if (!options) return report_failure(options.error(), "list");
  if (options->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  auto lines = options->programs                    ? list_bpf_programs(*options)
               : options->recorders                 ? list_recorders(*options)
               : is_probe_pattern(options->pattern) ? list_probes(*options)
                                                    : list_events(*options);
  if (!lines) return report_failure(lines.error(), "list");
  if (lines->empty()) return cli::kWhole;  // JSON of no BPF program
  lines->pop_back();                       // puts() ends the last line
  return print_line(format::printable_lines(*lines), "list");
}

// Packs and redacts the files of a recording, and says what they have. Returns the exit status.
int finish_files(const Recorded& recorded, const PinnedFiles& pinned, const ForeignReader& reader,
                 const RecordOptions& options, const StopSignals& signals) {
  const Packing finishing{options.output, options.files.least_free, options.quiet};
  if (recorded.is_whole && options.files.packs_files()) {
    Packing packing = finishing;
    packing.pinned = &pinned;
    packing.silent = reader.silent();
    std::erase_if(packing.silent, [](const std::string& name) { return !name.starts_with('/'); });
    packing.longest = options.files.longest_packing;
    std::vector<std::string> captures = recorded.unpacked;
    if (!options.files.is_named_by_time) captures.push_back(options.output);
    pack_files(captures, recorded.copies, packing, signals, Messages(options));
  }
  Result<> redacted = Done{};
  if (options.files.redacts)
    redacted = redact_capture(finishing, options.files.redacted_classes, signals, Messages(options));
  if (recorded.captured) report_captured(*recorded.captured, options, Messages(options));
  if (!redacted) return report_failure(redacted.error());
  return recorded.status;
}

// `tacho record`.
int run_record(const std::vector<std::string>& command_line) {
  auto parsed = parse_options({command_line.begin() + 1, command_line.end()});
  if (!parsed) return report_failure(parsed.error());
  if (parsed->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  RecordOptions& options = parsed->options;
  if (const auto status = answer_help_request(options.events, "record")) return *status;
  if (options.show_version) return print_line(fmt::format("tacho {}", version()));
  if (options.sampling.show_registers) return print_line("available registers: " + register_names());
  if (auto done = choose_output(options.output, options.files, look_at_standard_output()); !done)
    return report_failure(done.error());
  // The reader of a pipe runs on this host: compressing would cost both sides.
  if (options.files.to_pipe && !options.files.is_compression_chosen) options.compression_level.reset();
  if (options.files.redacts)
    if (auto done = check_redaction(); !done) return report_failure(done.error());
  const auto reader = ForeignReader::start();
  auto signals = StopSignals::block();
  if (!signals) return report_failure(signals.error());
  FileState file_state = FileState::None;
  const bool packs = options.files.packs_files() && report_program();
  FilePinner pinner(reader);
  const auto recorded =
      record_events(options, command_line, reader, *signals, file_state, packs ? &pinner : nullptr);
  const PinnedFiles pinned = pinner.take();
  if (recorded) return finish_files(*recorded, pinned, *reader, options, *signals);
  // The reader of a pipe may end early, which is no failure unless the command has not run.
  const bool has_lost_reader = recorded.error().code == EPIPE && options.files.to_pipe;
  if (has_lost_reader && options.command.empty()) return cli::kWhole;
  const Error failure =
      has_lost_reader
          ? output_error("the reader of the capture ended before the command started; it was not run", EPIPE)
          : recorded.error();
  return end_failed(failure, file_state, options, *signals);
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
    return status ? *status : report_failure(status.error(), "stat");
  }
  if (first == "--bpf") return run_bpf(rest(), command_line);
  if (first == "--stacks") return run_stacks(rest(), command_line);
  return run_record(command_line);
}

}  // namespace

int main(int argc, char** argv) {
  return cli::guarded_main("tacho record", [&] { return run_program({argv, argv + argc}); });
}
