// What functions of a program are called with and what they return, as its debugging information says. It is
// read by tacho-report (user_arguments.h tells why), and goes into the capture as text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/result.h"

namespace tacho::record {

// Of a function: bit n says that the nth register for arguments points to text, and this one that what it
// returns does.
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

// The same from whoever answers with lines of text. Its error with the code EFBIG says that the text would be
// too long: so many functions are not asked for at once again. After any other error what is known stays.
using AskTypes = std::function<Result<std::string>(std::span<const std::uint64_t> offsets)>;
FunctionTypes gather_types(std::span<const std::uint64_t> offsets, const AskTypes& ask);

// Which registers point to text, by what tacho-report says (report/decode/prototype_text.h).
std::unordered_map<std::uint64_t, std::uint64_t> texts_of_functions(std::string_view lines);

}  // namespace tacho::record
