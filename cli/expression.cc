#include "cli/expression.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "cli/message_text.h"

namespace tacho::cli {
namespace {

constexpr int kDeepest = 200;        // nested parentheses and prefixes
constexpr std::size_t kMost = 4096;  // nodes

struct Binary {
  std::string_view spelling;
  Operation operation;
};

// From the lowest to the highest precedence. Within a level longer spellings come first.
constexpr Binary kOr[] = {{"||", Operation::Or}};
constexpr Binary kAnd[] = {{"&&", Operation::And}};
constexpr Binary kCompare[] = {{"==", Operation::Equal},       {"!=", Operation::Unequal},
                               {"!~", Operation::Unlike},      {"~", Operation::Like},
                               {"<=", Operation::LessOrEqual}, {">=", Operation::GreaterOrEqual},
                               {"<", Operation::Less},         {">", Operation::Greater}};
constexpr Binary kBitOr[] = {{"|", Operation::BitOr}};
constexpr Binary kBitAnd[] = {{"&", Operation::BitAnd}};
constexpr Binary kSum[] = {{"+", Operation::Plus}, {"-", Operation::Difference}};
constexpr Binary kProduct[] = {{"*", Operation::Times}, {"/", Operation::Quotient}, {"%", Operation::Rest}};

using Level = std::span<const Binary>;
constexpr Level kLevels[] = {kOr, kAnd, kCompare, kBitOr, kBitAnd, kSum, kProduct};
constexpr std::size_t kCompareLevel = 2;

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool begins_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}
bool is_in_name(char letter) { return begins_name(letter) || is_digit(letter); }

class Parser {
 public:
  Parser(std::string_view option, std::string_view text) : option_(option), text_(text) {
    result_.source = text;
  }

  Result<Expression> parse() {
    if (auto whole = level(0, 0); !whole) return std::move(whole.error());
    skip_blanks();
    if (at_ < text_.size()) return wrong(at_, instead_of_operator());
    return std::move(result_);
  }

 private:
  using Made = Result<std::uint32_t>;  // the number of a node

  Error wrong(std::size_t at, std::string_view what) const { return error_at(option_, text_, at, what); }

  // A hint for operators of other languages.
  std::string_view instead_of_operator() const {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("=~")) return "a text is compared with a pattern by ~, as in comm ~ \"cc*\"";
    if (rest.starts_with('=')) return "equal is written ==";
    if (rest.starts_with("and ")) return "and is written &&";
    if (rest.starts_with("or ")) return "or is written ||";
    return "an operator is missing here, or what follows has no meaning";
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  bool take(std::string_view spelling) {
    if (!text_.substr(at_).starts_with(spelling)) return false;
    at_ += spelling.size();
    return true;
  }

  std::uint32_t add(ExpressionNode node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(result_.nodes.size() - 1);
  }

  std::optional<Operation> operator_of(Level level) {
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    for (const Binary& one : level) {
      // "|" is not the first half of "||", nor "&" of "&&".
      const bool is_doubled =
          (one.spelling == "|" || one.spelling == "&") && rest.size() > 1 && rest[1] == one.spelling[0];
      if (!is_doubled && take(one.spelling)) return one.operation;
    }
    return std::nullopt;
  }

  Made level(std::size_t which, int depth) {
    if (which == std::size(kLevels)) return prefixed(depth);
    auto left = level(which + 1, depth);
    if (!left) return left;
    for (bool is_first = true;; is_first = false) {
      skip_blanks();
      const std::size_t at = at_;
      const auto operation = operator_of(kLevels[which]);
      if (!operation) return left;
      if (result_.nodes.size() >= kMost) return wrong(at, "the condition is too long");
      if (which == kCompareLevel && !is_first)
        return wrong(at, "comparisons do not chain; join two of them by &&");
      auto right = level(which + 1, depth);
      if (!right) return right;
      left = add({.operation = *operation, .left = *left, .right = *right, .at = at});
    }
  }

  Made prefixed(int depth) {
    skip_blanks();
    if (depth > kDeepest) return wrong(at_, "too many nested parentheses");
    const std::size_t at = at_;
    const bool is_not = text_.substr(at_).starts_with('!') && !text_.substr(at_).starts_with("!~");
    if (is_not || text_.substr(at_).starts_with('-')) {
      ++at_;
      auto of = prefixed(depth + 1);
      if (!of) return of;
      return add({.operation = is_not ? Operation::Not : Operation::Minus, .left = *of, .at = at});
    }
    if (take("(")) {
      auto inside = level(0, depth + 1);
      if (!inside) return inside;
      skip_blanks();
      if (text_.substr(at_).starts_with('=')) return wrong(at_, instead_of_operator());
      if (!take(")")) return wrong(at, "this parenthesis is not closed");
      return inside;
    }
    return leaf();
  }

  Made leaf() {
    if (at_ >= text_.size()) return wrong(at_, "a value is missing at the end");
    const char first = text_[at_];
    if (is_digit(first)) return number();
    if (begins_name(first)) return name();
    if (first == '"' || first == '\'') return quoted(first);
    return wrong(at_, "a value is expected: a number, a field, or a text in quotes");
  }

  Made quoted(char quote) {
    const std::size_t at = at_++;
    std::string text;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return add({.operation = Operation::Text, .text = std::move(text), .at = at});
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_];
    }
    return wrong(at, "this text is not closed");
  }

  // "lat_ns", "sample.comm", "args[2]"
  Made name() {
    const std::size_t at = at_;
    while (at_ < text_.size() && (is_in_name(text_[at_]) || (text_[at_] == '.' && at_ + 1 < text_.size() &&
                                                             begins_name(text_[at_ + 1])))) {
      ++at_;
    }
    ExpressionNode node{
        .operation = Operation::Name, .text = std::string(text_.substr(at, at_ - at)), .at = at};
    if (take("[")) {
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), node.index);
      if (error != std::errc{}) return wrong(at_, "the number of an element is expected");
      at_ += static_cast<std::size_t>(end - begin);
      if (!take("]")) return wrong(at_, "']' is missing");
    }
    return add(std::move(node));
  }

  Made number() {
    const std::size_t at = at_;
    ExpressionNode node{.operation = Operation::Whole, .at = at};
    const char* const begin = text_.data() + at_;
    const char* const end_of_text = text_.data() + text_.size();
    const bool is_hex = text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X");
    auto parsed = is_hex ? std::from_chars(begin + 2, end_of_text, node.whole, 16)
                         : std::from_chars(begin, end_of_text, node.whole);
    const bool has_more =
        parsed.ptr < end_of_text && (*parsed.ptr == '.' || *parsed.ptr == 'e' || *parsed.ptr == 'E');
    if (!is_hex && (has_more || parsed.ec == std::errc::result_out_of_range)) {
      parsed = std::from_chars(begin, end_of_text, node.real);
      node.operation = Operation::Real;
    }
    if (parsed.ec != std::errc{}) return wrong(at, "this is not a number, or it is too large");
    at_ += static_cast<std::size_t>(parsed.ptr - begin);
    if (auto done = add_suffix(node); !done) return std::move(done.error());
    become_whole(node);
    return add(std::move(node));
  }

  Result<> add_suffix(ExpressionNode& node) {
    const std::size_t at = at_;
    while (at_ < text_.size() && is_in_name(text_[at_])) ++at_;
    const std::string_view letters = text_.substr(at, at_ - at);
    if (letters.empty()) return Done{};
    const format::Unit* const suffix = format::find_unit(letters);
    if (suffix == nullptr) return wrong(at, "a unit is ns, us, ms or s, or k, M or G (of 1024)");
    node.unit = suffix->quantity;
    if (node.operation == Operation::Whole &&
        node.whole <= std::numeric_limits<std::uint64_t>::max() / suffix->size) {
      node.whole *= suffix->size;
    } else {
      if (node.operation == Operation::Whole) node.real = static_cast<double>(node.whole);
      node.operation = Operation::Real;
      node.real *= static_cast<double>(suffix->size);
    }
    return Done{};
  }

  // Makes 1.5ms (1500000 ns) and 1e6 integers, which compare exactly.
  static void become_whole(ExpressionNode& node) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (node.operation != Operation::Real || node.real > kExact || std::trunc(node.real) != node.real) return;
    node.operation = Operation::Whole;
    node.whole = static_cast<std::uint64_t>(node.real);
  }

  std::string_view option_, text_;
  std::size_t at_ = 0;
  Expression result_;
};

}  // namespace

Result<Expression> parse_expression(std::string_view option, std::string_view text) {
  return Parser(option, text).parse();
}

bool looks_like(std::string_view text, std::string_view pattern) {
  std::size_t at = 0, in_pattern = 0;
  std::optional<std::size_t> star;  // the last * in the pattern; it matches the text up to `tried`
  std::size_t tried = 0;
  while (at < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      tried = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == text[at])) {
      ++in_pattern;
      ++at;
    } else if (star) {
      in_pattern = *star + 1;
      at = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

}  // namespace tacho::cli
