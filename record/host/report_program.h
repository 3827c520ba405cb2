// tacho-report, where it is installed beside this program: what takes symbols and debugging information is
// its work.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/result.h"

namespace tacho::record {

// Its path; nothing where there is none, or where others than root could have put it there.
std::optional<std::string> report_program();

// Starts it with `words`, its path first, without input, in a process group of its own: a signal comes to us,
// and we end it. No signal is blocked or ignored there. `output` and `errors` become its standard output and
// error.
// It has the descriptors `inherited` under their numbers, and no others.
constexpr int kNowhere = -1;  // for `errors`
Result<pid_t> start_report_program(std::vector<std::string> words, int output, int errors,
                                   std::span<const int> inherited = {});

// What it prints on standard output, 1 MB at most; standard error is dropped. Asked several times a second,
// `stop` ends it. An error when it says more (EFBIG), takes longer, dies, or its exit status is not 0.
struct ReportRun {
  std::vector<std::string> arguments;
  std::chrono::seconds longest{60};
  std::function<bool()> stop = {};
};
Result<std::string> ask_report_program(const std::string& program, const ReportRun& run);

}  // namespace tacho::record
