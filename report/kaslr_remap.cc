#include "report/kaslr_remap.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace tacho::report {
namespace {

constexpr std::uint64_t kImageStep = 2 << 20, kPage = 4096;  // bytes
constexpr std::string_view kDigitsOfAddress = "0123456789abcdefABCDEF";

}  // namespace

void KaslrRemap::see_text(std::uint64_t start) {
  if (start < kKernelHalf || start >= kModulesEnd) return;
  if (mapped_text_ == 0 || start < mapped_text_) mapped_text_ = start;
}

void KaslrRemap::see_code(std::uint64_t address) {
  if (address >= kModules && address < kModulesEnd) lowest_module_ = std::min(lowest_module_, address);
  if (address >= kImages && address < kModules) lowest_in_image_ = std::min(lowest_in_image_, address);
}

std::uint64_t KaslrRemap::text() const {
  const std::uint64_t start = mapped_text_ != 0 ? mapped_text_ : lowest_in_image_;
  return start == std::numeric_limits<std::uint64_t>::max() ? 0 : start & ~(kImageStep - 1);
}

std::optional<std::uint64_t> KaslrRemap::place_of(std::uint64_t address) const {
  if (address < kKernelHalf) return std::nullopt;
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

std::uint64_t KaslrRemap::moved(std::uint64_t address) const { return place_of(address).value_or(address); }

std::uint64_t KaslrRemap::hidden(std::uint64_t address, const Aliases& aliases) const {
  constexpr std::uint64_t kKeptBits = 0xffff'8000'0000'0000;
  if (address < kKernelHalf) return address;
  return place_of(address).value_or((address & kKeptBits) | (aliases.of_number(address) & ~kKeptBits));
}

std::string KaslrRemap::hidden_in(std::string_view text, const Aliases& aliases) const {
  constexpr std::size_t kAll = 16;  // digits
  std::string changed;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_of(kDigitsOfAddress), text.size());
    const std::size_t end = std::min(text.find_first_not_of(kDigitsOfAddress, begin), text.size());
    const std::string_view digits = text.substr(begin, end - begin);
    std::uint64_t number = 0;
    changed += text.substr(0, begin);
    if (digits.size() == kAll) std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    changed += number >= kKernelHalf ? fmt::format("{:016x}", hidden(number, aliases)) : std::string(digits);
    text.remove_prefix(end);
  }
  return changed;
}

}  // namespace tacho::report
