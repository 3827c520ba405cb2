#include "record/host/source_name.h"

#include <cstddef>

namespace tacho::record {
namespace {

constexpr std::size_t kLongestName = 1024;

class MangledName {
 public:
  explicit MangledName(std::string_view symbol) : rest_(symbol) {}

  std::optional<std::string> read() {
    if (rest_.size() > kLongestName || rest_.find('.') != std::string_view::npos) return std::nullopt;
    if (!accept("_Z")) return std::nullopt;
    if (!accept("N")) {
      if (accept("St")) name_ = "std";
      accept("L");  // seen in its file alone
      if (!add_name() || rest_.starts_with('I')) return std::nullopt;
      return name_;
    }
    while (accept("r") || accept("V") || accept("K")) {  // of a member function: volatile, const
    }
    if (!accept("O")) accept("R");
    if (accept("St")) name_ = "std";
    bool is_function = false;  // the last part is one
    while (!accept("E")) {
      is_function = add_name() || add_special();
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

  std::string_view rest_;
  std::string name_;
  std::string last_;
};

}  // namespace

std::optional<std::string> source_name(std::string_view symbol) { return MangledName(symbol).read(); }

}  // namespace tacho::record
