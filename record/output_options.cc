#include "record/output_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "cli/option_rows.h"

namespace tacho::record {

void add_output_options(std::string& path, OutputOptions& files, std::vector<cli::Option>& rows) {
  using cli::Takes;
  std::vector<cli::Option> own{
      {"-o,--output", Takes::Value, "FILE",
       "Where the capture goes; an existing one is kept as FILE.old. -: perf's pipe form to standard output, "
       "which is also chosen when that is a pipe and no FILE is named. Default: perf.data",
       [&path, &files](std::string_view text) -> Result<> {
         if (text.empty()) return use_error("-o: the name of the file is empty");
         path = text;
         files.is_named = true;
         return Done{};
       }},
  };
  std::ranges::move(own, std::back_inserter(rows));
}

StandardOutput look_at_standard_output() {
  struct stat info {};
  if (fstat(STDOUT_FILENO, &info) == 0 && S_ISFIFO(info.st_mode)) return StandardOutput::Pipe;
  return isatty(STDOUT_FILENO) != 0 ? StandardOutput::Terminal : StandardOutput::Other;
}

Result<> choose_output(std::string& path, OutputOptions& files, StandardOutput standard_output) {
  files.to_pipe = files.is_named ? path == "-" : standard_output == StandardOutput::Pipe;
  if (!files.to_pipe) return Done{};
  if (standard_output == StandardOutput::Terminal) {
    return use_error(
        "-o -: standard output is a terminal; pipe it into a reader, as in tacho record -o - | tacho script "
        "-i -");
  }
  path = "-";
  return Done{};
}

}  // namespace tacho::record
