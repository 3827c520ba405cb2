#include "report/kernel_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tacho::report {
namespace {

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63, kImageStep = 2 << 20, kPage = 4096;

}  // namespace

void KernelPlaces::see_text(std::uint64_t start) {
  if (start < kHalf || start >= kModulesEnd) return;
  if (told_text_ == 0 || start < told_text_) told_text_ = start;
}

void KernelPlaces::see_code(std::uint64_t address) {
  if (address >= kModules && address < kModulesEnd) lowest_module_ = std::min(lowest_module_, address);
  if (address >= kImages && address < kModules) lowest_in_image_ = std::min(lowest_in_image_, address);
}

std::uint64_t KernelPlaces::text() const {
  const std::uint64_t start = told_text_ != 0 ? told_text_ : lowest_in_image_;
  return start == std::numeric_limits<std::uint64_t>::max() ? 0 : start & ~(kImageStep - 1);
}

std::optional<std::uint64_t> KernelPlaces::place_of(std::uint64_t address) const {
  if (address < kHalf) return std::nullopt;
  const std::uint64_t from = text();
  if (address >= kModules && address < kModulesEnd) {
    const std::uint64_t first = lowest_module_ & ~(kPage - 1);
    if (lowest_module_ == std::numeric_limits<std::uint64_t>::max() || address < first) return std::nullopt;
    return address - first + kModules;
  }
  if (from == 0) return std::nullopt;
  if (from >= kImages) {
    if (address < from || address >= kModules) return std::nullopt;
    return std::min(address - from + kUsualText, kModules - 1);
  }
  const bool is_near = address - from < kNear || from - address < kNear;
  return is_near ? std::optional(address - from + kOtherText) : std::nullopt;
}

std::uint64_t KernelPlaces::moved(std::uint64_t address) const { return place_of(address).value_or(address); }

std::uint64_t KernelPlaces::hidden(std::uint64_t address, const Aliases& aliases) const {
  constexpr std::uint64_t kKeptBits = 0xffff'8000'0000'0000;
  if (address < kHalf) return address;
  return place_of(address).value_or((address & kKeptBits) | (aliases.of_number(address) & ~kKeptBits));
}

std::string KernelPlaces::hidden_in(std::string_view text, const Aliases& aliases) const {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  constexpr std::size_t kAll = 16;
  std::string changed;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_of(kDigits), text.size());
    const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    const std::string_view digits = text.substr(begin, end - begin);
    std::uint64_t number = 0;
    changed += text.substr(0, begin);
    if (digits.size() == kAll) std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    changed += number >= kHalf ? fmt::format("{:016x}", hidden(number, aliases)) : std::string(digits);
    text.remove_prefix(end);
  }
  return changed;
}

}  // namespace tacho::report
