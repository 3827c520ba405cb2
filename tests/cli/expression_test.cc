#include "cli/expression.h"

#include <gtest/gtest.h>

#include <string>

namespace tacho::cli {
namespace {

// The tree with every operation in parentheses.
std::string shape(const Expression& expression, const ExpressionNode& node) {
  static constexpr std::string_view kSpellings[] = {
      "",  "",   "",  "",   "!", "-", "||", "&&", "==", "!=", "~", "!~",
      "<", "<=", ">", ">=", "|", "&", "+",  "-",  "*",  "/",  "%"};
  const auto unit = [&] {
    return node.unit == NumberUnit::Time ? "ns" : node.unit == NumberUnit::Size ? "B" : "";
  };
  switch (node.operation) {
    case Operation::Whole:
      return std::to_string(node.whole) + unit();
    case Operation::Real:
      return std::to_string(node.real) + unit();
    case Operation::Text:
      return '"' + node.text + '"';
    case Operation::Name:
      return node.text + (node.index != 0 ? "#" + std::to_string(node.index) : "");
    default:
      break;
  }
  const std::string spelling(kSpellings[static_cast<std::size_t>(node.operation)]);
  const std::string left = shape(expression, expression.nodes[node.left]);
  if (node.operation == Operation::Not || node.operation == Operation::Minus) return spelling + left;
  return "(" + left + " " + spelling + " " + shape(expression, expression.nodes[node.right]) + ")";
}

std::string parsed(std::string_view text) {
  const auto expression = parse_expression("--where", text);
  return expression ? shape(*expression, expression->root()) : expression.error().what;
}

TEST(Expression, BindsAsDocumented) {
  EXPECT_EQ(parsed("a || b && c == d"), "(a || (b && (c == d)))");
  EXPECT_EQ(parsed("flags & 4 == 4 | 1"), "((flags & 4) == (4 | 1))");
  EXPECT_EQ(parsed("a - b - c * 2 % 3"), "((a - b) - ((c * 2) % 3))");
  EXPECT_EQ(parsed("!(a > -1) && b !~ 'x*'"), "(!(a > -1) && (b !~ \"x*\"))");
  EXPECT_EQ(parsed("a&&b&c"), "(a && (b & c))");
  EXPECT_EQ(parsed("a||b|c"), "(a || (b | c))");
  EXPECT_EQ(parsed("(((a)))"), "a");
}

TEST(Expression, ReadsNumbersWithUnits) {
  EXPECT_EQ(parsed("0x1F"), "31");
  EXPECT_EQ(parsed("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(parsed("1.5ms"), "1500000ns");
  EXPECT_EQ(parsed("10us"), "10000ns");
  EXPECT_EQ(parsed("2s"), "2000000000ns");
  EXPECT_EQ(parsed("4k"), "4096B");
  EXPECT_EQ(parsed("1.5MiB"), "1572864B");
  EXPECT_EQ(parsed("1e6"), "1000000");
  EXPECT_EQ(parsed("0.25"), "0.250000");
  EXPECT_EQ(parsed("18446744073709551616"), "18446744073709551616.000000");
}

TEST(Expression, ReadsNamesAndTexts) {
  EXPECT_EQ(parsed("sample.comm == \"a\\\"b\\\\\""), "(sample.comm == \"a\"b\\\")");
  EXPECT_EQ(parsed("args[2] < 3"), "(args#2 < 3)");
  EXPECT_EQ(parsed("_x9.y"), "_x9.y");
}

// The message about one column of --where, with a caret below it.
std::string refusal(const std::string& text, std::size_t column, const std::string& what,
                    const std::string& event = "") {
  return event + "--where: column " + std::to_string(column) + ": " + what + "\n    " + text + "\n    " +
         std::string(column - 1, ' ') + "^";
}

TEST(Expression, ErrorsShowThePlace) {
  EXPECT_EQ(parsed(""), refusal("", 1, "a value is missing at the end"));
  EXPECT_EQ(parsed("a >"), refusal("a >", 4, "a value is missing at the end"));
  EXPECT_EQ(parsed("a > 5x"), refusal("a > 5x", 6, "a unit is ns, us, ms or s, or k, M or G (of 1024)"));
  EXPECT_EQ(parsed("a b"), refusal("a b", 3, "an operator is missing here, or what follows has no meaning"));
  EXPECT_EQ(parsed("a = 1"), refusal("a = 1", 3, "equal is written =="));
  EXPECT_EQ(parsed("(a = 1)"), refusal("(a = 1)", 4, "equal is written =="));
  EXPECT_EQ(parsed("a =~ 'x'"),
            refusal("a =~ 'x'", 3, "a text is compared with a pattern by ~, as in comm ~ \"cc*\""));
  EXPECT_EQ(parsed("a and b"), refusal("a and b", 3, "and is written &&"));
  EXPECT_EQ(parsed("a or b"), refusal("a or b", 3, "or is written ||"));
  EXPECT_EQ(parsed("(a"), refusal("(a", 1, "this parenthesis is not closed"));
  EXPECT_EQ(parsed("a == 'x"), refusal("a == 'x", 6, "this text is not closed"));
  EXPECT_EQ(parsed("1 < a < 3"), refusal("1 < a < 3", 7, "comparisons do not chain; join two of them by &&"));
  EXPECT_EQ(parsed("a[x]"), refusal("a[x]", 3, "the number of an element is expected"));
  EXPECT_EQ(parsed("1e999"), refusal("1e999", 1, "this is not a number, or it is too large"));
}

TEST(Expression, DepthIsBounded) {
  EXPECT_NE(parsed(std::string(100'000, '(') + "1").find("too"), std::string::npos);
  EXPECT_NE(parsed(std::string(60'000, '!') + "1").find("too many"), std::string::npos);
  EXPECT_NE(parsed(std::string(60'000, '(')).find("too many"), std::string::npos);
  std::string long_sum = "1";
  for (int i = 0; i < 10'000; ++i) long_sum += "+1";
  EXPECT_NE(parsed(long_sum).find("too long"), std::string::npos);
  EXPECT_EQ(parsed(std::string(100, '!') + "1"), std::string(100, '!') + "1");
}

TEST(Expression, PatternsAreGlobs) {
  EXPECT_TRUE(looks_like("kworker/0:1", "kworker/*"));
  EXPECT_TRUE(looks_like("abc", "a?c"));
  EXPECT_TRUE(looks_like("", "*"));
  EXPECT_TRUE(looks_like("abcabd", "*ab?"));
  EXPECT_FALSE(looks_like("abc", "ab"));
  EXPECT_FALSE(looks_like("", "?"));
  EXPECT_FALSE(looks_like(std::string(2000, 'a'), "*a*a*a*a*a*b"));
}

}  // namespace
}  // namespace tacho::cli
