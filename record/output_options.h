// The options that say where the capture goes.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "format/result.h"

namespace tacho::record {

struct OutputOptions {
  bool is_named = false;               // -o was given
  bool is_compression_chosen = false;  // -z was given
  bool to_pipe = false;                // perf's pipe form to standard output
};

// Their rows; what they say goes into `path` and `files`, which must outlive the parsing.
void add_output_options(std::string& path, OutputOptions& files, std::vector<cli::Option>& rows);

// Standard output as it is when the program starts.
enum class StandardOutput { Pipe, Terminal, Other };
StandardOutput look_at_standard_output();

// Settles whether the capture goes to standard output: -o - says so, and so does a pipe there when no file
// was named, as with perf. An error when nobody could use it there.
Result<> choose_output(std::string& path, OutputOptions& files, StandardOutput standard_output);

}  // namespace tacho::record
