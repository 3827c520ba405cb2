#include "report/views/convert/kernel_places.h"

#include <algorithm>

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

std::uint64_t KernelPlaces::moved(std::uint64_t address) const {
  if (address < kHalf) return address;
  const std::uint64_t from = text();
  if (address >= kModules && address < kModulesEnd) {
    const std::uint64_t first = lowest_module_ & ~(kPage - 1);
    if (lowest_module_ != std::numeric_limits<std::uint64_t>::max() && address >= first)
      return address - first + kModules;
    return address;
  }
  if (from == 0) return address;
  if (from >= kImages)
    return address >= from && address < kModules ? std::min(address - from + kUsualText, kModules - 1)
                                                 : address;
  const bool is_near = address - from < kNear || from - address < kNear;
  return is_near ? address - from + kOtherText : address;
}

}  // namespace tacho::report
