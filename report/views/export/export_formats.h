// The formats of other tools that tacho export writes: their table. To add one: a file that defines its
// export_NAME(), a row in export_formats.cc, and a row in docs/export.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/command.h"

namespace tacho::report {

struct ExportFormat {
  std::string_view name;
  std::string_view help;  // one line: what it is, and who reads it
  // `arguments`: the words after "export", without --to and its value.
  Result<cli::ExitStatus> (*run)(const std::vector<std::string>& arguments);
};
std::span<const ExportFormat> export_formats();

Result<cli::ExitStatus> export_pprof(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_speedscope(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_callgrind(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_folded(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_json(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_csv(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_firefox(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_chrome(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_perfetto(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_otlp(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_bolt(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_autofdo(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> export_tables(const std::vector<std::string>& arguments);

}  // namespace tacho::report
