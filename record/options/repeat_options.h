// Options of a series of captures of the same command, or of several in turns: --repeat, --interleave,
// --warm-up. tacho diff and tacho check compare such captures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"

namespace tacho::record {

struct RepeatOptions {
  std::uint64_t captures = 0;  // of each command; 0: one recording, not a series
  std::uint64_t warm_ups = 0;  // runs before them, which are not kept
  bool interleaves = false;    // each word is a command of its own
  std::vector<int> cpus;       // of COMMAND (--pin); empty: all

  bool is_on() const { return captures > 0; }
};

// Appends these options; they set `repeat`, which must outlive the parsing.
void add_repeat_options(RepeatOptions& repeat, std::vector<cli::Option>& rows);
// Whether an option makes a series of files, so that a command that reads one recording cannot have it.
bool is_about_series(std::string_view names);
// Refuses options that need others.
Result<> check_repeat_options(const RepeatOptions& repeat, bool has_command);

// A command of a series.
struct RepeatedCommand {
  std::string name;  // of its folder: "" if there is one command, else "new" for "./new.sh 5", each once
  std::vector<std::string> words;
};
// The words are one command, or of --interleave one each, for a shell if it has blanks.
std::vector<RepeatedCommand> repeated_commands(const RepeatOptions& repeat, std::vector<std::string> words);

}  // namespace tacho::record
