// Runs tacho-report as a child for what needs DWARF: locations of a function's arguments, and its types.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bpf/object/probe_program.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/events/probe_arguments.h"

namespace tacho::record {

// The path of tacho-report; nullopt if it does not exist, or if another user than root could have put it
// there.
std::optional<std::string> report_program();

constexpr int kNowhere = -1;
// Starts tacho-report with `words`, its path first, without input, in its own process group: signals reach
// this process, which ends the child. No signal is blocked or ignored in the child. `output` and `errors`
// become its standard output and error (errors kNowhere: /dev/null). It inherits only the descriptors
// `inherited`, with their numbers.
Result<pid_t> start_report_program(std::vector<std::string> words, int output, int errors,
                                   std::span<const int> inherited = {});

// Runs tacho-report and returns its standard output, at most 1 MB; standard error is dropped. `stop` is
// polled several times a second and ends it. An error if it prints more (EFBIG), takes too long, dies, or has
// an exit status other than 0.
struct ReportRun {
  std::vector<std::string> arguments;
  std::chrono::seconds longest{60};
  std::function<bool()> stop = {};
};
Result<std::string> ask_report_program(const std::string& program, const ReportRun& run);

// A function whose arguments are looked up by their names in debug information. tacho-report reads that in a
// sandbox: libdw is too large a parser for a recorder with root's rights.
struct UserFunction {
  std::string path;          // of the file
  std::uint64_t offset = 0;  // file offset of its first instruction
  std::string symbol;        // the ELF symbol
};

// The named arguments among `requests`, in order. The error code is ENOENT if tacho-report is not installed.
Result<std::vector<NamedArgument>> user_arguments(const UserFunction& function,
                                                  std::span<const ArgumentRequest> requests,
                                                  const std::function<bool()>& stop);

// Parses the output of tacho-report (report/views/parameters), one line for each of `names`.
Result<std::vector<NamedArgument>> parse_user_arguments(std::string_view lines,
                                                        std::span<const std::string> names);

// Bit of the return value in a function's mask of strings; bit n is register argument n.
constexpr std::uint64_t kReturnsText = 1U << 6;

// Parameter and return types of a program's functions, which tacho-report reads from debug information. The
// capture gets its output as text.
struct FunctionTypes {
  std::string text;                                        // empty: nothing is known
  std::unordered_map<std::uint64_t, std::uint64_t> texts;  // by file offset
  // Why types are missing, in all or in part; empty: none is, or there is no debug information.
  std::string missing_reason;
};

// The types of the functions at file offsets `offsets`. It takes several seconds for very large programs;
// `stop` is polled meanwhile and ends it.
FunctionTypes function_types(const std::string& path, const std::vector<std::uint64_t>& offsets,
                             const std::function<bool()>& stop);

// The same with a function that returns the text of some functions, for tests. After its error EFBIG (the
// text is too long) fewer functions are requested; after any other error the types found so far are kept.
using AskTypes = std::function<Result<std::string>(std::span<const std::uint64_t> offsets)>;
FunctionTypes gather_types(std::span<const std::uint64_t> offsets, const AskTypes& ask);

// Which registers point to text, parsed from the output of tacho-report (report/decode/prototype_text.h).
std::unordered_map<std::uint64_t, std::uint64_t> texts_of_functions(std::string_view lines);

}  // namespace tacho::record
