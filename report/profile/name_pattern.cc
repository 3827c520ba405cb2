#include "report/profile/name_pattern.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

namespace tacho::report {

namespace {

// Statuses besides those of regcomp().
constexpr int kTooLarge = -1000, kRefersBack = -1001;

constexpr std::uint64_t kLargestPattern = std::uint64_t{1} << 32;  // the limit of sizes in expanded_size()

// The size of an extended regular expression in characters after regcomp() has repeated what braces repeat:
// "(ab{3}){2}" has 8. Nothing: it refers back (\1), for which matching may take exponential time.
std::optional<std::uint64_t> expanded_size(std::string_view text) {
  struct Group {
    std::uint64_t before = 0, last = 0;  // sizes: of its parts without the last one, and of that
    void add(std::uint64_t size) {
      before = std::min(kLargestPattern, before + last);
      last = size;
    }
  };
  std::vector<Group> groups(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    Group& group = groups.back();
    const auto after = text.substr(i + 1);
    if (text[i] == '\\') {
      if (!after.empty() && after[0] >= '1' && after[0] <= '9') return std::nullopt;
      group.add(1);
      ++i;
    } else if (text[i] == '[') {  // up to the first ] that is not the first member
      const std::size_t first = i + 1 + (after.starts_with('^') ? 1 : 0) + 1;
      i = std::min(text.find(']', first), text.size());
      group.add(1);
    } else if (text[i] == '(') {
      groups.emplace_back();
    } else if (text[i] == ')' && groups.size() > 1) {
      const std::uint64_t size = group.before + group.last;
      groups.pop_back();
      groups.back().add(size);
    } else if (text[i] == '{') {
      std::uint64_t most = 1, number = 0;
      for (++i; i < text.size() && text[i] != '}'; ++i) {
        const bool is_digit = text[i] >= '0' && text[i] <= '9';
        number = is_digit ? std::min<std::uint64_t>(10 * number + (text[i] - '0'), 1U << 16) : 0;
        most = std::max(most, number);
      }
      group.last = std::min(kLargestPattern, group.last * most);
    } else {
      group.add(1);
    }
  }
  std::uint64_t size = 0;
  for (const Group& group : groups) size += group.before + group.last;
  return size;
}

int compile(const std::string& text, regex_t& compiled) {
  constexpr std::uint64_t kMost = 4000;
  const auto size = expanded_size(text);
  if (!size) return kRefersBack;
  return *size > kMost ? kTooLarge : regcomp(&compiled, text.c_str(), REG_EXTENDED | REG_NOSUB);
}

}  // namespace

NamePattern::NamePattern(const std::string& text) : status_(compile(text, compiled_)) {}

NamePattern::~NamePattern() {
  if (status_ == 0) regfree(&compiled_);
}

std::string NamePattern::fault() const {
  if (status_ == kTooLarge)
    return "the pattern repeats too much: it has more than 4000 characters with its repetitions written out";
  if (status_ == kRefersBack) return "the pattern refers back (\\1), which is not supported";
  char text[256] = "";
  regerror(status_, &compiled_, text, sizeof text);
  return text;
}

// Only the first 4 KiB of a name are matched: the time grows with the square of the length.
bool NamePattern::is_in(std::string_view name) const {
  constexpr std::size_t kMost = 4096;
  const std::string text(name.substr(0, kMost));
  return is_sound() && regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
}

FunctionTest test_of_name(const std::string& pattern) {
  struct Known {
    explicit Known(const std::string& given) : pattern(given) {}
    NamePattern pattern;
    std::unordered_map<std::string_view, bool> answers;  // by name; names live as long as the session
  };
  return [known = std::make_shared<Known>(pattern)](const Function& function) {
    if (function.name().empty()) return false;
    const auto [answer, is_new] = known->answers.try_emplace(function.name(), false);
    if (is_new) answer->second = known->pattern.is_in(function.name());
    return answer->second;
  };
}

}  // namespace tacho::report
