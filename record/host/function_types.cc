#include "record/host/function_types.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <utility>

#include "record/host/report_program.h"

namespace tacho::record {
namespace {

// Functions, of which 2000 of a C program stay within the 1 MB of an answer. Each answer reads the debugging
// information anew.
constexpr std::size_t kMostAtOnce = 2000;
constexpr std::size_t kGrowsAfter = 4;   // answers that were not too long
constexpr std::size_t kMostInVain = 64;  // answers that were

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

FunctionTypes gather_types(std::span<const std::uint64_t> offsets, const AskTypes& ask) {
  FunctionTypes types;
  std::vector<std::string> answers;
  std::size_t at_once = kMostAtOnce, too_long = 0, in_vain = 0, fitting = 0;
  while (!offsets.empty()) {
    if (in_vain > kMostInVain) {
      types.lack = "they are too long";
      break;
    }
    const auto batch = offsets.first(std::min(at_once, offsets.size()));
    auto answer = ask(batch);
    const bool is_too_long = !answer && answer.error().code == EFBIG;
    in_vain += is_too_long ? 1 : 0;
    fitting = is_too_long ? 0 : fitting + 1;
    if (is_too_long && batch.size() > 1) {
      at_once = batch.size() / 2;
      continue;
    }
    offsets = offsets.subspan(batch.size());
    if (is_too_long) {  // the one that is was found
      ++too_long;
      at_once = kMostAtOnce;
      continue;
    }
    if (fitting % kGrowsAfter == 0) at_once = std::min(kMostAtOnce, 2 * at_once);
    if (!answer) {
      types.lack = answer.error().what;
      break;
    }
    for (const auto& [function, texts] : texts_of_functions(*answer)) types.texts[function] |= texts;
    // Enumerations are numbered within an answer.
    if (!answer->empty()) answers.push_back(std::move(*answer));
  }
  if (types.lack.empty() && too_long != 0)
    types.lack = "of " + std::to_string(too_long) + " functions they are too long";
  for (const std::string& answer : answers) types.text += (types.text.empty() ? "" : "begin\n") + answer;
  return types;
}

FunctionTypes function_types(const std::string& path, const std::vector<std::uint64_t>& offsets,
                             const std::function<bool()>& stop) {
  const auto program = report_program();
  if (!program)
    return {.text = {},
            .texts = {},
            .lack = "types are read by tacho-report, which is not installed beside tacho-record"};
  return gather_types(offsets, [&](std::span<const std::uint64_t> some) -> Result<std::string> {
    ReportRun run{.arguments = {"prototypes", path}, .stop = stop};
    for (const std::uint64_t offset : some) run.arguments.push_back(std::to_string(offset));
    auto answer = ask_report_program(*program, run);
    if (!answer) return answer;
    constexpr std::string_view kError = "error\t", kTooLong = "too-long\n";
    if (answer->starts_with(kTooLong)) return Error{"the answer would be too long", EFBIG};
    if (answer->starts_with(kError))
      return Error{answer->substr(kError.size(), answer->find('\n') - kError.size())};
    return answer;
  });
}

}  // namespace tacho::record
