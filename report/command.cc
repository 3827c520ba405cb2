#include "report/command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <stop_token>

#include "cli/message_text.h"
#include "format/records/perf_abi.h"
#include "report/capture_candidates.h"
#include "report/output/output_parts.h"
#include "sandbox/job.h"
#include "symbolize/files/pinned_files.h"

namespace tacho::report {
namespace {

Result<OutputFile> create_output(std::string_view option, const std::string& path,
                                 const ReadingOptions& options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(path, options.session.input, ignored))
    return use_error(std::string(option) + ": " + path + " is the capture itself");
  std::vector<std::string> inputs = options.other_inputs;
  inputs.push_back(options.session.input);
  return OutputFile::create(path, mode_of_output(inputs));
}

Result<OutputFile> open_output(const ReadingOptions& options) {
  const Paging paging = options.follows ? Paging::Never : options.paging;
  auto text =
      options.is_standard_output() ? standard_output(paging) : create_output("-o", options.output, options);
  if (!text || options.more_outputs.empty()) return text;
  std::vector<OutputFile> files;
  files.push_back(std::move(*text));
  std::map<std::string, std::string> options_of{{options.output, "-o"}};
  for (const MoreOutput& one : options.more_outputs) {
    const auto [other, is_new] = options_of.emplace(one.path, one.option);
    if (!is_new) return use_error(fmt::format("{} and {} name the same file", one.option, other->second));
    auto file = create_output(one.option, one.path, options);
    if (!file) return file;
    files.push_back(std::move(*file));
  }
  return output_of_parts(std::move(files));
}

// The end of every command that prints: lines about the capture, and the exit status.
cli::ExitStatus end(const Shown& shown, const format::Diagnostics& diagnostics,
                    const ReadingOptions& options) {
  for (const std::string& note : shown.notes)
    std::fprintf(stderr, "%s\n", cli::printable_message(note).c_str());
  const auto status = tell_findings(diagnostics, options.shown_input());
  return status == cli::kWhole ? shown.status : status;
}

// The line that says why --follow ended. None for a pipe: its end is normal, and its writer gets Ctrl-C, too.
void tell_end_of_following(format::Following::End end, const std::string& input) {
  const char* const why = end == format::Following::End::Stopped  ? "stopped; its recorder may go on"
                          : end == format::Following::End::Closed ? "its recorder has finished it"
                                                                  : nullptr;
  if (input != "-" && why != nullptr) std::fprintf(stderr, "tacho: %s: %s\n", printable(input).c_str(), why);
}

void run_following(Session& session, Sink& sink, TextOutput& out, const std::function<void()>& before_wait) {
  std::stop_source stop;
  RunControl control;
  control.cancel = stop.get_token();
  control.progress = [&](const ReadProgress&) {
    if (before_wait) before_wait();
    out.flush();
    if (out.is_done()) stop.request_stop();
  };
  session.run(sink, control);
}

}  // namespace

std::string_view first_text_option(std::initializer_list<std::pair<bool, std::string_view>> own,
                                   bool is_quiet, Colour colour, const ReadingOptions& reading) {
  const std::initializer_list<std::pair<bool, std::string_view>> common = {
      {is_quiet, "-q"},
      {colour != Colour::Auto, "--stdio-color"},
      {reading.names == Names::Raw, "--raw-names"},
      {reading.paging == Paging::Never, "--no-pager"},
      {!reading.output.empty(), "-o"}};
  for (const auto& options : {own, common})
    for (const auto& [is_given, name] : options)
      if (is_given) return name;
  return {};
}

std::string input_when_none_is_named() {
  struct stat input {};
  const bool is_pipe = ::fstat(STDIN_FILENO, &input) == 0 && S_ISFIFO(input.st_mode);
  return is_pipe ? "-" : "perf.data";
}

bool can_be_read_again(const std::string& input) {
  struct stat status {};
  const bool is_known =
      input == "-" ? ::fstat(STDIN_FILENO, &status) == 0 : ::stat(input.c_str(), &status) == 0;
  return !is_known || S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) || S_ISDIR(status.st_mode);
}

void read_head(Session& session) {
  struct UntilFirstSample : Sink {
    Flow on_sample(const ResolvedSample&) override { return Flow::Stop; }
  };
  if (!session.layout().is_pipe) return;
  UntilFirstSample sink;
  session.run(sink);
}

Result<> check_events(Session& session, const ReadingOptions& options) {
  if (options.session.filter.events.empty()) return Done{};
  read_head(session);
  return session.check_events();
}

void run_with_progress(Session& session, Sink& sink, TextOutput& out,
                       const std::function<void()>& before_wait) {
  if (session.follows()) return run_following(session, sink, out, before_wait);
  const auto in_parent = out.show_progress();
  Progress progress = in_parent ? Progress(in_parent) : Progress(STDERR_FILENO);
  if (!progress.is_on()) return session.run(sink);
  // No progress line when the text goes to the same terminal.
  if (out.is_for_person()) out.before_first_write([&progress] { progress.stop(); });
  RunControl control;
  control.progress = [&progress](const ReadProgress& read) {
    progress.at(read.bytes_read, read.bytes_total);
  };
  session.run(sink, control);
  out.before_first_write(nullptr);
}

cli::Option follow_option(ReadingOptions& options) {
  return flag(
      "--follow",
      "the capture may still be written: shows what comes, until its recorder ends or Ctrl-C (a second one "
      "ends at once)",
      options.follows);
}

std::string late_events_text(std::uint64_t samples) {
  return std::to_string(samples) + " samples are of events that the pipe described too late; left out";
}

cli::Option as_perf_option(ReadingOptions& options) {
  return {"--as-perf", cli::Takes::Nothing, "",
          "print the same bytes as perf 6.1 or stackcollapse-perf.pl, even where these are wrong; implies "
          "--raw-names (docs/comparing-with-perf.md)",
          [&options](std::string_view) -> Result<> {
            options.perf_bytes = {.is_asked_for = true,
                                  .folds_as_perl = true,
                                  .dumps_payloads = true,
                                  .keeps_zero_periods = true,
                                  .orders_siblings = true,
                                  .leaves_out_parameters = true,
                                  .leaves_out_guests = true};
            options.names = Names::Raw;
            if (options.session.max_stack == kDeepestStack) options.session.max_stack = kDeepestOfPerf;
            symbolize::SymbolOptions& symbols = options.session.symbols;
            symbols.callers = symbolize::Callers::ByReturnAddress;
            symbols.use_symbol_name = symbolize::UseSymbolName::AsPerf;
            symbols.unwinds_32_bit = false;
            symbols.names_memory_files = false;
            symbols.keeps_pid_zero = true;
            symbols.unnamed = symbolize::Unnamed::Addresses;
            symbols.labels = symbolize::Labels::All;
            symbols.checks_inodes = false;
            options.session.leaves_out_guests = true;
            options.session.keeps_hooks = true;
            options.is_wide = true;
            return Done{};
          }};
}

cli::Option wide_option(std::string names, ReadingOptions& options) {
  return sets(
      std::move(names),
      "do not cut names; by default tables fit the terminal, or 200 columns if standard output is a pipe "
      "or a file, and long names are cut in the middle",
      options.is_wide, true);
}

cli::Option inflate_option(format::ReadOptions& options) {
  return sets(
      "--inflate-all",
      "read all compressed records; by default reading stops at data that is compressed more than any "
      "recorder compresses, as in a decompression bomb",
      options.inflate.total, false);
}

cli::Option worker_option(bool& has_worker) {
  return sets("--no-worker",
              "read the capture and the files of its modules in this process; by default a sandboxed process "
              "reads them, and a file that crashes it is left out",
              has_worker, false);
}

void add_input_options(std::vector<cli::Option>& rows, ReadingOptions& options) {
  const std::size_t first = rows.size();
  options.session.input = input_when_none_is_named();
  options.width = terminal_width();
  rows.push_back(cli::text("-i,--input", "FILE",
                           "the capture to read; - is standard input (default: standard input when it is a "
                           "pipe, else perf.data)",
                           options.session.input));
  rows.push_back(cli::text("-o,--output", "FILE",
                           "write the text to FILE, which gets its name when it is complete (default: "
                           "standard output)",
                           options.output));
  rows.push_back(sets("--no-pager", "print on a terminal without a pager (TACHO_PAGER, PAGER, else less)",
                      options.paging, Paging::Never));
  rows.push_back(sets("--raw-names",
                      "print names byte for byte as perf does; by default control characters and invalid "
                      "UTF-8 become \\xNN",
                      options.names, Names::Raw));
  // Passed by tacho-record for a capture in memory, which has no file name.
  rows.push_back(cli::text("--input-name", "TEXT", "", options.input_name));
  rows.push_back(inflate_option(options.session.capture));
  options.has_worker = true;
  rows.push_back(worker_option(options.has_worker));
  rows.push_back(accepted("-f,--force", cli::Takes::Nothing,
                          "accepted as in perf, without effect: files of other owners are always read"));
  cli::mark_common(rows, first);
}

cli::Option file_time_option(std::optional<std::uint64_t>& seconds) {
  return {"--max-file-time", cli::Takes::Value, "SECONDS",
          "spend at most so long on reading files with symbols, all together; code in further files has no "
          "names. Default: 300, or 3600 with --debuginfod; 0: no limit",
          [&seconds](std::string_view text) -> Result<> {
            constexpr std::uint64_t kYear = 365 * 24 * 60 * 60;
            const auto number = cli::parse_number("--max-file-time", text, 0, kYear);
            if (!number) return number.error();
            seconds = *number;
            return Done{};
          }};
}

sandbox::FileTimes file_times(std::optional<std::uint64_t> seconds, symbolize::Servers servers) {
  sandbox::FileTimes times;
  if (servers == symbolize::Servers::Asked) times.at_one = times.at_all = std::chrono::hours(1);
  if (seconds) times.at_all = std::chrono::seconds(*seconds);
  return times;
}

cli::Option skip_file_option(std::vector<std::string>& files) {
  return {
      "--skip-file", cli::Takes::Value, "FILE",
      "do not read FILE, a module's path in the capture: its code has no names. May be given several times",
      [&files](std::string_view text) -> Result<> {
        files.emplace_back(text);
        return Done{};
      }};
}

void add_reading_options(std::vector<cli::Option>& rows, ReadingOptions& options) {
  const std::size_t first = rows.size();
  add_input_options(rows, options);
  rows.push_back(file_time_option(options.file_seconds));
  rows.push_back(skip_file_option(options.skipped_files));
  rows.push_back({"--jobs", cli::Takes::Value, "N",
                  "threads that work at the same time; the output is the same for any number. Default: one "
                  "for each processor, at most 8",
                  [&jobs = options.session.jobs](std::string_view text) -> Result<> {
                    constexpr std::uint64_t kMost = 64;
                    const auto number = cli::parse_number("--jobs", text, 1, kMost);
                    if (!number) return number.error();
                    jobs = static_cast<unsigned>(*number);
                    return Done{};
                  }});
  auto& symbols = options.session.symbols;
  rows.push_back(cli::text("--symfs", "DIR",
                           "look for binaries below this folder, a copy of the recording host's root",
                           symbols.symfs));
  rows.push_back(cli::text("--kallsyms", "FILE", "kernel symbols (default: those attached to the capture)",
                           symbols.kallsyms));
  rows.push_back(
      cli::text("--perf-map-dir", "DIR",
                "folder of the perf-PID.map files of JIT compilers (default: /tmp of the recording host)",
                symbols.perf_map_dir));
  rows.push_back(
      cli::text("--jitdump-dir", "DIR",
                "folder of the jit-PID.dump files of JIT compilers (default: where they were mapped)",
                symbols.jitdump_dir));
  rows.push_back(cli::text("-k,--vmlinux", "FILE",
                           "the recorded kernel's vmlinux: names and lines of kernel code come from it",
                           symbols.vmlinux));
  rows.push_back(cli::text("--buildid-dir", "DIR",
                           "perf's cache of files by build id (default: ~/.debug; none with --symfs)",
                           symbols.build_id_dir));
  rows.push_back({"--debuginfod", cli::Takes::Nothing, "",
                  "fetch missing files of modules that samples hit, by build id, from the servers in "
                  "DEBUGINFOD_URLS; each within ten minutes, or DEBUGINFOD_MAXTIME seconds",
                  [&symbols](std::string_view) -> Result<> {
                    symbols.debuginfod = symbolize::Servers::Asked;
                    // For libdebuginfod.
                    ::setenv("DEBUGINFOD_MAXTIME", "600", 0);
                    if (::isatty(STDERR_FILENO) != 0) ::setenv("DEBUGINFOD_PROGRESS", "1", 0);
                    return Done{};
                  }});
  symbols.inlines = symbolize::Inlines::Unwound;
  rows.push_back(
      {"--inline", cli::Takes::Optional, "all",
       "frames for inlined calls in stacks that are unwound here (the default); =all: in every stack",
       [&symbols](std::string_view text) -> Result<> {
         if (!text.empty() && text != "all") {
           return use_error("--inline: '" + std::string(text) +
                            "' is not known; it is --inline or --inline=all");
         }
         symbols.inlines = text.empty() ? symbolize::Inlines::Unwound : symbolize::Inlines::All;
         return Done{};
       }});
  rows.push_back(sets("--no-inline", "no frames for inlined calls", symbols.inlines, symbolize::Inlines::No));
  rows.push_back(accepted("--demangle", cli::Takes::Nothing, "show names as in the source (the default)"));
  rows.push_back(sets("--no-demangle", "show C++, Rust, OCaml and Java functions by their ELF symbols",
                      symbols.demangle, symbolize::Demangle::No));
  cli::mark_common(rows, first);
}

cli::Option stable_option(const std::string& help, symbolize::SymbolOptions& symbols,
                          std::function<Result<>()> set) {
  return {
      "--stable", cli::Takes::Nothing, "",
      "text that stays the same on every host and with every version of tacho: names come from the capture "
      "(tacho pack) alone and are not demangled; for captures that a build keeps. Includes " +
          help,
      [&symbols, set = std::move(set)](std::string_view) -> Result<> {
        symbols.symfs = symbolize::kNoFiles;
        symbols.demangle = symbolize::Demangle::No;
        symbols.cut_mark = symbolize::CutMark::None;
        return set();
      }};
}

cli::Option truncated_stacks_option(symbolize::CutMark& mark) {
  return {"--truncated-stacks", cli::Takes::Value, "HOW",
          "which truncated stack copies end with a frame at address -1: 'all'; 'perf' (the default): as perf "
          "6.1, on arm64 none; 'none': as perf 7",
          [&mark](std::string_view text) -> Result<> {
            using Row = std::pair<std::string_view, symbolize::CutMark>;
            constexpr Row kHow[] = {{"perf", symbolize::CutMark::AsPerf6},
                                    {"all", symbolize::CutMark::All},
                                    {"none", symbolize::CutMark::None}};
            const auto* const how = std::ranges::find(kHow, text, &Row::first);
            if (how == std::end(kHow))
              return use_error("--truncated-stacks: '" + std::string(text) +
                               "' is not known; it is perf, all or none");
            mark = how->second;
            return Done{};
          }};
}

cli::Option kcore_option(ReadingOptions& options) {
  return cli::text(
      "--kcore", "FILE",
      "the kernel's code as it ran, for annotated functions: /proc/kcore (as root, on the machine "
      "and in the boot of the recording), or the copy that perf record --kcore makes. Default: "
      "the copy beside the capture, if it has one",
      options.kcore);
}

Result<format::Fd> take_kernel_files(ReadingOptions& options) {
  symbolize::SymbolOptions& symbols = options.session.symbols;
  const std::string folder = options.session.input + "/kcore_dir/";
  const auto has = [&folder](const char* name) { return ::access((folder + name).c_str(), R_OK) == 0; };
  if (symbols.kallsyms.empty() && symbols.vmlinux.empty() && has("kallsyms"))
    symbols.kallsyms = folder + "kallsyms";
  symbols.is_kcore_of_capture = options.kcore.empty() && symbols.vmlinux.empty() && has("kcore");
  const std::string path = symbols.is_kcore_of_capture ? folder + "kcore" : options.kcore;
  if (path.empty()) return format::Fd();
  auto file = format::open_input(path);
  // A damaged copy beside a capture costs the kernel's code alone, which views say.
  if (!file && symbols.is_kcore_of_capture) return format::Fd();
  if (!file) return std::move(file.error()).in("--kcore");
  symbols.kcore = file->get();
  return file;
}

sandbox::KernelSymbols kernel_symbols_for(const symbolize::SymbolOptions& symbols) {
  const bool is_needed = symbols.symfs.empty() || !symbols.kallsyms.empty();
  return is_needed ? sandbox::KernelSymbols::Shown : sandbox::KernelSymbols::Hidden;
}

namespace {

// cli::CompleteValue of all commands that read a capture.
bool complete_from_capture(const cli::ValuePlace& place) {
  if (print_fixed_values(place)) return true;
  const auto values = named_values(place);
  if (!values) return false;
  cli::print_candidates(values->place, values->always);
  ReadingOptions options;
  options.has_worker = true;
  options.paging = Paging::Never;
  options.session.input = capture_before(place);
  options.session.wants_stacks = false;
  // A capture that cannot be read has no names; the command itself will say why.
  static_cast<void>(show_session(options, [&values](Session& session, TextOutput& out) -> Result<Shown> {
    read_head(session);
    out.text(cli::candidate_lines(values->place, names_of_capture(session, *values)));
    return Shown(Symbols::NotUsed);
  }));
  return true;
}

}  // namespace

cli::CommandLine command_line(std::string_view name, std::string description) {
  cli::CommandLine line;
  line.program = "tacho " + std::string(name);
  line.synopsis = "[FILE] [options]";
  line.description = std::move(description);
  line.epilog =
      "Exit status: 0 whole; 1 wrong use; 2 the capture cannot be read; 3 a result was given but something\n"
      "is missing from it (stderr says what); 4 the output could not be written.";
  return line;
}

std::optional<double> parse_percentage(std::string_view text) {
  double percent = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool is_number = failed == std::errc{} && end == text.data() + text.size();
  return is_number && percent >= 0 && percent <= 100 ? std::optional(percent) : std::nullopt;
}

namespace {

// Makes the word of a command line the capture to read, as -i does. `input`: the row of -i. `named`: the
// value of -i. Both must outlive the parsing.
void take_capture_word(cli::CommandLine& line, cli::Option& input, std::optional<std::string>& named) {
  input.set = [&named, set = input.set](std::string_view text) {
    named = text;
    return set(text);
  };
  const bool has_symbols = std::ranges::any_of(
      line.options, [](const cli::Option& row) { return row.names.ends_with("--symbol-filter"); });
  line.words = [&, has_symbols](const std::vector<std::string>& words) -> Result<> {
    if (words.size() > 1) return use_error("one capture is read, and '" + words[1] + "' is a second one");
    const std::string& word = words.front();
    if (named) return use_error("the capture is named twice: -i " + *named + " and " + word);
    struct stat facts {};
    const bool is_missing = word != "-" && ::stat(word.c_str(), &facts) != 0 && errno == ENOENT;
    if (is_missing && has_symbols)
      return use_error("'" + word + "' is no file: " + line.program +
                       " FILE reads a capture, and --symbol-filter " + word +
                       " shows functions with this in their names");
    return input.set(word);
  };
}

}  // namespace

Result<cli::ExitStatus> run_command(const cli::CommandLine& given, const std::vector<std::string>& arguments,
                                    const std::function<Result<cli::ExitStatus>()>& work) {
  cli::CommandLine line = given;
  std::optional<std::string> named;
  const auto input = std::ranges::find(line.options, "-i,--input", &cli::Option::names);
  if (!line.words && input != line.options.end()) take_capture_word(line, *input, named);
  const auto parsed = cli::parse_or_complete(line, arguments, complete_from_capture);
  if (!parsed) return parsed.error();
  if (*parsed == cli::Parsed::HelpShown) return cli::kWhole;
  return work();
}

namespace {

// What a command needs of a capture: its records alone, or also the symbols of its modules.
enum class Reads : std::uint8_t { Only, AndSymbols };

// The callbacks that a worker has.
struct Surroundings {
  std::function<Result<OutputFile>()> open_output;
  std::function<bool()> is_asked_to_stop{};  // --follow
  const ScreenPlan* screen = nullptr;        // null: the output is text
  Reads reads = Reads::AndSymbols;
};

// Refused, as by perf: no sample would match, as if these CPUs had been idle.
Result<> check_processors(Session& session, const SessionOptions& options) {
  if (options.filter.cpus.empty()) return Done{};
  read_head(session);
  const auto tells_processor = [](const format::Event& event) {
    return event.attr.samples(format::abi::kSampleCpu);
  };
  if (session.events().empty() || std::ranges::any_of(session.events(), tells_processor)) return Done{};
  return use_error(printable(options.input) +
                   ": --cpu: no event here has the CPU of its samples; leave it out (perf "
                   "record -C, -a or --sample-cpu record it)");
}

Result<cli::ExitStatus> show_session_here(const ReadingOptions& options, SessionOptions wanted,
                                          const ShowBeside& show, const Surroundings& around) {
  format::Following following;
  if (options.follows) {
    following.waits = [&around] { return !around.is_asked_to_stop(); };
    following.shows_at_once = true;
    wanted.capture.following = &following;
  }
  auto session = Session::open(wanted);
  if (!session) return std::move(session.error());
  if (auto checked = check_processors(*session, options.session); !checked) return std::move(checked.error());
  if (session->has_condition()) {
    read_head(*session);
    if (auto bound = session->bind_condition(); !bound)
      return std::move(bound.error()).in(printable(options.shown_input()));
  }
  auto file = around.open_output();
  if (!file) return std::move(file.error());
  TextOutput out(std::move(*file));
  auto shown = show(*session, wanted, out);
  if (!shown) return shown.error();
  if (auto written = out.finish(); !written) return std::move(written.error());
  const auto& condition = session->filter().condition;
  if (const std::string note = condition == nullptr ? "" : condition->note(); !note.empty())
    shown->notes.push_back("tacho: " + printable(options.shown_input()) + ": " + printable(note));
  tell_end_of_following(following.end, options.shown_input());
  // The reader closed the output, so lines about the rest are of no use.
  if (shown->symbols == Symbols::Used && !out.is_done()) session->report_missing_symbols();
  return end(*shown, session->diagnostics(), options);
}

// Opens the output, calls `show`, and finishes the output.
Result<cli::ExitStatus> show_text(const ReadingOptions& options, const format::Diagnostics& diagnostics,
                                  const std::function<Result<Shown>(TextOutput&)>& show,
                                  const Surroundings& around) {
  auto file = around.open_output();
  if (!file) return std::move(file.error());
  TextOutput out(std::move(*file));
  const auto shown = show(out);
  if (!shown) return shown.error();
  if (auto written = out.finish(); !written) return std::move(written.error());
  return end(*shown, diagnostics, options);
}

// The work of show_session() and show_records(), in a worker or here.
using ShowHere = std::function<Result<cli::ExitStatus>(SessionOptions wanted, const Surroundings&)>;

Result<cli::ExitStatus> show_here(const ReadingOptions& options, const ShowHere& show,
                                  const Surroundings& around) {
  sandbox::SkippedFiles skipped(options.skipped_files);
  SessionOptions wanted = options.session;
  if (!options.skipped_files.empty()) wanted.symbols.access = wanted.symbols.name_access = &skipped;
  return show(std::move(wanted), around);
}

Result<cli::ExitStatus> show_in_worker(const ReadingOptions& options, const ShowHere& show,
                                       const Surroundings& around) {
  sandbox::Task task;
  task.input = options.session.input;
  task.can_restart = can_be_read_again(options.session.input);
  task.skipped = options.skipped_files;
  task.skip_option = "--skip-file";
  task.open_output = [&around] { return output_of(around.open_output()); };
  task.is_asked_to_stop = around.is_asked_to_stop;
  task.show_progress = progress_lines();
  if (options.session.symbols.kcore >= 0) task.kept.push_back(options.session.symbols.kcore);
  if (const symbolize::PinnedFiles* const pinned = options.session.symbols.pinned; pinned != nullptr)
    std::ranges::copy(pinned->descriptors(), std::back_inserter(task.kept));
  if (around.reads != Reads::Only) task.kernel_symbols = kernel_symbols_for(options.session.symbols);
  const bool asks_servers = options.session.symbols.debuginfod == symbolize::Servers::Asked;
  task.policy = asks_servers ? sandbox::Policy::Servers : sandbox::Policy::Trials;
  task.times = file_times(options.file_seconds, options.session.symbols.debuginfod);
  if (around.screen != nullptr) {
    task.is_screen = true;
    task.kept.insert(task.kept.end(), around.screen->kept.begin(), around.screen->kept.end());
    task.restart = []() -> Result<> { return Done{}; };
  }
  const off_t start = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  task.work = [&](sandbox::Child& child) {
    if (options.session.input == "-" && start >= 0) (void)::lseek(STDIN_FILENO, start, SEEK_SET);
    SessionOptions wanted = options.session;
    wanted.symbols.access = &child.stacks;
    wanted.symbols.name_access = &child.names;
    wanted.in_step = child.is_serial;
    const Surroundings there{
        .open_output = [&]() -> Result<OutputFile> { return OutputFile(child.open_output()); },
        .is_asked_to_stop = child.is_asked_to_stop};
    return show(std::move(wanted), there);
  };
  return sandbox::run_view_or(task, [&] { return show_here(options, show, around); });
}

// Runs the work in a worker if the options want one and the kernel has seccomp.
Result<cli::ExitStatus> show_here_or_in_worker(ReadingOptions options, const ShowHere& show,
                                               const Surroundings& around) {
  const auto kcore = take_kernel_files(options);
  if (!kcore) return kcore.error();
  return options.has_worker ? show_in_worker(options, show, around) : show_here(options, show, around);
}

Result<cli::ExitStatus> show_capture(const ReadingOptions& options, Reads reads, const ShowHere& show) {
  std::optional<sandbox::Interruption> interruption;
  Surroundings around{.open_output = [&options] { return open_output(options); }, .reads = reads};
  if (options.follows) {
    auto watched = sandbox::Interruption::watch();
    if (!watched) return std::move(watched.error());
    interruption.emplace(std::move(*watched));
    around.is_asked_to_stop = [&interruption] { return interruption->is_asked_for(); };
  }
  return show_here_or_in_worker(options, show, around);
}

}  // namespace

Result<cli::ExitStatus> show_session(const ReadingOptions& options, const ShowSession& show) {
  return show_session_beside(options, [&show](Session& session, const SessionOptions&, TextOutput& out) {
    return show(session, out);
  });
}

Result<cli::ExitStatus> show_session_beside(const ReadingOptions& options, const ShowBeside& show) {
  return show_capture(options, Reads::AndSymbols, [&](SessionOptions wanted, const Surroundings& around) {
    return show_session_here(options, std::move(wanted), show, around);
  });
}

Result<cli::ExitStatus> show_on_screen(const ReadingOptions& options, const ScreenPlan& screen,
                                       const ShowBeside& show) {
  const ShowHere here = [&](SessionOptions wanted, const Surroundings& around) {
    return show_session_here(options, std::move(wanted), show, around);
  };
  const Surroundings around{.open_output = screen.open_output, .screen = &screen};
  return show_here_or_in_worker(options, here, around);
}

Result<cli::ExitStatus> show_alone(const ReadingOptions& options, const ScreenPlan* screen,
                                   const ShowAlone& show) {
  const ShowHere here = [&](const SessionOptions& wanted, const Surroundings& around) {
    return show_text(
        options, format::Diagnostics(), [&](TextOutput& out) { return show(wanted, out); }, around);
  };
  const Surroundings around{
      .open_output = screen != nullptr ? screen->open_output : [&options] { return open_output(options); },
      .screen = screen};
  return show_here_or_in_worker(options, here, around);
}

Result<cli::ExitStatus> show_records(const ReadingOptions& options, const ShowRecords& show) {
  return show_capture(
      options, Reads::Only,
      [&](const SessionOptions& wanted, const Surroundings& around) -> Result<cli::ExitStatus> {
        format::Diagnostics diagnostics;
        auto reader = format::CaptureReader::open(wanted.input, diagnostics, wanted.capture);
        if (!reader) return std::move(reader.error());
        return show_text(
            options, diagnostics, [&](TextOutput& out) { return show(*reader, diagnostics, out); }, around);
      });
}

Result<cli::ExitStatus> run_view(const cli::CommandLine& line, const std::vector<std::string>& arguments,
                                 const ReadingOptions& options, const ShowSession& show) {
  return run_command(line, arguments, [&] { return show_session(options, show); });
}

std::vector<std::string> findings_text(const format::Diagnostics& diagnostics, const std::string& input) {
  std::vector<std::string> lines;
  for (const auto& finding : diagnostics.findings())
    lines.push_back("tacho: " + printable(input) + ": " +
                    printable(format::Diagnostics::finding_text(finding)));
  return lines;
}

cli::ExitStatus tell_findings(const format::Diagnostics& diagnostics, const std::string& input) {
  for (const std::string& line : findings_text(diagnostics, input)) std::fputs((line + '\n').c_str(), stderr);
  return diagnostics.incomplete() ? cli::kIncomplete : cli::kWhole;
}

}  // namespace tacho::report
