#include "format/section_pieces.h"

#include <algorithm>
#include <utility>

#include "format/perf_abi.h"

namespace tacho::format {

namespace {

constexpr std::size_t kPiece = 65024;  // bytes of a section in one record, whose size field is 16 bits wide
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

}  // namespace

// u64 kind, u64 id 0 (perf takes it for the first event's), then u32 feature, u32 0, u64 size of the section,
// u64 offset of the piece in it, bytes, zeros up to a multiple of 8.
void write_section_pieces(ByteWriter& out, std::uint32_t feature, Bytes section) {
  std::size_t offset = 0;
  do {
    const Bytes piece = section.subspan(offset, std::min(kPiece, section.size() - offset));
    const std::size_t start = out.size();
    out.u32(abi::kRecordEventUpdate).u16(0).u16(0).u64(kSectionPiece).u64(0);
    out.u32(feature).u32(0).u64(section.size()).u64(offset).bytes(piece);
    out.zeros((8 - piece.size() % 8) % 8);
    out.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(out.size() - start));
    offset += piece.size();
  } while (offset < section.size());
}

Result<std::optional<SectionPieces::Section>> SectionPieces::take(const EventUpdateRecord& update,
                                                                  std::endian order) {
  Cursor in(update.data, order);
  const std::uint32_t feature = in.u32();
  in.u32();
  const std::uint64_t total = in.u64();
  const std::uint64_t offset = in.u64();
  if (in.failed() || total > kMostBytes || offset > total) return Error{"a piece of a section is cut short"};
  if (offset == 0) {
    section_ = {feature, {}};
    total_ = total;
  } else if (feature != section_.feature || total != total_ || offset != section_.bytes.size()) {
    total_ = 0;
    return Error{"a piece of section " + std::to_string(feature) + " is missing before byte " +
                 std::to_string(offset)};
  }
  const Bytes piece = in.take(std::min<std::uint64_t>(in.left(), total - offset));
  section_.bytes.insert(section_.bytes.end(), piece.begin(), piece.end());
  if (section_.bytes.size() < total) return std::optional<Section>();
  total_ = 0;
  return std::optional(std::exchange(section_, {}));
}

}  // namespace tacho::format
