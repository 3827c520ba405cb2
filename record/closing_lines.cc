#include "record/closing_lines.h"

#include <fmt/format.h>

#include "cli/shell_word.h"

namespace tacho::record {

void report_limit(const PumpReport& report, const RecordOptions& options, const Messages& messages) {
  if (report.limit == Limit::Size)
    messages.warn(fmt::format(
        "{}: the capture has no room for more within the size that --max-size allows; the recording ends{}",
        options.output,
        report.counts.samples > report.kept.samples
            ? fmt::format(", and {} samples that were taken by then are left out",
                          report.counts.samples - report.kept.samples)
            : ""));
  if (report.limit == Limit::Free)
    messages.warn(options.output +
                  ": less is free on its file system than --min-free wants; the recording ends");
}

void report_merged_switches(const PumpReport& report, const Messages& messages) {
  if (report.merged_switches == 0) return;
  messages.bracketed(
      fmt::format("--switch-output-event: came {} times, {} of them while another file was being begun, "
                  "which is one for all",
                  report.switch_events, report.merged_switches));
}

std::string not_redacted(const RecordOptions& options) {
  if (!options.files.redacts) return {};
  return fmt::format("; it is not redacted, and holds everything; tacho redact {} OUT does that",
                     cli::shell_word(options.output));
}

}  // namespace tacho::record
