#include "format/constant_strings.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace tacho::format {

ConstantStrings::ConstantStrings(std::string_view printk_formats) {
  for (std::size_t at = 0; at < printk_formats.size();) {
    const auto end = std::min(printk_formats.find('\n', at), printk_formats.size());
    std::string_view line = printk_formats.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("0x")) line.remove_prefix(2);
    Row row;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), row.address, 16);
    line.remove_prefix(static_cast<std::size_t>(parsed.ptr - line.data()));
    constexpr std::string_view kBetween = " : \"", kEnd = "\"";
    if (parsed.ec != std::errc{} || !line.starts_with(kBetween)) continue;
    line.remove_prefix(kBetween.size());
    if (line.ends_with(kEnd)) line.remove_suffix(kEnd.size());
    if (line.ends_with("\\n")) line.remove_suffix(2);
    row.text = line;
    rows_.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows_, {}, &Row::address);
  const auto same = [](const Row& a, const Row& b) { return a.address == b.address; };
  rows_.erase(std::unique(rows_.begin(), rows_.end(), same), rows_.end());
}

const std::string* ConstantStrings::find(std::uint64_t address) const {
  const auto row = std::ranges::lower_bound(rows_, address, {}, &Row::address);
  return row == rows_.end() || row->address != address ? nullptr : &row->text;
}

}  // namespace tacho::format
