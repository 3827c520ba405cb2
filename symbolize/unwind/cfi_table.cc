#include "symbolize/unwind/cfi_table.h"

#include <algorithm>
#include <utility>

#include "symbolize/files/packed_section.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint8_t kPairs = 0x3b;  // data-relative, 32 bits signed: the only table that can be searched
constexpr std::uint64_t kPairSize = 8;

// .debug_frame under either of its names, unpacked.
std::optional<ElfImage::Section> debug_frame_of(const ElfImage& image) {
  const std::uint64_t limit = most_unpacked(image.file_size());
  auto frames = image.section(".debug_frame");
  if (frames && !frames->is_packed) return frames;
  const auto packed = frames ? std::move(frames) : image.section(".zdebug_frame");
  if (!packed) return std::nullopt;
  auto unpacked = packed->is_packed ? unpack_marked_section(packed->bytes, image.order(), limit)
                                    : unpack_named_section(packed->bytes, limit);
  if (!unpacked) return std::nullopt;
  return ElfImage::Section{packed->address, std::move(*unpacked), false};
}

}  // namespace

CfiTable::CfiTable(ElfImage::Section section, CfiForm form, std::endian order)
    : section_(std::move(section)), form_(form), order_(order) {}

std::optional<CfiTable> CfiTable::from_eh_frame(const ElfImage& image) {
  auto header = image.section(".eh_frame_hdr");
  auto frames = image.section(".eh_frame");
  if (!header && !frames) header = image.eh_frame_header_segment();
  if (header && !frames) {
    format::Cursor in(header->bytes, image.order());
    in.u8();  // version
    const std::uint8_t encoding = in.u8();
    in.u16();  // encodings of count and table
    const auto place = unwind::read_encoded(in, encoding, header->address + header->bytes.size(), header->address);
    if (place) frames = image.loaded_from(*place);
  }
  if (!frames || frames->is_packed) return std::nullopt;
  CfiTable table(std::move(*frames), CfiForm::EhFrame, image.order());
  if (header) table.search_ = read_search_table(std::move(*header), image.order());
  return table;
}

std::optional<CfiTable> CfiTable::from_debug_frame(const ElfImage& image) {
  auto frames = debug_frame_of(image);
  if (!frames) return std::nullopt;
  return CfiTable(std::move(*frames), CfiForm::DebugFrame, image.order());
}

std::optional<CfiTable::SearchTable> CfiTable::read_search_table(ElfImage::Section header,
                                                                 std::endian order) {
  format::Cursor in(header.bytes, order);
  const std::uint64_t end = header.address + header.bytes.size();
  const std::uint8_t version = in.u8(), frame_encoding = in.u8(), count_encoding = in.u8(), pairs = in.u8();
  unwind::read_encoded(in, frame_encoding, end, header.address);
  const auto count = unwind::read_encoded(in, count_encoding, end, header.address);
  if (version != 1 || pairs != kPairs || !count || *count == 0 || in.failed()) return std::nullopt;
  SearchTable table;
  table.first = header.bytes.size() - in.left();
  table.count = std::min<std::uint64_t>(*count, in.left() / kPairSize);
  table.section = std::move(header);
  return table;
}

std::optional<std::uint64_t> CfiTable::fde_offset_by_search_table(std::uint64_t pc) const {
  const format::Bytes pairs =
      format::Bytes(search_->section.bytes).subspan(static_cast<std::size_t>(search_->first));
  const std::uint64_t base = search_->section.address;
  const auto number = [&](std::uint64_t at) {
    format::Cursor in(pairs.subspan(static_cast<std::size_t>(at)), order_);
    return std::int64_t{static_cast<std::int32_t>(in.u32())};
  };
  const auto wanted = static_cast<std::int64_t>(pc - base);
  std::uint64_t low = 0, high = search_->count;  // the last pair that does not start behind `pc`
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (wanted < number(middle * kPairSize)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low == 0) return std::nullopt;
  const std::uint64_t place = base + static_cast<std::uint64_t>(number((low - 1) * kPairSize + 4));
  return place - section_.address;  // parse_fde checks it
}

std::optional<std::uint64_t> CfiTable::fde_offset(std::uint64_t pc) {
  if (search_) return fde_offset_by_search_table(pc);
  if (!index_) index_ = unwind::list_fdes(view());
  const auto after = std::ranges::upper_bound(*index_, pc, {}, &FdeRange::start);
  if (after == index_->begin()) return std::nullopt;
  return std::prev(after)->offset;
}

CfiTable::Found CfiTable::evaluate(std::uint64_t pc) {
  const auto offset = fde_offset(pc);
  if (!offset) return {};
  const CfiSection section = view();
  const auto fde = unwind::parse_fde(section, *offset);
  if (!fde) return {nullptr, true};
  if (pc < fde->start || pc >= fde->end) return {};
  auto row = unwind::evaluate_cfi(section, *fde, pc);
  if (!row) return {nullptr, true};
  rows_.push_back(std::make_unique<UnwindRow>(std::move(*row)));
  return {rows_.back().get(), false};
}

CfiTable::Found CfiTable::find(std::uint64_t pc) {
  if (const auto known = known_.find(pc); known != known_.end()) return known->second;
  return known_.emplace(pc, evaluate(pc)).first->second;
}

}  // namespace tacho::symbolize
