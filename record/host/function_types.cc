#include "record/host/function_types.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "record/host/report_program.h"

namespace tacho::record {
namespace {

// The answer has 1 MB at most.
constexpr std::size_t kMostAtOnce = 2000;  // functions

std::string_view take_field(std::string_view& line) {
  const std::string_view field = line.substr(0, line.find('\t'));
  line.remove_prefix(std::min(field.size() + 1, line.size()));
  return field;
}

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::unordered_map<std::uint64_t, std::uint64_t> texts_of_functions(std::string_view lines) {
  constexpr unsigned kRegisters = 6;
  std::unordered_map<std::uint64_t, std::uint64_t> all;
  std::uint64_t function = 0;
  bool is_known = false;
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::string_view what = take_field(line), number = take_field(line);
    const bool is_text = take_field(line).starts_with('t');
    if (what == "function") {
      is_known = read_number(number, function);
      if (is_known && is_text) all[function] |= kReturnsText;
    } else if (what == "argument") {
      unsigned word = 0;
      if (is_known && is_text && read_number(number, word) && word < kRegisters)
        all[function] |= std::uint64_t{1} << word;
    }
  }
  return all;
}

FunctionTypes function_types(const std::string& path, const std::vector<std::uint64_t>& offsets,
                             const std::function<bool()>& stop) {
  FunctionTypes types;
  const auto program = report_program();
  if (!program) {
    types.lack = "types are read by tacho-report, which is not installed beside tacho-record";
    return types;
  }
  std::vector<std::string> answers;
  for (std::size_t begin = 0; begin < offsets.size(); begin += kMostAtOnce) {
    ReportRun run{.arguments = {"prototypes", path}, .stop = stop};
    const std::size_t end = std::min(offsets.size(), begin + kMostAtOnce);
    for (std::size_t i = begin; i < end; ++i) run.arguments.push_back(std::to_string(offsets[i]));
    auto answer = ask_report_program(*program, run);
    constexpr std::string_view kError = "error\t";
    if (!answer) types.lack = answer.error().what;
    if (answer && answer->starts_with(kError))
      types.lack = answer->substr(kError.size(), answer->find('\n') - kError.size());
    if (!types.lack.empty()) return types;
    for (const auto& [function, texts] : texts_of_functions(*answer)) types.texts[function] |= texts;
    // Enumerations are numbered within an answer.
    if (!answer->empty()) answers.push_back(std::move(*answer));
  }
  for (const std::string& answer : answers) types.text += (types.text.empty() ? "" : "begin\n") + answer;
  return types;
}

}  // namespace tacho::record
