// Patterns for names of functions.
#pragma once

#include <regex.h>

#include <functional>
#include <string>
#include <string_view>

#include "report/profile/function.h"

namespace tacho::report {

using FunctionTest = std::function<bool(const Function&)>;

// A POSIX extended regular expression for names of functions. std::regex recurses for each character of a
// name, and names are untrusted.
class NamePattern {
 public:
  explicit NamePattern(const std::string& text);
  ~NamePattern();
  NamePattern(const NamePattern&) = delete;
  NamePattern& operator=(const NamePattern&) = delete;

  bool is_sound() const { return status_ == 0; }
  // The text of regerror().
  std::string fault() const;
  // False for every name if the pattern is not valid.
  bool is_in(std::string_view name) const;

 private:
  regex_t compiled_{};
  int status_;
};

// Whether a function's name matches the pattern. Each function is matched once for all of its call chains.
FunctionTest test_of_name(const std::string& pattern);

}  // namespace tacho::report
