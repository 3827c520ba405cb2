// tacho import: a profile of another tool as a capture.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/nearest.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/views/convert/convert.h"
#include "report/views/import/import_formats.h"
#include "report/views/import/import_input.h"

namespace tacho::report {
namespace {

struct ImportOptions {
  std::string input, output = "perf.data";
  const ImportFormat* from = nullptr;  // null: by the content
  std::optional<std::string> comm;
  bool has_worker = true;
};

constexpr std::string_view kImportDescription =
    "Makes a capture of a profile that another tool wrote, so that all commands read it: folded stacks, "
    "pprof, "
    "speedscope and CPU profiles of Chrome and Node.js, also packed by gzip. Weights become periods, and "
    "names "
    "are in the capture. See docs/import.md.";

std::string import_format_list() {
  std::string text = "Formats:\n";
  for (const ImportFormat& format : import_formats()) {
    constexpr std::size_t kColumn = 12;
    text += "  " + std::string(format.name);
    text.append(kColumn - std::min(kColumn - 1, format.name.size()), ' ');
    text += std::string(format.help) + "\n";
  }
  return text + "\n";
}

constexpr std::string_view kImportExamples =
    "Examples:\n"
    "  tacho import cpu.pb.gz && tacho report\n"
    "  tacho import app.cpuprofile -o app.data && tacho page -i app.data -o app.html\n"
    "  stackcollapse.pl out.stacks | tacho import - -o stacks.data\n\n";

Result<> choose_format(std::string_view name, ImportOptions& options) {
  std::vector<std::string> names;
  std::string listed;
  for (const ImportFormat& format : import_formats()) {
    if (format.name == name) options.from = &format;
    names.emplace_back(format.name);
    listed += (listed.empty() ? "" : ", ") + names.back();
  }
  if (options.from != nullptr) return Done{};
  return use_error("--from: '" + printable(name) + "' is no format that tacho import reads; there are " +
                   listed + cli::suggestion(std::string(name), names));
}

void add_import_options(std::vector<cli::Option>& rows, ImportOptions& options) {
  rows.push_back(cli::text("-i,--input", "FILE", "the profile to read; - is standard input", options.input));
  rows.push_back(cli::text("-o,--output", "FILE",
                           "the capture to write (default: perf.data). An existing file is kept as FILE.old",
                           options.output));
  rows.push_back({"--from", cli::Takes::Value, "FORMAT", "its format (default: by the content)",
                  [&options](std::string_view name) { return choose_format(name, options); }});
  rows.push_back(
      {"--comm", cli::Takes::Value, "NAME",
       "the name of all threads; of folded stacks the first frame is a function then (default: the "
       "thread's name in the profile, in folded stacks the first frame)",
       [&options](std::string_view name) -> Result<> {
         options.comm = std::string(name);
         return Done{};
       }});
  rows.push_back(worker_option(options.has_worker));
}

// "profile.pb.gz" of "/tmp/profile.pb.gz".
std::string source_name(const std::string& path) {
  return path == "-" ? "stdin" : path.substr(path.rfind('/') + 1);
}

Result<> import_input(const ImportOptions& options, const CopyOutput& output,
                      format::Diagnostics& diagnostics) {
  const auto bytes = read_import_input(options.input);
  if (!bytes) return bytes.error();
  const ImportFormat* format = options.from;
  for (const ImportFormat& known : import_formats())
    if (format == nullptr && known.matches(*bytes)) format = &known;
  if (format == nullptr) return Error{printable(options.input) + ": is empty"};
  auto imported = format->import(
      {.bytes = *bytes, .source = source_name(options.input), .comm = options.comm}, output, diagnostics);
  if (imported || imported.error().fault == Fault::Output) return imported;
  return std::move(imported.error()).in("as " + std::string(format->name)).in(printable(options.input));
}

Result<cli::ExitStatus> make_imported(const ImportOptions& options) {
  if (options.input.empty()) return use_error("name the profile to import, or - for standard input");
  if (options.output == "-")
    return use_error(
        "-o -: an imported capture is a file; name it, and 'tacho convert -i FILE -o -' sends it");
  CaptureTask task;
  task.target = {.input = options.input, .output = options.output, .is_whole_or_nothing = true};
  task.has_worker = options.has_worker;
  task.can_restart = can_be_read_again(options.input);
  return make_capture(task, [&](const CopyOutput& output, sandbox::Child*) -> Result<cli::ExitStatus> {
    format::Diagnostics diagnostics;
    auto done = import_input(options, output, diagnostics);
    const auto status = tell_findings(diagnostics, options.input);
    if (!done) return std::move(done.error());
    return status;
  });
}

}  // namespace

Result<cli::ExitStatus> run_import(const std::vector<std::string>& arguments) {
  ImportOptions options;
  if (input_when_none_is_named() == "-") options.input = "-";
  auto line = command_line("import", std::string(kImportDescription));
  line.synopsis = "FILE [-o OUT] [options]";
  add_import_options(line.options, options);
  line.epilog = import_format_list() + std::string(kImportExamples) + line.epilog;
  return run_command(line, arguments, [&options] { return make_imported(options); });
}

}  // namespace tacho::report
