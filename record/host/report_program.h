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

// Its path; nothing where there is none, or where others than root could have put it there.
std::optional<std::string> report_program();

// Starts it with `words`, its path first, without input, in a process group of its own: a signal comes to us,
// and we end it. No signal is blocked or ignored there. `output` and `errors` become its standard output and
// error.
// It has the descriptors `inherited` under their numbers, and no others.
constexpr int kNowhere = -1;  // for `errors`
Result<pid_t> start_report_program(std::vector<std::string> words, int output, int errors,
                                   std::span<const int> inherited = {});

// Its standard output, 1 MB at most; standard error is dropped. Polled several times a second, `stop` ends
// it. An error when it prints more (EFBIG), takes longer, dies, or its exit status is not 0.
struct ReportRun {
  std::vector<std::string> arguments;
  std::chrono::seconds longest{60};
  std::function<bool()> stop = {};
};
Result<std::string> ask_report_program(const std::string& program, const ReportRun& run);

// The arguments of a program's functions, as its debugging information names them. It is read by tacho-report
// in a process that may do nothing else: libdw is too large a reader for a recorder that runs as root.

struct UserFunction {
  std::string path;          // of the file
  std::uint64_t offset = 0;  // of its first instruction, in the file
  std::string symbol;        // the linker's name
};

// The named ones among `requests`, in their order. The error's code is ENOENT where tacho-report is not
// installed.
Result<std::vector<NamedArgument>> user_arguments(const UserFunction& function,
                                                  std::span<const ArgumentRequest> requests,
                                                  const std::function<bool()>& stop);

// What tacho-report says of them (report/views/parameters), one line for each of `names`.
Result<std::vector<NamedArgument>> parse_user_arguments(std::string_view lines,
                                                        std::span<const std::string> names);

// Parameter and return types of a program's functions, from its debugging information. tacho-report reads
// it in a sandbox (user_arguments() above), and it goes into the capture as text.

// Of a function: bit n means that the nth register argument points to text, and this bit that the return
// value does.
constexpr std::uint64_t kReturnsText = 1U << 6;

struct FunctionTypes {
  std::string text;                                        // empty: nothing is known
  std::unordered_map<std::uint64_t, std::uint64_t> texts;  // by place in the file
  // Why nothing is known, or not of all; empty: there is no debugging information, or no lack.
  std::string lack;
};

// Of the functions that begin at `offsets` of the file. Several seconds for very large programs; asked
// meanwhile, `stop` ends it.
FunctionTypes function_types(const std::string& path, const std::vector<std::uint64_t>& offsets,
                             const std::function<bool()>& stop);

// The same from a caller that answers with lines of text. Its error with the code EFBIG means that the text
// would be too long: so many functions are not requested at once again. After any other error the known
// ones stay.
using AskTypes = std::function<Result<std::string>(std::span<const std::uint64_t> offsets)>;
FunctionTypes gather_types(std::span<const std::uint64_t> offsets, const AskTypes& ask);

// Which registers point to text, by what tacho-report says (report/decode/prototype_text.h).
std::unordered_map<std::uint64_t, std::uint64_t> texts_of_functions(std::string_view lines);

}  // namespace tacho::record
