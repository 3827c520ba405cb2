// Options about the output: -o, -z, --switch-output, --overwrite, --max-size, --redact.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"

namespace tacho::record {

// When a recording goes on in another file.
struct SwitchRule {
  bool is_on = false;                   // --switch-output or --overwrite: SIGUSR2 and --control switch, too
  std::uint64_t bytes = 0;              // the size of a file; 0: no limit
  std::chrono::milliseconds period{0};  // the time of a file; 0: no limit
};

struct OutputOptions {
  bool is_named = false;               // -o was given
  bool is_compression_chosen = false;  // -z was given
  bool to_pipe = false;                // perf's pipe form to standard output
  // The reader of the pipe has the terminal: the command gets no terminal, and ends when the reader ends.
  bool to_screen = false;
  int view = -1;  // pidfd of the process that reads the pipe, if it is a view of this program; -1: none
  SwitchRule switch_rule;
  bool overwrite = false;         // flight recorder: a capture of the last samples is made on demand
  std::uint64_t most_files = 0;   // 0: all are kept
  bool is_named_by_time = false;  // --timestamp-filename, which --switch-output includes
  bool packs = true;              // packs symbols at the end
  std::chrono::seconds longest_packing{300};
  bool redacts = false;          // --redact
  std::string redacted_classes;  // empty: all
  // --max-size and --min-free; 0: no limit.
  std::uint64_t most_bytes = 0, least_free = 0;

  // Whether symbols are packed into finished files (record/session/packing.h): not with a size limit.
  bool packs_files() const { return packs && !to_pipe && most_bytes == 0; }
};

// Appends the options about the output; they set `path` and `files`, which must outlive the parsing.
void add_output_options(std::string& path, OutputOptions& files, std::vector<cli::Option>& rows);

// "512K", "10M", "1.5G", "4096B" or "4096": bytes, one at least.
Result<std::uint64_t> parse_size(std::string_view option, std::string_view text);

// Standard output when the program starts. A pipe that also gets the messages (2>&1 | tee log) is Other: a
// capture must not go there.
enum class StandardOutput { Pipe, Terminal, Other };
StandardOutput look_at_standard_output();

// Decides whether the capture goes to standard output: with -o -, or as in perf if that is a pipe and no file
// was named. An error if standard output is a terminal, or if options exclude each other.
Result<> choose_output(std::string& path, OutputOptions& files, StandardOutput standard_output);

}  // namespace tacho::record
