#include "record/stacks/stack_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::record {

std::string described(const StackCounts& counts) {
  constexpr std::array<std::string_view, TACHO_END_COUNT> kReasons{
      "",
      "",
      "cut at the most frames",
      "in processes that had just begun",
      "at an address in no mapping that was known yet",
      "at code whose table was not there yet",
      "in code that nothing describes",
      "at a rule that tables cannot hold",
      "where the stack was not in memory",
      "at a frame that does not lie above the last",
      "of 32-bit programs",
      "in processes whose memory was gone, as they ended",
      "in execve, when the old program's stack was gone"};
  std::uint64_t all = counts.without;
  for (const std::uint64_t count : counts.ends) all += count;
  if (all == 0) return "";
  const auto percent = [all](std::uint64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(all);
  };
  const std::uint64_t whole = counts.ends[TACHO_END_WHOLE] + counts.ends[TACHO_END_FRAME_ZERO];
  std::string text = fmt::format("User stacks: {:.2f} % of {} are whole", percent(whole), all);
  if (whole == all) return text;
  std::vector<std::pair<std::uint64_t, std::string_view>> others;
  for (std::size_t how = TACHO_END_CUT; how < TACHO_END_COUNT; ++how)
    if (counts.ends[how] != 0) others.emplace_back(counts.ends[how], kReasons[how]);
  if (counts.without != 0)
    others.emplace_back(counts.without,
                        "before their first step, as the process was not known yet or the rings were full");
  std::ranges::stable_sort(others, std::greater<>{}, &std::pair<std::uint64_t, std::string_view>::first);
  text += "; others end";
  for (std::size_t i = 0; i < others.size(); ++i)
    text += fmt::format("{} {} ({:.2f} %)", i == 0 ? "" : ",", others[i].second, percent(others[i].first));
  return text;
}

std::string described(const TableFacts& facts) {
  return fmt::format(
      "unwind tables: {} files, {} of them without one; {:.1f} MB of {:.0f} MB; built in {:.0f} ms of CPU; "
      "{} "
      "had to make room; {} were found by stacks before they were told",
      facts.files, facts.bare, static_cast<double>(facts.bytes) / (1 << 20),
      static_cast<double>(facts.budget) / (1 << 20), static_cast<double>(facts.building.count()) / 1000.0,
      facts.evicted, facts.asked);
}

}  // namespace tacho::record
