#include "report/views/report/branch_statistics.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

namespace tacho::report {

void BranchStatistics::add(std::uint64_t from, std::uint64_t to, BranchType type, std::uint64_t count) {
  constexpr unsigned kPage = 12, kLargePage = 21;  // bits of an address within
  if (type.type == BranchType::kUnknown || from == 0) return;
  (type.type == BranchType::kExtended ? extended_[type.extended] : types_[type.type]) += count;
  if (type.type == BranchType::kConditional) (to > from ? forward_ : backward_) += count;
  if (from >> kLargePage != to >> kLargePage) {
    cross_2m_ += count;
  } else if (from >> kPage != to >> kPage) {
    cross_4k_ += count;
  }
}

// As perf, which ends the last line with nothing, and counts extended types in no total.
void BranchStatistics::write(TextOutput& out) const {
  const std::uint64_t total = std::accumulate(types_.begin(), types_.end(), std::uint64_t{0});
  if (total == 0) return;
  out.text("\n#\n# Branch Statistics:\n#");
  const auto line = [&](std::string_view name, std::uint64_t count) {
    if (count == 0) return;
    out.text(fmt::format("\n{:>8}: {:5.1f}%", name,
                         100.0 * static_cast<double>(count) / static_cast<double>(total)));
  };
  line("COND_FWD", forward_);
  line("COND_BWD", backward_);
  line("CROSS_4K", cross_4k_);
  line("CROSS_2M", cross_2m_);
  for (unsigned type = 0; type < BranchType::kCount; ++type) line(branch_type_name({type, 0}), types_[type]);
  for (unsigned type = 0; type < BranchType::kCount; ++type)
    line(branch_type_name({BranchType::kExtended, type}), extended_[type]);
}

}  // namespace tacho::report
