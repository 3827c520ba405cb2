// Formats that other commands print: their options are those of the commands.
#include <string>
#include <vector>

#include "report/commands.h"
#include "report/views/export/export_formats.h"

namespace tacho::report {

Result<cli::ExitStatus> export_folded(const std::vector<std::string>& arguments) {
  return run_folded(arguments);
}

Result<cli::ExitStatus> export_json(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), "--json");
  return run_script(words);
}

Result<cli::ExitStatus> export_csv(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), "--csv");
  return run_table(words);
}

}  // namespace tacho::report
