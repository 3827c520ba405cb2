// The rule file of tacho check: any text gives rules, or a message of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "report/views/check/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rules = tacho::report::parse_rules(text, "rules.toml");
  if (!rules) {
    const std::string_view what = rules.error().what;
    if (what.empty() || what.find('\n') != std::string_view::npos) std::abort();
    return 0;
  }
  if (rules->rules.empty() && rules->regressions.empty()) std::abort();
  for (const tacho::report::Rule& rule : rules->rules) {
    const bool is_forbidden = rule.subject == tacho::report::Subject::Forbidden;
    if (rule.line == 0 || rule.expectations.empty() != is_forbidden) std::abort();
    for (const tacho::report::Expectation& one : rule.expectations) (void)one.holds(one.limit);
  }
  return 0;
}
