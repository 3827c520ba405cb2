#include "record/session/record_events.h"

#include <fmt/format.h>

#include <utility>

#include "record/messages.h"
#include "record/session/capture_start.h"
#include "record/session/recording.h"
#include "record/session/running_recording.h"

namespace tacho::record {

Result<RecordingResult> record_events(const RecordOptions& options,
                                      const std::vector<std::string>& command_line,
                                      const std::shared_ptr<ForeignReader>& reader, StopSignals& signals,
                                      FileState& file_state, FilePinner* pinner) {
  const Messages messages(options);
  for (const std::string& note : options.notes) messages.note(note);
  if (!reader->failure().empty())
    messages.warn("warning: files and memory of other processes are not read: " + reader->failure());
  auto prepared = prepare_recording(options, messages, reader, [&signals] { return signals.ends_start(); });
  if (!prepared) return std::move(prepared.error());
  auto opened = open_events(std::move(*prepared), messages);
  if (!opened) return std::move(opened.error());
  OpenedRecording& recording = **opened;
  auto output = options.files.overwrite ? begin_flight(recording, options, command_line, messages)
                                        : begin_capture(recording, options, command_line, messages);
  if (!output) return std::move(output.error());
  file_state = FileState::Open;
  const auto ran = run_recording(recording, *output, pinner, options, command_line, signals, messages);
  if (!ran) {
    // An empty capture; the first failure is the one to report.
    if ((*output)->close_after_failure()) file_state = FileState::Closed;
    return ran.error();
  }
  if (ran->report.writer_is_stuck) leave_stuck(ran->report, options, messages);
  const auto finished = finish_recording(recording, *ran, **output, options, messages);
  if (const std::string silence = silence_text(reader->silent()); !silence.empty())
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
  return RecordingResult{*finished.status,          !ran->report.failure,          finished.captured,
                         copies_of(recording.plan), ran->running->take_unpacked(), ran->report.stop_signal};
}

int fail_recording(const StopSignals& signals, const Error& error, std::string_view command) {
  const int number = signals.start_ended_by();
  if (number == 0) return report_failure(error, command);
  print_failure(Error{fmt::format("ended by signal {} before recording began: {}", number, error.what)});
  return 128 + number;
}

}  // namespace tacho::record
