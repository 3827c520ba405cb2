#include "record/host/source_name.h"

#include <cstddef>

namespace tacho::record {
namespace {

constexpr std::size_t kLongestName = 1024;
constexpr int kDeepest = 64;  // types in types

// How an operator is called in a symbol, and in a source.
struct OperatorName {
  std::string_view code, name;
};
constexpr OperatorName kOperators[] = {
    {"nw", " new"}, {"na", " new[]"}, {"dl", " delete"}, {"da", " delete[]"}, {"ng", "-"},   {"ad", "&"},
    {"de", "*"},    {"co", "~"},      {"pl", "+"},       {"mi", "-"},         {"ml", "*"},   {"dv", "/"},
    {"rm", "%"},    {"an", "&"},      {"or", "|"},       {"eo", "^"},         {"aS", "="},   {"pL", "+="},
    {"mI", "-="},   {"mL", "*="},     {"dV", "/="},      {"rM", "%="},        {"aN", "&="},  {"oR", "|="},
    {"eO", "^="},   {"ls", "<<"},     {"rs", ">>"},      {"lS", "<<="},       {"rS", ">>="}, {"eq", "=="},
    {"ne", "!="},   {"lt", "<"},      {"gt", ">"},       {"le", "<="},        {"ge", ">="},  {"ss", "<=>"},
    {"nt", "!"},    {"aa", "&&"},     {"oo", "||"},      {"pp", "++"},        {"mm", "--"},  {"cm", ","},
    {"pm", "->*"},  {"pt", "->"},     {"cl", "()"},      {"ix", "[]"}};

class MangledName {
 public:
  explicit MangledName(std::string_view symbol) : rest_(symbol) {}

  std::optional<std::string> read() {
    if (rest_.size() > kLongestName || rest_.find('.') != std::string_view::npos) return std::nullopt;
    if (!accept("_Z")) return std::nullopt;
    if (!accept("N")) {
      if (accept("St")) name_ = "std";
      accept("L");  // seen in its file alone
      if (!add_name() && !add_operator()) return std::nullopt;
      return !rest_.starts_with('I') || skip_arguments(0) ? std::optional(name_) : std::nullopt;
    }
    while (accept("r") || accept("V") || accept("K")) {  // of a member function: volatile, const
    }
    if (!accept("O")) accept("R");
    if (accept("St")) name_ = "std";
    bool is_function = false;  // the last part is one
    while (!accept("E")) {
      // A source name omits template arguments.
      if (rest_.starts_with('I') && !last_.empty() && skip_arguments(0)) continue;
      is_function = add_name() || add_special() || add_operator();
      if (!is_function) return std::nullopt;
    }
    return is_function ? std::optional(name_) : std::nullopt;
  }

 private:
  bool accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void add(std::string_view part) {
    if (!name_.empty()) name_ += "::";
    name_ += part;
    last_ = part;
  }
  // A number, and so many letters; nothing otherwise.
  std::string_view take_identifier() {
    std::size_t size = 0, digits = 0;
    while (digits < rest_.size() && digits < 4 && rest_[digits] >= '0' && rest_[digits] <= '9')
      size = size * 10 + static_cast<std::size_t>(rest_[digits++] - '0');
    if (size == 0 || size > rest_.size() - digits) return {};
    const std::string_view part = rest_.substr(digits, size);
    rest_.remove_prefix(digits + size);
    return part;
  }
  bool add_name() {
    const std::string_view part = take_identifier();
    if (part.empty()) return false;
    add(part.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : part);
    while (accept("B")) {  // a tag of the library's ABI, which no source has
      if (take_identifier().empty()) return false;
    }
    return true;
  }
  // Constructors and destructors are called as their class.
  bool add_special() {
    if (last_.empty() || rest_.size() < 2 || rest_[1] < '0' || rest_[1] > '5') return false;
    const bool destroys = rest_.front() == 'D';
    if (!destroys && rest_.front() != 'C') return false;
    rest_.remove_prefix(2);
    add(destroys ? '~' + std::string(last_) : std::string(last_));
    return true;
  }

  bool add_operator() {
    for (const OperatorName& each : kOperators) {
      if (!accept(each.code)) continue;
      add("operator" + std::string(each.name));
      return true;
    }
    return false;
  }

  // What follows is skipped, as the ABI of C++ writes it; false: it is something else, or too deep. Steps of
  // recursion take a letter each, and levels are bounded.
  bool skip_arguments(int level) {
    if (level > kDeepest || !accept("I")) return false;
    while (!accept("E"))
      if (!skip_argument(level + 1)) return false;
    return true;
  }
  bool skip_argument(int level) {
    if (level > kDeepest) return false;
    if (accept("J")) {  // several
      while (!accept("E"))
        if (!skip_argument(level + 1)) return false;
      return true;
    }
    if (rest_.starts_with('X')) return false;  // an expression
    return rest_.starts_with('L') ? skip_literal(level) : skip_type(level);
  }
  // "Lj5E", "Lb1E", "L4Kindn1E"
  bool skip_literal(int level) {
    accept("L");
    if (rest_.starts_with('_') || rest_.starts_with('Z') || !skip_type(level + 1)) return false;
    accept("n");
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') rest_.remove_prefix(1);
    return accept("E");
  }
  bool skip_type(int level) {
    if (level > kDeepest || rest_.empty()) return false;
    constexpr std::string_view kQualifiers = "PROKVr";
    while (!rest_.empty() && kQualifiers.find(rest_.front()) != std::string_view::npos)
      rest_.remove_prefix(1);
    if (rest_.empty()) return false;
    const char first = rest_.front();
    if (first >= '0' && first <= '9') return skip_named(level);
    if (first == 'S') return skip_substitution() && skip_arguments_if(level);
    if (first == 'T') return skip_numbered("T") && skip_arguments_if(level);
    if (first == 'N') return skip_nested(level);
    if (first == 'F') return accept("F") && skip_types_to_end(level);
    if (first == 'M') return accept("M") && skip_type(level + 1) && skip_type(level + 1);
    if (first == 'A') return skip_array(level);
    if (first == 'D') return skip_long_name(level);
    rest_.remove_prefix(1);
    return first >= 'a' && first <= 'z' && first != 'u';
  }
  bool skip_arguments_if(int level) { return !rest_.starts_with('I') || skip_arguments(level + 1); }
  bool skip_named(int level) {
    if (take_identifier().empty()) return false;
    while (accept("B"))
      if (take_identifier().empty()) return false;
    return skip_arguments_if(level);
  }
  // "St6vector", "Sa", "S_", "S1A_"
  bool skip_substitution() {
    if (accept("St")) return !take_identifier().empty();
    constexpr std::string_view kShort = "absiod";
    if (rest_.size() >= 2 && kShort.find(rest_[1]) != std::string_view::npos) {
      rest_.remove_prefix(2);
      return true;
    }
    return skip_numbered("S");
  }
  bool skip_numbered(std::string_view letter) {
    constexpr std::size_t kMostDigits = 8;
    const std::size_t end = rest_.find('_');
    if (!rest_.starts_with(letter) || end == std::string_view::npos || end > kMostDigits) return false;
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool skip_nested(int level) {
    accept("N");
    while (accept("r") || accept("V") || accept("K")) {
    }
    while (!accept("E")) {
      const bool is_skipped = rest_.starts_with('I')    ? skip_arguments(level + 1)
                              : rest_.starts_with("St") ? accept("St")
                              : rest_.starts_with('S')  ? skip_substitution()
                              : rest_.starts_with('T')  ? skip_numbered("T")
                                                        : skip_named(level);
      if (!is_skipped) return false;
    }
    return true;
  }
  bool skip_types_to_end(int level) {
    while (!accept("E"))
      if (!skip_type(level + 1)) return false;
    return true;
  }
  bool skip_array(int level) {
    accept("A");
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') rest_.remove_prefix(1);
    return accept("_") && skip_type(level + 1);
  }
  // "Dn", "Di"; "Dp" precedes a type; decltype(), vectors and the like are not supported.
  bool skip_long_name(int level) {
    if (accept("Dp")) return skip_type(level + 1);
    constexpr std::string_view kKnown = "nisuadefhc";
    if (rest_.size() < 2 || kKnown.find(rest_[1]) == std::string_view::npos) return false;
    rest_.remove_prefix(2);
    return true;
  }

  std::string_view rest_;
  std::string name_;
  std::string last_;
};

}  // namespace

std::optional<std::string> source_name(std::string_view symbol) { return MangledName(symbol).read(); }

std::string without_template_arguments(std::string_view name) {
  constexpr std::string_view kOperator = "operator", kOfOperators = "<>=-";
  std::string out;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (depth == 0 && name.substr(0, i).ends_with(kOperator)) {
      for (; i < name.size() && kOfOperators.find(name[i]) != std::string_view::npos; ++i) out += name[i];
      if (i == name.size()) break;
    }
    if (name[i] == '<') {
      ++depth;
    } else if (name[i] == '>' && depth > 0) {
      --depth;
    } else if (depth == 0) {
      out += name[i];
    }
  }
  return depth == 0 ? out : std::string(name);
}

}  // namespace tacho::record
