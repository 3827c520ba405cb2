#include "record/stacks/stack_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::record {

namespace {

using Counted = std::vector<std::pair<std::uint64_t, std::string_view>>;  // most frequent first
struct Ends {
  std::uint64_t all = 0, whole = 0;
  Counted others;
  Counted without;  // samples where there is no user stack any more: none of all
};

void sort(Counted& counted) {
  std::ranges::stable_sort(counted, std::greater<>{}, &Counted::value_type::first);
}

Ends ends_of(const StackCounts& counts) {
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
      "as their processes ended",
      "in execve, between two programs",
      "beyond the copy of a stack that the recorder finished"};
  Ends ends;
  ends.all = counts.without;
  for (const std::uint64_t count : counts.ends) ends.all += count;
  for (const auto how : {TACHO_END_EXITING, TACHO_END_EXEC}) {
    ends.all -= counts.ends[how];
    if (counts.ends[how] != 0) ends.without.emplace_back(counts.ends[how], kReasons[how]);
  }
  ends.whole = counts.ends[TACHO_END_WHOLE] + counts.ends[TACHO_END_FRAME_ZERO];
  for (std::size_t how = TACHO_END_CUT; how < TACHO_END_COUNT; ++how)
    if (counts.ends[how] != 0 && how != TACHO_END_EXITING && how != TACHO_END_EXEC)
      ends.others.emplace_back(counts.ends[how], kReasons[how]);
  if (counts.without != 0)
    ends.others.emplace_back(
        counts.without, "before their first step, as the process was not known yet or the rings were full");
  sort(ends.others);
  sort(ends.without);
  return ends;
}

double percent(std::uint64_t count, std::uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(all);
}

}  // namespace

StackCounts operator-(StackCounts counts, const StackCounts& before) {
  for (std::size_t how = 0; how < counts.ends.size(); ++how) counts.ends[how] -= before.ends[how];
  counts.frames -= before.frames;
  counts.without -= before.without;
  counts.unused -= before.unused;
  counts.finished -= before.finished;
  return counts;
}

std::string described(const StackCounts& counts) {
  const Ends ends = ends_of(counts);
  if (ends.all == 0) return "";
  std::string text =
      fmt::format("User stacks: {:.2f} % of {} are whole", percent(ends.whole, ends.all), ends.all);
  if (!ends.others.empty()) text += "; others end";
  for (const auto& [count, reason] : ends.others) {
    const bool is_first = &reason == &ends.others.front().second;
    text += fmt::format("{} {} ({:.2f} %)", is_first ? "" : ",", reason, percent(count, ends.all));
  }
  for (const auto& [count, reason] : ends.without) {
    const bool is_first = &reason == &ends.without.front().second;
    text += fmt::format("{} {} {}", is_first ? "; samples where there is none:" : ",", count, reason);
  }
  return text;
}

bool are_mostly_whole(const StackCounts& counts) {
  constexpr double kExpected = 95;
  const Ends ends = ends_of(counts);
  return ends.all == 0 || percent(ends.whole, ends.all) >= kExpected;
}

format::StringPairs facts_of(const StackCounts& counts) {
  const Ends ends = ends_of(counts);
  if (ends.all == 0) return {};
  format::StringPairs facts{
      {"walked", std::to_string(ends.all)},
      {"whole", fmt::format("{} ({:.2f} %)", ends.whole, percent(ends.whole, ends.all))}};
  if (counts.finished != 0)
    facts.emplace_back("of them finished by the recorder",
                       fmt::format("{} ({:.2f} %)", counts.finished, percent(counts.finished, ends.all)));
  for (const auto& [count, reason] : ends.others)
    facts.emplace_back("others end " + std::string(reason),
                       fmt::format("{} ({:.2f} %)", count, percent(count, ends.all)));
  for (const auto& [count, reason] : ends.without)
    facts.emplace_back("samples where there is none, " + std::string(reason), std::to_string(count));
  return facts;
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
