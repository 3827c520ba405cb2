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
  bool is_on = false;                   // else never, except on SIGUSR2 and --control
  std::uint64_t bytes = 0;              // of a file; 0: however large
  std::chrono::milliseconds period{0};  // of a file; 0: however long
};

struct OutputOptions {
  bool is_named = false;               // -o was given
  bool is_compression_chosen = false;  // -z was given
  bool to_pipe = false;                // perf's pipe form to standard output
  bool to_screen =
      false;  // whose reader has the terminal: the command gets none, and ends when that reader does
  SwitchRule switch_rule;
  bool overwrite = false;         // the last samples are kept in memory, a capture is made on demand
  std::size_t most_files = 0;     // 0: all are kept
  bool is_named_by_time = false;  // --timestamp-filename, which --switch-output includes
  bool packs = true;              // names, at the end
  std::chrono::seconds longest_packing{300};
  bool redacts = false;  // and takes out, of the classes below (empty: all), what others should not see
  std::string redacted_classes;
  std::uint64_t most_bytes = 0, least_free = 0;  // end the recording; 0: do not

  // One file, and names are wanted (record/session/packing.h). Their size is not known before.
  bool is_packed_at_end() const { return packs && !to_pipe && !is_named_by_time && most_bytes == 0; }
};

// Their rows; they set `path` and `files`, which must outlive the parsing.
void add_output_options(std::string& path, OutputOptions& files, std::vector<cli::Option>& rows);

// "512K", "10M", "1.5G", "4096B" or "4096": bytes, one at least.
Result<std::uint64_t> parse_size(std::string_view option, std::string_view text);

// Standard output as it is when the program starts. A pipe that gets the messages as well (2>&1 | tee log) is
// no place for a capture.
enum class StandardOutput { Pipe, Terminal, Other };
StandardOutput look_at_standard_output();

// Decides whether the capture goes to standard output: with -o -, or if that is a pipe and no file
// was named, as with perf. An error when it could not be used there, or other options make no sense with
// it.
Result<> choose_output(std::string& path, OutputOptions& files, StandardOutput standard_output);

}  // namespace tacho::record
