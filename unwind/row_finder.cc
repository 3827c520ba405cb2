#include "unwind/row_finder.h"

#include <algorithm>
#include <iterator>

#include "unwind/packed_section.h"

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
  RowFinder finder;
  finder.table_ = std::move(*table);
  finder.code_ = image.code_segments();
  return finder;
}

Result<> RowFinder::add_frames(Frames frames, const std::function<bool()>& stop) {
  if (frames.section.bytes.size() > kMostSectionBytes) return Error{"has too much call frame information"};
  if (frames.index && frames.index->bytes() > kMostSectionBytes) return Error{"has too large an index"};
  if (!frames.index) {
    frames.ranges = list_fdes(frames.view(), stop);
    if (stop && stop()) return Error{"takes too long"};
  }
  frames_.push_back(std::move(frames));
  return Done{};
}

Result<RowFinder> RowFinder::create(const ElfImage& image, const std::function<bool()>& stop,
                                    const ElfImage* debug) {
  const auto machine = machine_of(image);
  if (!machine) return Error{"is for another machine"};
  RowFinder finder;
  if (auto frames = eh_frame_of(image); frames && !frames->bytes.empty()) {
    auto added =
        finder.add_frames({std::move(*frames), CfiForm::EhFrame, FdeIndex::of(image), *machine}, stop);
    if (!added) return std::move(added.error());
  }
  for (const ElfImage* const file : {&image, debug}) {
    if (file == nullptr || file->order() != image.order()) continue;
    auto frames = debug_frame_of(*file);
    if (!frames) continue;
    // .eh_frame stays usable without it.
    auto added = finder.add_frames({std::move(*frames), CfiForm::DebugFrame, {}, *machine}, stop);
    if (!added && finder.frames_.empty()) return std::move(added.error());
  }
  const auto has_functions = [](const Frames& frames) { return frames.index || !frames.ranges.empty(); };
  if (std::ranges::none_of(finder.frames_, has_functions)) return from_sframe(image, stop);
  finder.code_ = image.code_segments();
  finder.entry_ = image.entry();
  const bool has_fde = std::ranges::any_of(finder.frames_, [&](const Frames& frames) {
    const auto fde = frames.fde_at(finder.entry_);
    return fde && finder.entry_ < fde->end;
  });
  if (has_fde) finder.entry_ = 0;  // it has an FDE like other code
  return finder;
}

std::optional<Fde> RowFinder::Frames::fde_at(std::uint64_t address) const {
  if (index) {
    const auto entry = index->find_entry(address);
    return entry ? parse_fde(view(), entry->fde_address - section.address) : std::nullopt;
  }
  const auto after = std::ranges::upper_bound(ranges, address, {}, &FdeRange::start);
  return after == ranges.begin() ? std::nullopt : parse_fde(view(), std::prev(after)->offset);
}

RowFinder::Found RowFinder::evaluate(std::uint64_t address) {
  bool is_behind_function = false;  // a function begins between the entry point and the address
  for (const Frames& frames : frames_) {
    const auto fde = frames.fde_at(address);
    is_behind_function = is_behind_function || (fde && fde->start > entry_);
    if (!fde || address < fde->start || address >= fde->end) continue;
    Found found = found_kind(TACHO_UNWIND_OTHER);
    if (fde->program.size() > kMostProgramBytes) return found;
    Fde up_to_it = *fde;
    up_to_it.end = address + 1;
    (void)walk_cfi(frames.view(), up_to_it, [&](const CfiRow& rules) {
      if (address >= rules.start && address < rules.end)
        found = {compact_row(rules, frames.machine), compact_place(rules.rules[kRbx])};
    });
    return found;
  }
  const bool is_entry =
      entry_ != 0 && address >= entry_ && address - entry_ < kEntryBytes && !is_behind_function;
  return found_kind(is_entry ? TACHO_UNWIND_END : TACHO_UNWIND_NOTHING);
}

std::size_t RowFinder::Frames::bytes() const {
  return section.bytes.size() + (index ? index->bytes() : 0) + ranges.capacity() * sizeof(FdeRange);
}

std::size_t RowFinder::bytes() const {
  constexpr std::size_t kNode = 4 * sizeof(void*);  // overhead of a map's node
  std::size_t bytes = known_.size() * (sizeof(decltype(known_)::value_type) + kNode);
  for (const Frames& frames : frames_) bytes += frames.bytes();
  return bytes + (table_ ? table_->rows.capacity() * sizeof(Row) : 0);
}

RowFinder::Found RowFinder::row_at(std::uint64_t address) {
  if (table_) {
    const Row* const row = table_->find_row(address);
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
