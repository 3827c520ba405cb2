// tacho convert: a capture in another form, or a part of one.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "format/container/growing_file.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/pinned_files_option.h"
#include "report/samples/filter.h"
#include "report/views/convert/convert.h"
#include "sandbox/job.h"

namespace tacho::report {
namespace {

constexpr std::string_view kDescription =
    "Rewrites a capture in another form: as a file or for a pipe, compressed or plain, one file for the "
    "directory of perf record --threads, a complete file for one that was cut short or never closed. All "
    "records stay unless --time or --events leave them out; a part of a capture keeps the packed symbols "
    "that its samples need. A capture of the other byte order is converted to this machine's, except for "
    "payloads and tracepoint formats.";

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho convert -i perf.data -o plain.data --plain\n"
    "  tacho convert -i perf.data -o - | perf report -i -\n"
    "  tacho convert -i killed.data -o whole.data\n"
    "  tacho convert -i perf.data -o part.data --time 10%-20% --events cpu-clock\n"
    "  tacho convert -i dwarf.data -o chains.data --unwind\n\n";

Result<> set_form(std::string_view text, std::optional<CaptureForm>& form) {
  if (text != "file" && text != "pipe")
    return use_error("--to: '" + std::string(text) + "' is no form of a capture; write file or pipe");
  form = text == "file" ? CaptureForm::File : CaptureForm::Pipe;
  return Done{};
}

struct CommandLine {
  ConvertOptions convert;
  bool has_worker = true, in_place = false;
  std::optional<std::uint64_t> file_seconds;
  std::vector<std::string> skipped_files;
  std::optional<CaptureForm> form;
  std::optional<symbolize::PinnedFiles> pinned;
  bool is_plain = false, is_compressed = false;
};

void add_options(std::vector<cli::Option>& rows, CommandLine& line) {
  ConvertOptions& convert = line.convert;
  convert.input = input_when_none_is_named();
  rows.push_back(cli::text("-i,--input", "FILE",
                           "the capture to read; - is standard input (default: standard input when it is a "
                           "pipe, else perf.data)",
                           convert.input));
  rows.push_back(cli::text("-o,--output", "FILE",
                           "what to write; - is standard output. An existing file is kept as FILE.old",
                           convert.output));
  rows.push_back({"--to", cli::Takes::Value, "FORM",
                  "the layout of the output: file or pipe (default: pipe for -o -, else file)",
                  [&line](std::string_view text) { return set_form(text, line.form); }});
  rows.push_back(
      {"-z,--compression-level", cli::Takes::Optional, "LEVEL",
       "compress with zstd, level 1 to 22 (1 without a number; 0: not at all; default: 1 if the input is "
       "compressed)",
       [&line](std::string_view text) -> Result<> {
         const Result<std::uint64_t> level =
             text.empty() ? Result<std::uint64_t>(1) : cli::parse_number("-z", text, 0, 22);
         if (!level) return level.error();
         (*level == 0 ? line.is_plain : line.is_compressed) = true;
         if (*level != 0) line.convert.level = static_cast<int>(*level);
         return Done{};
       }});
  rows.push_back(
      flag("--plain",
           "do not compress, and leave out fields of event attributes that perf 6.1 does not know, which "
           "refuses captures of perf 6.17 with them",
           line.is_plain));
  rows.push_back(cli::text("--time", "A,B",
                           "only samples between these times, in seconds (either side may be empty), or "
                           "parts of the capture: 10%-20%, 10%/2. All mappings and threads stay",
                           convert.times));
  rows.push_back(
      {"--events", cli::Takes::Value, "LIST",
       "only these events: names, with or without modifiers (cycles for cycles:u), or patterns ('sched:*'), "
       "separated by commas; records of mappings and threads stay. Events sampled together ({a,b}:S) stay "
       "together",
       [&convert](std::string_view text) -> Result<> {
         convert.events = parse_name_list(text);
         return Done{};
       }});
  rows.push_back(
      flag("--unwind",
           "replace copied stacks (--call-graph dwarf of perf or tacho) by plain call chains, which every "
           "reader shows without the binaries; stacks that are cut off get no frame at -1. Records are "
           "written in the order of time",
           convert.unwinds));
  rows.push_back(
      cli::text("--symfs", "DIR",
                "with --unwind: look for binaries below this folder, a copy of the recording host's root",
                convert.symfs));
  rows.push_back(
      flag("--in-place", "replace the input by the copy, atomically when it is complete", line.in_place));
  rows.push_back(pinned_files_option(line.pinned));
  rows.push_back(inflate_option(convert.capture));
  rows.push_back(file_time_option(line.file_seconds));
  rows.push_back(skip_file_option(line.skipped_files));
  rows.push_back(worker_option(line.has_worker));
  rows.push_back(accepted("-f,--force", cli::Takes::Nothing,
                          "accepted as in perf, without effect: files of other owners are always read"));
}

// Checks the command line as a whole, and sets the options that depend on others.
Result<> resolve(CommandLine& line) {
  ConvertOptions& convert = line.convert;
  if (line.pinned) convert.pinned = &*line.pinned;
  if (line.in_place && (!convert.output.empty() || convert.input == "-"))
    return use_error("--in-place replaces the input, which must be a file; leave -o out");
  if (line.in_place) convert.output = convert.input;
  if (convert.output.empty()) return use_error("-o: name the file to write, or - for standard output");
  if (!convert.symfs.empty() && !convert.unwinds) return use_error("--symfs is for --unwind");
  if (line.is_plain && line.is_compressed) return use_error("-z and --plain do not go together");
  if (line.is_plain) convert.packing = Packing::Plain;
  if (line.is_compressed) convert.packing = Packing::Compressed;
  const bool is_stdout = convert.output == "-";
  // A pipe cannot be read again, so its copy is named at once and kept as far as it was written.
  struct stat input {};
  const int known =
      convert.input == "-" ? ::fstat(STDIN_FILENO, &input) : ::stat(convert.input.c_str(), &input);
  convert.is_whole_or_nothing =
      line.in_place || (known == 0 && (S_ISREG(input.st_mode) || S_ISDIR(input.st_mode)));
  convert.form = line.form.value_or(is_stdout ? CaptureForm::Pipe : CaptureForm::File);
  if (is_stdout && convert.form == CaptureForm::File)
    return use_error("--to file: a file's layout cannot go to standard output; name a file with -o");
  if (is_stdout && ::isatty(STDOUT_FILENO) != 0)
    return use_error("-o -: standard output is a terminal; name a file or send it into a pipe");
  return Done{};
}

// Delays the end of the copy of a pipe after Ctrl-C: the writer of the pipe usually gets the signal too, and
// what it writes last belongs to the copy.
class StopDelay {
 public:
  explicit StopDelay(std::function<bool()> is_asked_for) : is_asked_for_(std::move(is_asked_for)) {}
  bool is_over() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds kGrace{3};
    if (!is_asked_for_()) return false;
    if (!began_) began_ = Clock::now();
    return Clock::now() - *began_ > kGrace;
  }
  // False: the signal came before the first byte of standard input.
  bool wait_for_input() {
    constexpr int kPollTime = 100;  // ms
    for (pollfd input{STDIN_FILENO, POLLIN, 0}; ::poll(&input, 1, kPollTime) == 0;)
      if (is_asked_for_()) return false;
    return true;
  }

 private:
  std::function<bool()> is_asked_for_;
  std::optional<std::chrono::steady_clock::time_point> began_;
};

Result<cli::ExitStatus> make_copy(const CommandLine& line) {
  const ConvertOptions& convert = line.convert;
  CaptureTask task;
  if (line.pinned) task.kept = line.pinned->descriptors();
  task.has_worker = line.has_worker;
  task.times = file_times(line.file_seconds, symbolize::Servers::NotAsked);
  task.can_restart = can_be_read_again(convert.input);
  std::optional<sandbox::Interruption> interruption;
  const bool can_be_ended = !convert.is_whole_or_nothing && convert.output != "-";
  if (can_be_ended) {
    auto watched = sandbox::Interruption::watch();
    if (!watched) return std::move(watched.error());
    interruption.emplace(std::move(*watched));
    task.is_asked_to_stop = [&interruption] { return interruption->is_asked_for(); };
  }
  task.target.input = convert.input;
  task.target.output = convert.output;
  task.target.is_whole_or_nothing = convert.is_whole_or_nothing;
  task.target.replaces_input = line.in_place;
  return make_capture(task, [&](const CopyOutput& output, sandbox::Child* child) -> Result<cli::ExitStatus> {
    ConvertOptions options = convert;
    sandbox::SkippedFiles access(line.skipped_files, child != nullptr ? &child->stacks : nullptr);
    options.access = &access;
    StopDelay delay([&] { return child != nullptr ? child->is_asked_to_stop() : task.is_asked_to_stop(); });
    format::Following following;
    if (can_be_ended) {
      following.waits = [&delay] { return !delay.is_over(); };
      options.capture.following = &following;
      if (options.input == "-" && !delay.wait_for_input())
        return Error{"a signal ended the copy before standard input had data"};
    }
    format::Diagnostics diagnostics;
    auto done = report::convert(options, output, diagnostics);
    if (following.end == format::Following::End::Stopped)
      diagnostics.add_line(format::Damage::CutShort,
                           "a signal ended the copy: it has the records up to there");
    const auto status = tell_findings(diagnostics, options.input);
    if (!done) return std::move(done.error());
    return status;
  });
}

}  // namespace

Result<cli::ExitStatus> run_convert(const std::vector<std::string>& arguments) {
  CommandLine command;
  auto line = command_line("convert", std::string(kDescription));
  line.synopsis = "FILE -o OUT [options]";
  add_options(line.options, command);
  line.epilog = std::string(kExamples) + line.epilog;
  return run_command(line, arguments, [&command]() -> Result<cli::ExitStatus> {
    if (auto resolved = resolve(command); !resolved) return std::move(resolved.error());
    return make_copy(command);
  });
}

}  // namespace tacho::report
