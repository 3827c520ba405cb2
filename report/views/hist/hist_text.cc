#include "report/views/hist/hist_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "report/output/fit.h"

namespace tacho::report {

namespace {

struct Layout {
  std::size_t number, bar;  // columns
};
// Numbers of more than ten digits need the wide form, which has shorter bars.
constexpr Layout kNarrow{10, 40}, kWide{20, 20};

bool is_wide(const Bucket& bucket) { return bucket.high > 9'999'999'999 || bucket.low < -999'999'999; }

constexpr std::size_t kMostRows = 1000;

void write_rest(TextBuffer& out, const std::vector<Bucket>& buckets) {
  std::uint64_t values = 0;
  for (std::size_t i = kMostRows; i < buckets.size(); ++i) values += buckets[i].count;
  const double whole = static_cast<double>(buckets.back().high) - static_cast<double>(buckets.front().low);
  out.text(
      fmt::format("... left out: {} rows above, with {} values; all fit with --linear {:.0f}, and tacho "
                  "table --by has each\n",
                  buckets.size() - kMostRows, values, std::ceil(whole / (kMostRows / 10))));
}

}  // namespace

void write_distribution(TextBuffer& out, std::string_view label, const std::vector<Bucket>& buckets,
                        Rows rows) {
  const std::size_t shown = rows == Rows::All ? buckets.size() : std::min(buckets.size(), kMostRows);
  const Layout layout = std::ranges::any_of(buckets, is_wide) ? kWide : kNarrow;
  std::uint64_t largest = 1;
  for (const Bucket& bucket : buckets) largest = std::max(largest, bucket.count);
  const std::size_t range = 2 * layout.number + 4;
  const std::size_t indent = layout.number == kNarrow.number ? 5 : 15;
  out.text(fmt::format("{:{}}{:<{}} : count     distribution\n", "", indent, label, range - indent));
  for (std::size_t i = 0; i < shown; ++i) {
    const Bucket& bucket = buckets[i];
    if (bucket.left_out != 0)
      out.text(fmt::format("{:>{}}    {} rows without values\n", "...", layout.number, bucket.left_out));
    // Counts can be large: the product is taken in floating point, as bcc does.
    const auto stars = static_cast<std::size_t>(
        static_cast<double>(layout.bar) * static_cast<double>(bucket.count) / static_cast<double>(largest));
    out.text(fmt::format("{:>{}} -> {:<{}} : {:<8} |", bucket.low, layout.number, bucket.high, layout.number,
                         bucket.count));
    out.fill('*', std::min(stars, layout.bar));
    out.blanks(layout.bar - std::min(stars, layout.bar));
    out.text("|\n");
  }
  if (shown < buckets.size()) write_rest(out, buckets);
}

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
