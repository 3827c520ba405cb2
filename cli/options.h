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
  std::string value;  // what --help calls the value: "FILE", "LEVEL"
  std::string
      help;  // one or two lines; says the unit and the default. Empty: known, but not listed by --help
  // Called for every occurrence in the order of the command line; empty for a flag or an absent optional
  // value.
  std::function<Result<>(std::string_view)> set;
  bool is_common = false;  // most commands have it: --help lists it behind the command's own
};

struct CommandLine {
  std::string program;      // "tacho record"
  std::string synopsis;     // what follows the program's name in the usage line
  std::string description;  // a paragraph
  std::vector<Option> options;
  // Words that are no options. With `stop_at_first_word`, the first of them and all that follow go here
  // untouched (a command to run); "--" always does that. Called after the options, and only when there are
  // words.
  std::function<Result<>(std::vector<std::string>)> words;
  bool stop_at_first_word = false;
  std::string epilog;  // examples, exit statuses; shown at the end of --help
};

enum class Parsed { Run, HelpShown };

// --help prints to stdout and yields HelpShown. A wrong option is an Error with Fault::Use that names it,
// with the nearest right spelling when there is one close; then no row was called.
Result<Parsed> parse(const CommandLine& line, const std::vector<std::string>& arguments);
// The text of --help: options of this command, common options (Option::is_common), epilog.
std::string help_text(const CommandLine& line);

// Values of options, with messages that name the option: "-F: 'abc' is not a number".
Result<std::uint64_t> parse_number(std::string_view option, std::string_view text, std::uint64_t least,
                                   std::uint64_t most);

}  // namespace tacho::cli
