#include "record/now/thread_stack.h"

#include <algorithm>
#include <iterator>

#include "record/parse_text.h"

namespace tacho::record {

std::optional<CallLine> parse_call_line(std::string_view line) {
  CallLine out;
  constexpr std::size_t kMostWords = 9;
  std::vector<std::uint64_t> words;
  const bool is_in_none = take_prefix(line, "-1");
  while (words.size() < kMostWords) {
    line.remove_prefix(std::min(line.find_first_not_of(" \n"), line.size()));
    if (line.empty()) break;
    const int base = take_prefix(line, "0x") ? 16 : 10;
    const auto word = take_number<std::uint64_t>(line, base);
    if (!word) return std::nullopt;
    words.push_back(*word);
  }
  if (words.size() != (is_in_none ? 2 : kMostWords)) return std::nullopt;
  out.sp = words[words.size() - 2];
  out.pc = words.back();
  if (is_in_none) return out;
  out.call.number = static_cast<std::int32_t>(words.front());
  std::copy_n(words.begin() + 1, std::size(out.call.arguments), out.call.arguments);
  return out;
}

}  // namespace tacho::record
