#include "report/views/hist/distribution_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacho::report {
namespace {

struct Layout {
  std::size_t number, bar;  // columns
};
// Numbers of more than ten digits need the wide form, which has shorter bars.
constexpr Layout kNarrow{10, 40}, kWide{20, 20};

bool is_wide(const Bucket& bucket) { return bucket.high > 9'999'999'999 || bucket.low < -999'999'999; }

}  // namespace

void write_distribution(TextBuffer& out, std::string_view label, const std::vector<Bucket>& buckets) {
  const Layout layout = std::ranges::any_of(buckets, is_wide) ? kWide : kNarrow;
  std::uint64_t largest = 1;
  for (const Bucket& bucket : buckets) largest = std::max(largest, bucket.count);
  const std::size_t range = 2 * layout.number + 4;
  const std::size_t indent = layout.number == kNarrow.number ? 5 : 15;
  out.text(fmt::format("{:{}}{:<{}} : count     distribution\n", "", indent, label, range - indent));
  for (const Bucket& bucket : buckets) {
    // Counts can be large: the product is taken in floating point, as bcc does.
    const auto stars = static_cast<std::size_t>(
        static_cast<double>(layout.bar) * static_cast<double>(bucket.count) / static_cast<double>(largest));
    out.text(fmt::format("{:>{}} -> {:<{}} : {:<8} |", bucket.low, layout.number, bucket.high, layout.number,
                         bucket.count));
    out.fill('*', std::min(stars, layout.bar));
    out.blanks(layout.bar - std::min(stars, layout.bar));
    out.text("|\n");
  }
}

}  // namespace tacho::report
