// What every command of the report program does around its own work: the options that all of them have,
// opening the capture and the output, and at the end what was missing, with the exit status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_status.h"
#include "cli/option_rows.h"
#include "cli/options.h"
#include "report/output/pager.h"
#include "report/output/text_output.h"
#include "report/perf_bytes.h"
#include "report/samples/session.h"
#include "sandbox/process.h"

namespace tacho::report {

// A row of the table of commands.
struct Command {
  std::string_view name;
  std::string_view help;  // one line; empty: for our programs alone, and listed nowhere
  Result<cli::ExitStatus> (*run)(const std::vector<std::string>& arguments);
};

using cli::accepted;
using cli::flag;

struct ReadingOptions {
  SessionOptions session;
  Names names = Names::Safe;
  PerfBytes perf_bytes;
  std::string output;  // a file for the text; empty: standard output
  Paging paging = Paging::OnTerminal;
  std::size_t width = 0;  // that tables fit into: the terminal's, of standard output; 0: no limit
  bool follows = false;   // --follow: the capture may still be written
  // Whether a process that may do nothing else reads the capture and the files that it names.
  bool has_worker = false;
  std::optional<std::uint64_t> file_seconds;  // --max-file-time; 0: any time
  std::vector<std::string> skipped_files;     // --skip-file

  // Columns that a table has; 0: as many as it needs.
  std::size_t room() const { return output.empty() || output == "-" ? width : 0; }
};

// "-" when standard input is a pipe, as perf has it; else "perf.data".
std::string input_when_none_is_named();

// Rows for -i, -o, --no-pager, --raw-names, --inflate-all, --no-worker and -f: for a command that shows no
// symbols; the command has a worker then. `options` must outlive the parsing.
void add_input_options(std::vector<cli::Option>& rows, ReadingOptions& options);

// Those rows, and the rows about symbols: --symfs, --kallsyms, -k, --buildid-dir, --debuginfod,
// --perf-map-dir,
// --jitdump-dir, --inline, --no-inline and --no-demangle.
void add_reading_options(std::vector<cli::Option>& rows, ReadingOptions& options);

// The row for --truncated-stacks: for a command that shows stacks.
cli::Option truncated_stacks_option(symbolize::CutMark& mark);

// The row for --follow: for a command that shows samples as they come, or is worth to be waited for.
cli::Option follow_option(ReadingOptions& options);

// The row for --as-perf: for a command that prints what perf or stackcollapse-perf.pl prints.
cli::Option as_perf_option(ReadingOptions& options);

// The row for --wide, of a command whose tables fit into ReadingOptions::room(). `names`: "-w,--wide".
cli::Option wide_option(std::string names, ReadingOptions& options);

// The row for --inflate-all.
cli::Option inflate_option(format::ReadOptions& options);

// The row for --no-worker, of a command that has a worker without it.
cli::Option worker_option(bool& has_worker);

// The row for --max-file-time, of a command that reads files which a capture names; and how long that may
// take: servers may be slow, and what they send large.
cli::Option file_time_option(std::optional<std::uint64_t>& seconds);
sandbox::FileTimes file_times(std::optional<std::uint64_t> seconds, symbolize::Servers servers);

// Whether whoever opens the input once more finds all of it again.
bool can_be_read_again(const std::string& input);

// A command without words: the first word is an error that says so.
cli::CommandLine command_line(std::string_view name, std::string description);

// Parses the command line; then `work` is the command, unless --help was asked for.
Result<cli::ExitStatus> run_command(const cli::CommandLine& line, const std::vector<std::string>& arguments,
                                    const std::function<Result<cli::ExitStatus>()>& work);

// What a view tells when its text is complete.
enum class Symbols : std::uint8_t {
  Used,
  NotUsed
};  // whether names were looked up, so that some may be missing
struct Shown {
  explicit Shown(Symbols used) : symbols(used) {}
  Symbols symbols;
  std::vector<std::string> notes;        // lines for stderr, told when the whole text is out
  cli::ExitStatus status = cli::kWhole;  // when nothing is missing from the result
};
using ShowSession = std::function<Result<Shown>(Session&, TextOutput&)>;
using ShowRecords = std::function<Result<Shown>(format::CaptureReader&, format::Diagnostics&, TextOutput&)>;

// Opens the capture and the output, lets `show` print, and ends: the output is made whole, and stderr says
// what was damaged, missing or lost, which decides the exit status. An error of `show` leaves what it printed
// unsaid. Where the options want a worker, `show` runs there: what it changes is lost.
Result<cli::ExitStatus> show_session(const ReadingOptions& options, const ShowSession& show);
// The same for a view that reads other captures beside it, as a difference does: they may be opened with what
// the session was opened with (in a worker that tells of the files there) and another input.
using ShowBeside = std::function<Result<Shown>(Session&, const SessionOptions& wanted, TextOutput&)>;
Result<cli::ExitStatus> show_session_beside(const ReadingOptions& options, const ShowBeside& show);
// The same for a view that draws on a screen: its output takes frames until it is finished, which leaves the
// screen; until then nothing is written to stderr. `kept`: descriptors that it needs in a worker.
struct ScreenPlan {
  std::function<Result<OutputFile>()> open_output;
  std::vector<int> kept;
};
Result<cli::ExitStatus> show_on_screen(const ReadingOptions& options, const ScreenPlan& screen,
                                       const ShowBeside& show);
// The command of a view that shows a session: its command line, then show_session().
Result<cli::ExitStatus> run_view(const cli::CommandLine& line, const std::vector<std::string>& arguments,
                                 const ReadingOptions& options, const ShowSession& show);
// As show_session(), also in a worker, with the bare records: nothing is ordered or resolved.
Result<cli::ExitStatus> show_records(const ReadingOptions& options, const ShowRecords& show);

// Gives the samples to `sink`, as Session::run() does; whoever waits longer than a second at a terminal sees
// how far it is. Of a capture that is followed the text goes out as soon as nothing new is there;
// `before_wait` is called before that, about ten times a second.
void run_with_progress(Session& session, Sink& sink, TextOutput& out,
                       const std::function<void()>& before_wait = {});

// A pipe's events and features come with its records: reads up to the first sample, before which they all
// stand. Nothing to do for a file.
void read_head(Session& session);

// Whether --event names events of the capture; the head of a pipe is read for it.
Result<> check_events(Session& session, const ReadingOptions& options);

// A line for each thing that was damaged, missing or lost in `input`, as stderr tells it.
std::vector<std::string> findings_text(const format::Diagnostics& diagnostics, const std::string& input);
// Says on stderr what was damaged, missing or lost in `input`: the end of a command that prints by itself.
cli::ExitStatus tell_findings(const format::Diagnostics& diagnostics, const std::string& input);

}  // namespace tacho::report
