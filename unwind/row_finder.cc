#include "unwind/row_finder.h"

#include <algorithm>
#include <iterator>

namespace tacho::unwind {
namespace {

constexpr std::size_t kRbx = 3;  // DWARF's number
// Limit of a function's instructions in bytes, which are executed for each look-up: compilers write a few
// dozen.
constexpr std::size_t kMostProgramBytes = std::size_t{1} << 16;
constexpr std::size_t kMostSectionBytes = std::size_t{64} << 20;

constexpr RowFinder::Found found_kind(std::uint8_t kind) { return {{0, 0, 0, kind}, TACHO_UNWIND_RBP_SAME}; }

}  // namespace

Result<RowFinder> RowFinder::from_sframe(const ElfImage& image, const std::function<bool()>& stop) {
  const auto sframe = image.section(".sframe");
  if (!sframe || sframe->is_packed) return Error{"has no call frame information"};
  if (sframe->bytes.size() > kMostSectionBytes) return Error{"has too much call frame information"};
  auto table = row_table_of(image, {.stop = stop});
  if (!table) return std::move(table.error());
  RowFinder finder(std::move(*table));
  finder.code_ = image.code_segments();
  return finder;
}

Result<RowFinder> RowFinder::create(const ElfImage& image, const std::function<bool()>& stop) {
  if (image.order() != std::endian::little) return Error{"is for another machine"};
  auto frames = eh_frame_of(image);
  const CfiForm form = frames ? CfiForm::EhFrame : CfiForm::DebugFrame;
  if (!frames) frames = image.section(".debug_frame");
  if (!frames || frames->is_packed) return from_sframe(image, stop);
  if (frames->bytes.size() > kMostSectionBytes) return Error{"has too much call frame information"};
  RowFinder finder(std::move(*frames), form);
  if (form == CfiForm::EhFrame) finder.index_ = FdeIndex::of(image);
  if (finder.index_ && finder.index_->bytes() > kMostSectionBytes) return Error{"has too large an index"};
  finder.code_ = image.code_segments();
  finder.entry_ = image.entry();
  if (!finder.index_) {
    finder.ranges_ = list_fdes(finder.section(), stop);
    if (stop && stop()) return Error{"takes too long"};
  }
  const auto offset = finder.fde_offset(finder.entry_);
  const auto fde = offset ? parse_fde(finder.section(), *offset) : std::nullopt;
  if (fde && finder.entry_ < fde->end) finder.entry_ = 0;  // it has an FDE like other code
  return finder;
}

std::optional<std::uint64_t> RowFinder::fde_offset(std::uint64_t address) {
  if (index_) {
    const auto entry = index_->find(address);
    return entry ? std::optional(entry->fde_address - frames_.address)
                 : std::nullopt;  // parse_fde() checks it
  }
  const auto after = std::ranges::upper_bound(*ranges_, address, {}, &FdeRange::start);
  return after == ranges_->begin() ? std::nullopt : std::optional(std::prev(after)->offset);
}

RowFinder::Found RowFinder::evaluate(std::uint64_t address) {
  const auto offset = fde_offset(address);
  const auto fde = offset ? parse_fde(section(), *offset) : std::nullopt;
  if (!fde || address < fde->start || address >= fde->end) {
    const bool is_entry =
        entry_ != 0 && address >= entry_ && address - entry_ < kEntryBytes && !(fde && fde->start > entry_);
    return found_kind(is_entry ? TACHO_UNWIND_END : TACHO_UNWIND_NOTHING);
  }
  Found found = found_kind(TACHO_UNWIND_OTHER);
  if (fde->program.size() > kMostProgramBytes) return found;
  Fde up_to_it = *fde;
  up_to_it.end = address + 1;
  (void)walk_cfi(section(), up_to_it, [&](const CfiRow& rules) {
    if (address >= rules.start && address < rules.end)
      found = {compact_row(rules), compact_place(rules.rules[kRbx])};
  });
  return found;
}

std::size_t RowFinder::bytes() const {
  constexpr std::size_t kNode = 4 * sizeof(void*);  // overhead of a map's node
  return frames_.bytes.size() + (index_ ? index_->bytes() : 0) +
         (table_ ? table_->rows.capacity() * sizeof(Row) : 0) +
         (ranges_ ? ranges_->capacity() * sizeof(FdeRange) : 0) +
         known_.size() * (sizeof(decltype(known_)::value_type) + kNode);
}

RowFinder::Found RowFinder::row_at(std::uint64_t address) {
  if (table_) {
    const Row* const row = table_->find(address);
    return row == nullptr ? found_kind(TACHO_UNWIND_NOTHING)
                          : Found{{0, row->cfa, row->rbp, row->kind}, TACHO_UNWIND_RBP_SAME};
  }
  if (const auto known = known_.find(address); known != known_.end()) return known->second;
  if (known_.size() == kMostKnown) known_.clear();
  return known_.emplace(address, evaluate(address)).first->second;
}

RowFinder::Found RowFinder::row_at_offset(std::uint64_t offset) {
  const auto holds = [offset](const ElfImage::Code& code) {
    return offset >= code.offset && offset - code.offset < code.size;
  };
  const auto code = std::ranges::find_if(code_, holds);
  return code == code_.end() ? found_kind(TACHO_UNWIND_NOTHING)
                             : row_at(offset - code->offset + code->address);
}

}  // namespace tacho::unwind
