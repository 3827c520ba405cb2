// Regular expressions that choose functions by name.
#pragma once

#include <regex.h>

#include <string>
#include <string_view>

#include "report/profile/entries.h"

namespace tacho::report {

// An extended regular expression of POSIX. std::regex would go down a level of the stack for each character
// of a name, and names come from outside.
class NamePattern {
 public:
  explicit NamePattern(const std::string& text);
  ~NamePattern();
  NamePattern(const NamePattern&) = delete;
  NamePattern& operator=(const NamePattern&) = delete;

  bool is_sound() const { return status_ == 0; }
  // What is wrong with it, in the words of the system.
  std::string fault() const;
  // False for every name when it is not sound.
  bool is_in(std::string_view name) const;

 private:
  regex_t compiled_{};
  int status_;
};

// Whether a function's name has the pattern in it. Each function is looked at once, however many call chains
// it stands in.
FunctionTest test_of_name(const std::string& pattern);

}  // namespace tacho::report
