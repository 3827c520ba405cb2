#include "unwind/fde_index.h"

#include <algorithm>
#include <utility>

#include "format/base/cursor.h"
#include "unwind/cfi.h"

namespace tacho::unwind {
namespace {

constexpr std::uint8_t kPairs = 0x3b;  // DW_EH_PE_datarel | sdata4, the only sorted form
constexpr std::uint64_t kPairSize = 8;

}  // namespace

std::optional<ElfImage::Section> eh_frame_of(const ElfImage& image) {
  if (auto named = image.section(".eh_frame"); named && !named->is_packed) return named;
  const auto header = image.eh_frame_header_segment();
  if (!header) return std::nullopt;
  format::Cursor in(header->bytes, image.order());
  in.u8();  // version
  const std::uint8_t encoding = in.u8();
  in.u16();  // encodings of count and table
  const auto place = read_encoded(in, encoding, header->address + header->bytes.size(), header->address);
  return place ? image.loaded_from(*place) : std::nullopt;
}

std::optional<FdeIndex> FdeIndex::of(const ElfImage& image) {
  auto header = image.section(".eh_frame_hdr");
  if (!header) header = image.eh_frame_header_segment();
  if (!header || header->is_packed) return std::nullopt;
  FdeIndex index(std::move(*header), image.order());
  format::Cursor in(index.section_.bytes, index.order_);
  const std::uint64_t base = index.section_.address, end = base + index.section_.bytes.size();
  const std::uint8_t version = in.u8(), frame_encoding = in.u8(), count_encoding = in.u8(), pairs = in.u8();
  read_encoded(in, frame_encoding, end, base);
  const auto count = read_encoded(in, count_encoding, end, base);
  if (version != 1 || pairs != kPairs || !count || *count == 0 || in.failed()) return std::nullopt;
  index.first_ = index.section_.bytes.size() - in.left();
  index.count_ = std::min<std::uint64_t>(*count, in.left() / kPairSize);
  // lld sorts entries as unsigned numbers, so that addresses below the table come last.
  for (std::uint64_t i = 1; i < index.count_; ++i)
    if (index.number((i - 1) * kPairSize) > index.number(i * kPairSize)) return std::nullopt;
  return index;
}

std::int64_t FdeIndex::number(std::uint64_t at) const {
  format::Cursor in(format::Bytes(section_.bytes).subspan(static_cast<std::size_t>(first_ + at)), order_);
  return static_cast<std::int32_t>(in.u32());
}

std::optional<FdeIndex::Entry> FdeIndex::find_entry(std::uint64_t pc) const {
  const auto wanted = static_cast<std::int64_t>(pc - section_.address);
  std::uint64_t low = 0, high = count_;  // the last pair that does not start after `pc`
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (wanted < number(middle * kPairSize)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low == 0) return std::nullopt;
  return Entry{static_cast<std::uint32_t>(low - 1), fde_address(static_cast<std::size_t>(low - 1))};
}

std::uint64_t FdeIndex::fde_address(std::size_t number) const {
  return section_.address + static_cast<std::uint64_t>(this->number(number * kPairSize + 4));
}

}  // namespace tacho::unwind
