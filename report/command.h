// The frame of every command of tacho-report: common options, opening capture and output, and at the end the
// lines about missing or damaged data, with the exit status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "cli/option_rows.h"
#include "cli/options.h"
#include "report/output/terminal.h"
#include "report/output/text_output.h"
#include "report/samples/session.h"
#include "sandbox/process.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

// A row of the table of commands.
struct Command {
  std::string_view name;
  std::string_view help;  // one line; empty: internal, for tacho-record, and not listed
  Result<cli::ExitStatus> (*run)(const std::vector<std::string>& arguments);
};

using cli::accepted;
using cli::flag;
// An option without a value that sets `target`, which must outlive the parsing, to `value`.
template <class T>
cli::Option sets(std::string names, std::string help, T& target, std::type_identity_t<T> value) {
  return {std::move(names), cli::Takes::Nothing, "", std::move(help),
          [&target, value](std::string_view) -> Result<> {
            target = value;
            return Done{};
          }};
}

// --as-perf: print the same bytes as perf 6.1 or stackcollapse-perf.pl, even where these are wrong. This
// struct has a member for each thing that the option changes; views test the member and not the option.
// docs/comparing-with-perf.md lists the differences for users.
struct PerfBytes {
  bool is_asked_for = false;  // the option was given
  // folded: stacks as stackcollapse-perf.pl parses them from perf's text. The thread's name is the first word
  // that looks like one, function names are cut where the script cuts them, and all samples are counted under
  // the first event.
  bool folds_as_perl = false;
  // script: BPF payloads are dumped in hexadecimal although their fields are known, and stacks are the
  // samples' own call chains, not the stacks in payloads.
  bool dumps_payloads = false;
  // report: events whose periods are all 0 have 0.00 % in every row, as each of their samples weighs 0.
  bool keeps_zero_periods = false;
  // report: siblings of equal weight in call graphs are sorted by address, the highest first.
  bool orders_siblings = false;
  // report: overloads have their name without parameters, and inlined ones are one frame of a call graph.
  bool leaves_out_parameters = false;
  // Samples of guests (cpumode 4 and 5) are left out.
  bool leaves_out_guests = false;
};

// A further file, and the option that names it.
struct MoreOutput {
  std::string_view option;
  std::string path;
};

struct ReadingOptions {
  SessionOptions session;
  std::string input_name;  // the input's name in messages; empty: session.input
  Names names = Names::Safe;
  PerfBytes perf_bytes;
  std::vector<std::string> other_inputs;  // further captures whose contents the output has
  std::string output;                     // a file for the text; empty: standard output
  std::vector<MoreOutput> more_outputs;   // of a view that writes further files (output/output_parts.h)
  Paging paging = Paging::OnTerminal;
  std::size_t width = 0;  // columns of the terminal on standard output; 0: that is no terminal
  bool is_wide = false;   // --wide: no limit
  bool follows = false;   // --follow: the capture may still grow
  // Read the capture and the files of its modules in a sandboxed child (sandbox/process.h).
  bool has_worker = false;
  std::optional<std::uint64_t> file_seconds;  // --max-file-time; 0: no limit
  std::vector<std::string> skipped_files;     // --skip-file
  // --kcore: the kernel's memory, for its code. Empty: the copy that perf record --kcore made, if there is
  // one.
  std::string kcore;
  const std::string& shown_input() const { return input_name.empty() ? session.input : input_name; }
  // The columns that a table must fit into, also in a pipe; 0: no limit.
  std::size_t room() const {
    constexpr std::size_t kPipeWidth = 200;
    if (is_wide || !is_standard_output()) return 0;
    return width != 0 ? width : kPipeWidth;
  }
  // Only those of a terminal; 0: no limit.
  std::size_t terminal_room() const { return is_wide || !is_standard_output() ? 0 : width; }
  bool is_standard_output() const { return output.empty() || output == "-"; }
};

// The first given option that applies to printed text only, not to the screen; empty: none. `own`: options of
// the view (whether each was given, its name), which come before the options of all views.
std::string_view first_text_option(std::initializer_list<std::pair<bool, std::string_view>> own,
                                   bool is_quiet, Colour colour, const ReadingOptions& reading);

// The default input: "-" when standard input is a pipe, as in perf; else "perf.data".
std::string input_when_none_is_named();

// Adds -i, -o, --no-pager, --raw-names, --inflate-all, --no-worker and -f, for a command that shows no
// symbols, and turns the worker on. `options` must outlive the parsing.
void add_input_options(std::vector<cli::Option>& rows, ReadingOptions& options);

// Adds the same and the options about symbols: --symfs, --kallsyms, -k, --buildid-dir, --debuginfod,
// --perf-map-dir, --jitdump-dir, --inline, --no-inline and --no-demangle.
void add_reading_options(std::vector<cli::Option>& rows, ReadingOptions& options);

// --truncated-stacks, for a command that shows stacks.
cli::Option truncated_stacks_option(symbolize::CutMark& mark);

// --stable: text that is the same on every host and with every version: names come from the capture alone, as
// linker names. `set` chooses the form; `help`: its options.
cli::Option stable_option(const std::string& help, symbolize::SymbolOptions& symbols,
                          std::function<Result<>()> set);

// --follow, for a command that reads a capture while it grows.
cli::Option follow_option(ReadingOptions& options);

// --as-perf, for a command with the layout of perf or stackcollapse-perf.pl.
cli::Option as_perf_option(ReadingOptions& options);
// The note about samples of events that a pipe described after its first samples.
std::string late_events_text(std::uint64_t samples);

// --kcore, for a command that shows or packs code.
cli::Option kcore_option(ReadingOptions& options);
// Opens the kernel's memory that --kcore names, which a worker may not open, for the options about symbols. A
// capture of perf record --kcore is a folder with a copy of that memory and of kallsyms: these are the
// default. The descriptor must live as long as the options are used; -1: there is none. show_session() and
// the other functions that open a session call it.
Result<format::Fd> take_kernel_files(ReadingOptions& options);
// Whether a sandboxed process may need this machine's kernel symbols: not with the files of another one.
sandbox::KernelSymbols kernel_symbols_for(const symbolize::SymbolOptions& symbols);

// --wide, for a command whose tables fit into ReadingOptions::room(). `names` is "-w,--wide" or "--wide".
cli::Option wide_option(std::string names, ReadingOptions& options);

// --inflate-all.
cli::Option inflate_option(format::ReadOptions& options);

// --no-worker, for a command that uses a worker by default.
cli::Option worker_option(bool& has_worker);

// --max-file-time, for a command that reads files of modules; and the limits it gives, which are higher with
// debuginfod: servers may be slow and files large.
cli::Option file_time_option(std::optional<std::uint64_t>& seconds);
cli::Option skip_file_option(std::vector<std::string>& files);
sandbox::FileTimes file_times(std::optional<std::uint64_t> seconds, symbolize::Servers servers);

// Whether the input can be opened and read a second time (a file and not a pipe).
bool can_be_read_again(const std::string& input);

// The command line of a command that takes options and a capture.
cli::CommandLine command_line(std::string_view name, std::string description);

// A number from 0 to 100; nullopt: the text is no such number.
std::optional<double> parse_percentage(std::string_view text);

// Parses the command line and calls `work`, or prints --help. A word that is not an option is the capture, as
// with -i, unless the command line has its own words.
Result<cli::ExitStatus> run_command(const cli::CommandLine& line, const std::vector<std::string>& arguments,
                                    const std::function<Result<cli::ExitStatus>()>& work);

// Whether symbols were looked up, so that missing ones are reported.
enum class Symbols : std::uint8_t { Used, NotUsed };
// The result of a view whose text is complete.
struct Shown {
  explicit Shown(Symbols used) : symbols(used) {}
  Symbols symbols;
  std::vector<std::string> notes;        // lines for stderr, printed after the whole text
  cli::ExitStatus status = cli::kWhole;  // the exit status if nothing else is missing
};
using ShowSession = std::function<Result<Shown>(Session&, TextOutput&)>;
using ShowRecords = std::function<Result<Shown>(format::CaptureReader&, format::Diagnostics&, TextOutput&)>;

// Opens the capture and the output, calls `show`, finishes the output, and prints lines about damaged,
// missing and lost data to stderr; such data sets the exit status. If `show` fails, its buffered text is
// dropped. With a worker, `show` runs in the child process: variables that it changes keep their old values
// here.
Result<cli::ExitStatus> show_session(const ReadingOptions& options, const ShowSession& show);
// The same for a view that reads further captures, as a difference does. It opens them with `wanted`, the
// session's own options (in a worker also its access to files), and another input.
using ShowBeside = std::function<Result<Shown>(Session&, const SessionOptions& wanted, TextOutput&)>;
Result<cli::ExitStatus> show_session_beside(const ReadingOptions& options, const ShowBeside& show);
// The same for a terminal interface: its output takes frames until finish(), which leaves the screen; until
// then nothing is written to stderr. `kept` are descriptors that stay open in a worker.
struct ScreenPlan {
  std::function<Result<OutputFile>()> open_output;
  std::vector<int> kept;
};
Result<cli::ExitStatus> show_on_screen(const ReadingOptions& options, const ScreenPlan& screen,
                                       const ShowBeside& show);
// For a view that opens captures itself. `screen`: null for text.
using ShowAlone = std::function<Result<Shown>(const SessionOptions& wanted, TextOutput&)>;
Result<cli::ExitStatus> show_alone(const ReadingOptions& options, const ScreenPlan* screen,
                                   const ShowAlone& show);
// run_command() with show_session().
Result<cli::ExitStatus> run_view(const cli::CommandLine& line, const std::vector<std::string>& arguments,
                                 const ReadingOptions& options, const ShowSession& show);
// The same with plain records, neither sorted by time nor resolved.
Result<cli::ExitStatus> show_records(const ReadingOptions& options, const ShowRecords& show);

// Passes the samples to `sink`, as Session::run() does, and shows the progress on a terminal after a second.
// With --follow the text is flushed whenever the capture has nothing new; `before_wait` is called before
// that, about ten times a second.
void run_with_progress(Session& session, Sink& sink, TextOutput& out,
                       const std::function<void()>& before_wait = {});

// Reads a pipe up to its first sample: its events and features are records before it. Does nothing for a
// file.
void read_head(Session& session);

// Checks that --event names events of the capture; calls read_head().
Result<> check_events(Session& session, const ReadingOptions& options);

// The lines for stderr about damaged, missing and lost data of `input`.
std::vector<std::string> findings_text(const format::Diagnostics& diagnostics, const std::string& input);
// Prints these lines and returns the exit status: the end of a command that does not use show_session().
cli::ExitStatus tell_findings(const format::Diagnostics& diagnostics, const std::string& input);

}  // namespace tacho::report
