#include "report/views/check/rules.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace tacho::report {
namespace {

constexpr std::string_view kRules = R"(# Each kind of rule, and each key.
tacho_check = 1

[capture]
expect = ["lost < 0.1 %", "symbolized > 95 %", "truncated <= 5 %", "samples >= 100"]

[[rule]]
name = "parsing"
function = "json::parse*"
below = "main"
event = "cycles"
expect = "share < 12 %"
optional = true

[[rule]]
module = "/libc[.]so/"
expect = ["self < 3 %", "cost < 2 ms"]
per = "app:request"

[[rule]]
stack = ["main", "render", "*alloc"]
expect = "samples < 10"

[[rule]]
forbidden = "malloc"
below = "render"

[[rule]]
field = "open.lat_ns"
expect = ["p99 < 2 ms", "count > 1", "mean < 1e3", "max < 64 KiB"]

[[regression]]
function = "json*"
min_effect = "3 %"
alpha = "5 %"
work = 12

[[regression]]
field = "open.lat_ns"
)";

void expect_rules_or_one_line(const std::string& text) {
  const auto rules = parse_rules(text, "rules.toml");
  if (rules) {
    EXPECT_FALSE(rules->rules.empty() && rules->regressions.empty()) << text;
    return;
  }
  EXPECT_FALSE(rules.error().what.empty()) << text;
  EXPECT_EQ(rules.error().what.find('\n'), std::string::npos) << rules.error().what;
}

TEST(CheckRules, EveryKeyIsRead) {
  const auto rules = parse_rules(kRules, "rules.toml");
  ASSERT_TRUE(rules) << rules.error().what;
  ASSERT_EQ(rules->rules.size(), 6U);
  ASSERT_EQ(rules->regressions.size(), 2U);
  EXPECT_EQ(rules->regressions[0].alpha, 5);
  EXPECT_EQ(rules->regressions[0].work, 12);
  EXPECT_EQ(rules->regressions[1].field, "open.lat_ns");
  EXPECT_EQ(rules->regressions[1].name, "no regression of open.lat_ns");
}

TEST(CheckRules, MutantsGiveRulesOrOneLine) {
  constexpr std::string_view kLetters = "[]{}=\"'#\\.,\n\x80\xff\0 019%<>*";
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same mutants each time
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random()) % end; };
  std::size_t refused = 0;
  for (int mutant = 0; mutant < 1000; ++mutant) {
    std::string text(kRules);
    for (std::size_t change = 0; change <= below(4); ++change) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = kLetters[below(kLetters.size())];
          break;
        case 1:
          text.insert(at, 1, kLetters[below(kLetters.size())]);
          break;
        case 2:
          text.erase(at, below(40));
          break;
        default:  // a piece from elsewhere
          text.insert(at, text.substr(below(text.size()), below(60)));
      }
    }
    expect_rules_or_one_line(text);
    refused += parse_rules(text, "rules.toml") ? 0 : 1;
  }
  EXPECT_GT(refused, 300U);
  EXPECT_LT(refused, 990U);
}

}  // namespace
}  // namespace tacho::report
