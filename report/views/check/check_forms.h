// Results of tacho check as text, JSON, Markdown, and in the forms of CI systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/views/check/checks.h"

namespace tacho::report {

// All checks of a rule file.
struct CheckReport {
  std::string rules;                  // the path of the rule file
  std::vector<std::string> captures;  // their names
  std::vector<std::string> base;      // of --base
  std::vector<Check> checks;
  bool is_strict = false;  // what is inconclusive fails

  std::size_t count_of(CheckVerdict verdict) const;
  bool fails(const Check& check) const {
    return check.verdict == CheckVerdict::Failed ||
           (is_strict && check.verdict == CheckVerdict::Inconclusive);
  }
  bool has_failed() const;
};

// A form, by its name in --format and in the options that write files.
struct CheckForm {
  std::string_view name, help;
  void (*write)(TextBuffer& out, const CheckReport& report);
};
// text, json (docs/ci.md), markdown (a step summary of GitHub), junit, github (workflow commands), gitlab
// (code quality), sarif (2.1.0).
std::span<const CheckForm> check_forms();

// For a value of a workflow command of GitHub; in a property, `:` and `,` are escaped, too.
enum class GithubPlace : std::uint8_t { Message, Property };
std::string github_text(std::string_view text, GithubPlace place);

}  // namespace tacho::report
