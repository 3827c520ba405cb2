// What every command of the report program begins and ends with: the options about reading a capture, and the
// closing words with the exit status.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_status.h"
#include "cli/options.h"
#include "report/output/printable.h"
#include "report/output/text_output.h"
#include "report/samples/session.h"

namespace tacho::report {

// A row of the table of commands.
struct Command {
  std::string_view name;
  std::string_view help;  // one line
  Result<cli::ExitStatus> (*run)(const std::vector<std::string>& arguments);
};

struct ReadingOptions {
  SessionOptions session;
  Names names = Names::Safe;
};

// Rows for -i, --symfs, --kallsyms, -k, --buildid-dir, --debuginfod, --perf-map-dir, --jitdump-dir, --inline,
// --no-inline,
// --no-demangle, --raw-names, and those of perf's spellings
// that change nothing here. `options` must outlive the parsing.
void add_reading_options(std::vector<cli::Option>& rows, ReadingOptions& options);

// Of those only -i, --raw-names and -f: for a command that shows no symbols.
void add_input_option(std::vector<cli::Option>& rows, ReadingOptions& options);

// Shorter ways to write an option's row.
cli::Option flag(std::string names, std::string help, bool& target);
// Accepted, as perf has it; nothing depends on it.
cli::Option accepted(std::string names, cli::Takes takes, std::string help);

// A command without words: the first one is an error that says so.
cli::CommandLine command_line(std::string_view name, std::string description);

// A pipe's events and features come with its records: reads up to the first sample, before which they all
// stand. Nothing to do for a file.
void read_head(Session& session);

// Ends a command: flushes, tells on stderr what was damaged, missing or lost, and decides the exit status.
enum class Symbols : std::uint8_t { Used, NotUsed };
Result<cli::ExitStatus> finish(Session& session, TextOutput& output, const ReadingOptions& options,
                               Symbols symbols);
// The same for a command that reads without a session.
Result<cli::ExitStatus> finish(const format::Diagnostics& diagnostics, TextOutput& output,
                               const ReadingOptions& options);

}  // namespace tacho::report
