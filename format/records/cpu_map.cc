#include "format/records/cpu_map.h"

#include <utility>

namespace tacho::format {
namespace {

constexpr std::uint16_t kList = 0, kMask = 1, kRange = 2;
constexpr std::size_t kKind = 2;  // bytes before each form

CpuMap parse_list(Cursor& in) {
  const std::uint16_t count = in.u16();
  CpuList list;
  for (unsigned i = 0; i < count && in.left() >= sizeof(std::uint16_t); ++i)
    list.cpus.push_back(static_cast<std::int16_t>(in.u16()));
  if (list.cpus.size() != count) in.fail();
  return {kList, kKind + 2 + std::size_t{2} * count, std::move(list)};
}

// Before words of 8 bytes come 4 bytes of padding.
CpuMap parse_mask(Cursor& in) {
  constexpr std::size_t kPadding = 4;
  const std::uint16_t count = in.u16();
  CpuMask mask{.word_size = in.u16(), .words = {}, .unknown = {}};
  const bool is_wide = mask.word_size == sizeof(std::uint64_t);
  const std::size_t size = kKind + 4 + (is_wide ? kPadding : 0) + std::size_t{mask.word_size} * count;
  if (!is_wide && mask.word_size != sizeof(std::uint32_t)) {
    mask.unknown = in.rest();
    in.fail();
    return {kMask, size, std::move(mask)};
  }
  if (is_wide) in.skip(kPadding);
  for (unsigned i = 0; i < count && in.left() >= mask.word_size; ++i)
    mask.words.push_back(is_wide ? in.u64() : in.u32());
  if (mask.words.size() != count) in.fail();
  return {kMask, size, std::move(mask)};
}

}  // namespace

CpuMap parse_cpu_map(Cursor& in) {
  const std::uint16_t kind = in.u16();
  if (kind == kList) return parse_list(in);
  if (kind == kMask) return parse_mask(in);
  CpuRange range{.has_any = in.u8() != 0};
  in.u8();  // padding
  range.first = in.u16();
  range.last = in.u16();
  if (kind != kRange) in.fail();
  return {kind, 8, range};
}

std::vector<std::int64_t> cpus_in(const CpuMap& map) {
  std::vector<std::int64_t> cpus;
  if (const auto* const list = std::get_if<CpuList>(&map.cpus)) {
    cpus.assign(list->cpus.begin(), list->cpus.end());
  } else if (const auto* const mask = std::get_if<CpuMask>(&map.cpus)) {
    std::int64_t first = 0;
    for (const std::uint64_t word : mask->words) {
      for (unsigned bit = 0; bit < mask->word_size * 8U; ++bit)
        if ((word >> bit & 1) != 0) cpus.push_back(first + bit);
      first += std::int64_t{8} * mask->word_size;
    }
  } else {
    const CpuRange& range = std::get<CpuRange>(map.cpus);
    if (range.has_any) cpus.push_back(-1);
    for (std::int64_t cpu = range.first; cpu <= range.last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace tacho::format
