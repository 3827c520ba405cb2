#include "symbolize/unwind/cfi_table.h"

#include <algorithm>
#include <utility>

#include "symbolize/files/packed_section.h"

namespace tacho::symbolize {
namespace {

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

CfiTable::CfiTable(ElfImage::Section section, CfiForm form, const ElfImage& image)
    : section_(std::move(section)), form_(form), order_(image.order()), address_size_(image.address_size()) {}

std::optional<CfiTable> CfiTable::from_eh_frame(const ElfImage& image) {
  auto frames = unwind::eh_frame_of(image);
  if (!frames) return std::nullopt;
  CfiTable table(std::move(*frames), CfiForm::EhFrame, image);
  table.index_by_address_ = unwind::FdeIndex::of(image);
  return table;
}

std::optional<CfiTable> CfiTable::from_debug_frame(const ElfImage& image) {
  auto frames = debug_frame_of(image);
  if (!frames) return std::nullopt;
  return CfiTable(std::move(*frames), CfiForm::DebugFrame, image);
}

std::optional<std::uint64_t> CfiTable::fde_offset(std::uint64_t pc) {
  if (index_by_address_) {
    const auto place = index_by_address_->fde_address(pc);
    return place ? std::optional(*place - section_.address) : std::nullopt;  // parse_fde checks it
  }
  if (!index_) index_ = unwind::list_fdes(view());
  const auto after = std::ranges::upper_bound(*index_, pc, {}, &FdeRange::start);
  if (after == index_->begin()) return std::nullopt;
  return std::prev(after)->offset;
}

CfiTable::Found CfiTable::find(std::uint64_t pc) {
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

}  // namespace tacho::symbolize
