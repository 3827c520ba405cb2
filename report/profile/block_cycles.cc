#include "report/profile/block_cycles.h"

#include <algorithm>
#include <utility>

#include "report/decode/coded_values.h"
#include "report/profile/branches.h"

namespace tacho::report {

// The newest branch is first; the code before the oldest one is unknown.
void BlockCycles::add_branches(const ResolvedSample& sample) {
  const format::Sample& fields = *sample.fields;
  if (fields.branch_count() == 0 || branch_cycles(fields.branch(0).flags) == 0) return;
  LocationId start = kNo<LocationId>;
  for (std::size_t i = fields.branch_count(); i-- > 0;) {
    const format::BranchEntry branch = fields.branch(i);
    const std::uint64_t cycles = branch_cycles(branch.flags);
    total_ += cycles;
    if (cycles != 0) {
      const LocationId end = branch_location(sample, branch.from).id;
      const auto is_same = [&](const Block& known) { return known.start == start && known.end == end; };
      Block& block =
          find_or_add(by_block_, by_block_.hash(start, end), blocks_, is_same, {.start = start, .end = end});
      block.cycles += cycles;
      ++block.branches;
    }
    if (knows_starts_) start = branch_location(sample, branch.to).id;
  }
}

BlockCycles::CodeId BlockCycles::code_of(const Code& code) {
  const auto module = reinterpret_cast<std::uintptr_t>(code.module);
  return codes_.number_of(codes_.hash()(module, code.start, code.end), code);
}

void BlockCycles::add_block(Resolver& resolver, const Block& block) {
  const Location& last = resolver.location(block.end);
  const auto code_at = [&resolver](const Location& location, std::uint64_t& at) {
    const symbolize::Frame& frame = resolver.frame(location);
    at = frame.shown_address - frame.function_start;
    return frame.function.empty() ? Code() : Code{frame.module, frame.function_start, frame.function_end};
  };
  std::uint64_t end = 0, start = 0;
  const Code code = code_at(last, end);
  if (code == Code()) return;
  const bool has_start =
      block.start != kNo<LocationId> && code_at(resolver.location(block.start), start) == code && start < end;
  const CodeId id = code_of(code);
  const auto is_same = [&](const Ended& known) { return known.code == id && known.block.end == end; };
  Ended& ended = find_or_add(by_end_, by_end_.hash(id, end), ended_, is_same,
                             {.code = id, .block = {.end = end, .last = last}});
  ended.block.cycles += block.cycles;
  ended.block.branches += block.branches;
  if (!has_start) return;
  ended.block.start = ended.has_start ? std::min(ended.block.start, start) : start;
  ended.has_start = true;
}

void BlockCycles::settle(Resolver& resolver) {
  for (const Block& block : blocks_) add_block(resolver, block);
  std::ranges::sort(ended_, {}, [](const Ended& ended) { return std::pair(ended.code, ended.block.end); });
}

std::vector<CycleBlock> BlockCycles::blocks_of(const Function& function) {
  std::vector<CycleBlock> blocks;
  if (function.name().empty()) return blocks;
  const CodeId id = code_of({function.module, function.start, function.end()});
  const auto first = std::ranges::lower_bound(ended_, id, {}, &Ended::code);
  for (auto ended = first; ended != ended_.end() && ended->code == id; ++ended)
    blocks.push_back(ended->block);
  return blocks;
}

}  // namespace tacho::report
