#include "report/profile/name_pattern.h"

#include <memory>
#include <unordered_map>

namespace tacho::report {

NamePattern::NamePattern(const std::string& text)
    : status_(regcomp(&compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB)) {}

NamePattern::~NamePattern() {
  if (status_ == 0) regfree(&compiled_);
}

std::string NamePattern::fault() const {
  char text[256] = "";
  regerror(status_, &compiled_, text, sizeof text);
  return text;
}

// Of a name only the first 4 KiB are looked at: the time grows with the square of its length.
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
