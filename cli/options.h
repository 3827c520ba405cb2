// The command line of a program as a table of options. getopt_long parses by it; --help, shell completions
// and manual pages are made from it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"

namespace tacho::cli {

enum class Takes {
  Nothing,   // a flag
  Value,     // -o FILE, -oFILE, --output FILE, --output=FILE; the value may start with '-' or '+'
  Optional,  // -z, -z3, --compress, --compress=3; never the next word
  LastArg,   // as Optional, and the next word too when it does not start with '-' (perf report's -g)
};

struct Option {
  std::string names;  // "-o,--output"; perf's spellings
  Takes takes = Takes::Nothing;
  std::string value;  // the value's name in --help: "FILE", "LEVEL"
  std::string help;   // one or two lines, with unit and default. Empty: not listed by --help
  // Called for every occurrence in order; the value is empty for a flag or a missing optional value.
  std::function<Result<>(std::string_view)> set;
  bool is_common = false;  // most commands have it: --help lists it after the command's own
};

struct CommandLine {
  std::string program;      // "tacho record"
  std::string synopsis;     // the usage line after the program's name
  std::string description;  // a paragraph
  std::vector<Option> options;
  // Called with the words that are not options, if there are any, after the options. With
  // `stop_at_first_word`, or after "--", all further arguments are words (a command to run).
  std::function<Result<>(std::vector<std::string>)> words;
  bool stop_at_first_word = false;
  std::string epilog;  // examples, exit statuses; shown at the end of --help
};

enum class Parsed { Run, HelpShown };

// Writes to stdout and flushes it. A closed pipe (`head`) is no failure.
Result<> write_stdout(std::string_view text);

// --help prints to stdout and returns HelpShown. A wrong option is a usage error with a suggestion, before
// any row is called.
Result<Parsed> parse(const CommandLine& line, const std::vector<std::string>& arguments);
// The text of --help: options of this command, common options (Option::is_common), epilog.
std::string help_text(const CommandLine& line);

// Values of options, with messages that name the option: "-F: 'abc' is not a number".
Result<std::uint64_t> parse_number(std::string_view option, std::string_view text, std::uint64_t least,
                                   std::uint64_t most);

}  // namespace tacho::cli
