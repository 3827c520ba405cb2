#include "record/session/record_capture.h"

#include <unistd.h>

#include <cerrno>

#include "cli/exit_status.h"
#include "record/host/foreign_reader.h"
#include "record/host/host.h"
#include "record/host/report_program.h"
#include "record/messages.h"
#include "record/session/closing_lines.h"
#include "record/session/packing.h"
#include "record/session/pinned_files.h"
#include "record/session/record_events.h"
#include "record/session/workload.h"

namespace tacho::record {
namespace {

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

// Packs and redacts the files of a recording, and says what they have. Returns the exit status.
int finish_files(const RecordingResult& recorded, const PinnedFiles& pinned, const ForeignReader& reader,
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

}  // namespace

int record_capture(RecordOptions& options, const std::vector<std::string>& command_line) {
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
  const PinnedFiles pinned = pinner.take_pinned();
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

}  // namespace tacho::record
