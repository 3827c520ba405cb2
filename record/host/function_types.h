// What functions of a program are called with and what they return, as its debugging information says. It is
// read by tacho-report (user_arguments.h tells why), and goes into the capture as text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tacho::record {

// Of a function: bit n says that the nth register for arguments points to text, and this one that what it
// returns does.
constexpr std::uint64_t kReturnsText = 1U << 6;

struct FunctionTypes {
  std::string text;                                        // empty: nothing is known
  std::unordered_map<std::uint64_t, std::uint64_t> texts;  // by place in the file
  std::string lack;  // why nothing is known; empty: there is no debugging information, or no lack
};

// Of the functions that begin at `offsets` of the file. Several seconds for very large programs; asked
// meanwhile, `stop` ends it.
FunctionTypes function_types(const std::string& path, const std::vector<std::uint64_t>& offsets,
                             const std::function<bool()>& stop);

// Which registers point to text, by what tacho-report says (report/decode/prototype_text.h).
std::unordered_map<std::uint64_t, std::uint64_t> texts_of_functions(std::string_view lines);

}  // namespace tacho::record
