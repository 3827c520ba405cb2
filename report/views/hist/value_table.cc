#include "report/views/hist/value_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "report/output/fit.h"

namespace tacho::report {

void write_values(TextBuffer& out, std::string_view label, const std::vector<ValueCount>& rows,
                  std::uint64_t total, std::size_t top, std::size_t room) {
  constexpr std::size_t kBefore = 24;  // columns
  out.text(fmt::format("{:>12}  {:>7}  {}\n", "count", "share", label));
  const std::size_t shown = top == 0 ? rows.size() : std::min(top, rows.size());
  std::uint64_t rest = total;
  for (const ValueCount& row : std::span(rows).first(shown)) {
    const double share = 100.0 * static_cast<double>(row.count) / static_cast<double>(total);
    const std::string value = room > kBefore ? cut_in_the_middle(row.value, room - kBefore) : row.value;
    out.text(fmt::format("{:>12}  {:>6.2f}%  {}\n", row.count, share, value));
    rest -= row.count;
  }
  const std::size_t others = rows.size() - shown;
  if (others == 0) return;
  const double share = 100.0 * static_cast<double>(rest) / static_cast<double>(total);
  out.text(fmt::format("{:>12}  {:>6.2f}%  {} other value{}\n", rest, share, others, others == 1 ? "" : "s"));
}

}  // namespace tacho::report
