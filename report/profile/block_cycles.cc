#include "report/profile/block_cycles.h"

#include <algorithm>
#include <tuple>

#include "report/decode/coded_values.h"
#include "report/profile/branch_place.h"

namespace tacho::report {
namespace {

std::uint64_t word_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

// The newest branch stands first; what ran before the oldest is not known.
void BlockCycles::add(const ResolvedSample& sample) {
  const format::Sample& raw = *sample.raw;
  if (raw.branch_count() == 0 || branch_cycles(raw.branch(0).flags) == 0) return;
  std::uint32_t start = kNone;
  for (std::size_t i = raw.branch_count(); i-- > 0;) {
    const format::BranchEntry branch = raw.branch(i);
    const std::uint64_t cycles = branch_cycles(branch.flags);
    total_ += cycles;
    if (cycles != 0) {
      const std::uint32_t end = branch_place(sample, branch.from).number;
      Way& way = ways_[by_way_.find_or_make(
          by_way_.hash(start, end),
          [&](std::uint32_t known) { return ways_[known].start == start && ways_[known].end == end; },
          [&] {
            ways_.push_back({.start = start, .end = end});
            return static_cast<std::uint32_t>(ways_.size() - 1);
          })];
      way.cycles += cycles;
      ++way.branches;
    }
    if (knows_starts_) start = branch_place(sample, branch.to).number;
  }
}

std::uint32_t BlockCycles::code_of(const Code& code) {
  return by_code_.find_or_make(
      by_code_.hash(word_of(code.module), code.start, code.end),
      [&](std::uint32_t known) { return codes_[known] == code; },
      [&] {
        codes_.push_back(code);
        return static_cast<std::uint32_t>(codes_.size() - 1);
      });
}

void BlockCycles::take(Resolver& resolver, const Way& way) {
  const Location& last = resolver.location(way.end);
  const auto place_in = [&resolver](const Location& location, std::uint64_t& at) {
    const symbolize::Frame& frame = resolver.frame(location);
    at = frame.shown_address - frame.function_start;
    return frame.function.empty() ? Code() : Code{frame.module, frame.function_start, frame.function_end};
  };
  std::uint64_t end = 0, start = 0;
  const Code code = place_in(last, end);
  if (code == Code()) return;
  const bool has_start =
      way.start != kNone && place_in(resolver.location(way.start), start) == code && start < end;
  const std::uint32_t number = code_of(code);
  Ended& ended = ended_[by_end_.find_or_make(
      by_end_.hash(number, end),
      [&](std::uint32_t known) { return ended_[known].code == number && ended_[known].block.end == end; },
      [&] {
        ended_.push_back({.code = number, .block = {.end = end, .last = last}});
        return static_cast<std::uint32_t>(ended_.size() - 1);
      })];
  ended.block.cycles += way.cycles;
  ended.block.branches += way.branches;
  if (!has_start) return;
  ended.block.start = ended.has_start ? std::min(ended.block.start, start) : start;
  ended.has_start = true;
}

void BlockCycles::settle(Resolver& resolver) {
  for (const Way& way : ways_) take(resolver, way);
  std::ranges::sort(ended_, {}, [](const Ended& ended) { return std::pair(ended.code, ended.block.end); });
}

std::vector<CycleBlock> BlockCycles::blocks_of(const Function& function) {
  std::vector<CycleBlock> blocks;
  if (function.name().empty()) return blocks;
  const std::uint32_t number = code_of({function.module, function.start, function.end()});
  const auto first = std::ranges::lower_bound(ended_, number, {}, &Ended::code);
  for (auto ended = first; ended != ended_.end() && ended->code == number; ++ended)
    blocks.push_back(ended->block);
  return blocks;
}

}  // namespace tacho::report
