// `tacho live`: events as text while they happen.
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "cli/options.h"
#include "record/host/foreign_reader.h"
#include "record/list/listing.h"
#include "record/live/live.h"
#include "record/messages.h"
#include "record/options/options.h"
#include "record/session/record_events.h"
#include "record/session/workload.h"

namespace tacho::record {
namespace {

// Waits for the view, which ends with the recording. It may also end first (`| head`), which is no failure.
int end_live(LiveView& view, const Result<RecordingResult>& recorded, FileState file_state,
             const StopSignals& signals) {
  if (!recorded && file_state == FileState::None) view.kill();
  const int shown = view.finish();
  if (recorded) return recorded->status != cli::kWhole ? recorded->status : shown;
  return recorded.error().code == EPIPE ? shown : fail_recording(signals, recorded.error(), "live");
}

}  // namespace

int run_live(const std::vector<std::string>& command_line) {
  const auto live = parse_live_options({command_line.begin() + 2, command_line.end()});
  if (!live) return report_failure(live.error(), "live");
  if (live->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  auto parsed = parse_options(live->recording);
  if (!parsed) return report_failure(parsed.error(), "live");
  if (parsed->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  RecordOptions& options = parsed->options;
  if (const auto status = answer_help_request(options.events, "live")) return *status;
  if (options.output != "-")
    return report_failure(use_error("-o: nothing is kept here; tacho record writes captures"), "live");
  auto words = live_view(*live, options.events);
  if (!words) return report_failure(words.error(), "live");
  const auto reader = ForeignReader::start();
  auto signals = StopSignals::block();
  if (!signals) return report_failure(signals.error(), "live");
  auto view = LiveView::start(std::move(*words));
  if (!view) return report_failure(view.error(), "live");
  if (auto done = choose_output(options.output, options.files, look_at_standard_output()); !done)
    return report_failure(done.error(), "live");
  options.files.view = view->end_fd();
  options.compression_level.reset();
  options.time.needs_summary = false;  // the interval is also that of tables
  FileState file_state = FileState::None;
  const auto recorded = record_events(options, command_line, reader, *signals, file_state);
  return end_live(*view, recorded, file_state, *signals);
}

}  // namespace tacho::record
