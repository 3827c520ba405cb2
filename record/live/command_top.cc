// `tacho top`: the busiest rows of now, on the screen.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "cli/options.h"
#include "format/base/file.h"
#include "record/host/foreign_reader.h"
#include "record/list/listing.h"
#include "record/live/live.h"
#include "record/messages.h"
#include "record/options/options.h"
#include "record/session/record_events.h"
#include "record/session/workload.h"

namespace tacho::record {
namespace {

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

}  // namespace

int run_top(const std::vector<std::string>& command_line) {
  auto parsed = parse_top_options({command_line.begin() + 2, command_line.end()});
  if (!parsed) return report_failure(parsed.error(), "top");
  if (parsed->recording.outcome == cli::Parsed::HelpShown) return cli::kWhole;
  RecordOptions& options = parsed->recording.options;
  if (const auto status = answer_help_request(options.events, "top")) return *status;
  if (options.sampling.show_registers || options.show_version)
    return report_failure(use_error("only tacho record prints versions and registers"), "top");
  const auto reader = ForeignReader::start();
  auto signals = StopSignals::block();
  if (!signals) return report_failure(signals.error(), "top");
  auto view = LiveView::start(std::move(parsed->top.view), parsed->top.has_screen);
  if (!view) return report_failure(view.error(), "top");
  if (auto done = choose_output(options.output, options.files, look_at_standard_output()); !done) {
    view->kill();
    return report_failure(done.error(), "top");
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

}  // namespace tacho::record
