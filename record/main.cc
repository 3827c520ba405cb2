// tacho-record: which command.
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
#include "record/live/why.h"
#include "record/messages.h"
#include "record/now/host_now.h"
#include "record/objects/compiled_program.h"
#include "record/options/options.h"
#include "record/session/closing_lines.h"
#include "record/session/packing.h"
#include "record/session/pinned_files.h"
#include "record/session/record_capture.h"
#include "record/session/repeated_recording.h"
#include "record/session/workload.h"
#include "record/stat/command_stat.h"

namespace {

using namespace tacho;
using namespace tacho::record;

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

// `tacho record`.
int run_record(const std::vector<std::string>& command_line) {
  auto parsed = parse_options({command_line.begin() + 1, command_line.end()});
  if (!parsed) return report_failure(parsed.error());
  if (parsed->outcome == cli::Parsed::HelpShown) return cli::kWhole;
  RecordOptions& options = parsed->options;
  if (const auto status = answer_help_request(options.events, "record")) return *status;
  if (options.show_version) return print_line(fmt::format("tacho {}", version()));
  if (!options.compiled_source.empty()) {
    const auto object =
        compile_program(options.compiled_source, options.files.is_named ? options.output : "");
    return object ? print_line(*object) : report_failure(object.error());
  }
  if (options.sampling.show_registers) return print_line("available registers: " + register_names());
  return options.repeat.is_on() ? record_repeatedly(options, command_line)
                                : record_capture(options, command_line);
}

int run_program(const std::vector<std::string>& command_line) {
  // tacho starts its other commands of this program by a first argument: `tacho list` by --list-events.
  const std::string first = command_line.size() > 1 ? command_line[1] : "";
  const auto rest = [&] { return std::vector<std::string>(command_line.begin() + 2, command_line.end()); };
  if (first == "--list-events") return run_list(rest());
  if (first == "--doctor") return run_doctor(rest());
  if (first == "--live") return run_live(command_line);
  if (first == "--top") return run_top(command_line);
  if (first == "--why") return run_why(command_line);
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
