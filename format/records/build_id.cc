#include "format/records/build_id.h"

#include <algorithm>
#include <charconv>

namespace tacho::format {

namespace {

constexpr std::uint32_t kNoteGnuBuildId = 3;
constexpr std::uint32_t kSegmentNote = 4;  // PT_NOTE
constexpr std::uint32_t kSectionNote = 7;  // SHT_NOTE
constexpr std::size_t kMaxHeaders = 4096;  // program or section headers looked at

}  // namespace

std::string BuildId::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * std::size_t{size});
  for (std::size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

BuildId BuildId::from_bytes(Bytes from) {
  BuildId id;
  id.size = static_cast<std::uint8_t>(std::min(from.size(), id.bytes.size()));
  for (std::size_t i = 0; i < id.size; ++i) id.bytes[i] = static_cast<std::uint8_t>(from[i]);
  return id;
}

BuildId BuildId::from_padded(Bytes field) {
  constexpr std::size_t kUnit = 4;  // no linker's ids have another number of bytes than a multiple of this
  std::size_t size = std::min(field.size(), BuildId{}.bytes.size());
  while (size > 0 && field[size - 1] == std::byte{0}) --size;
  return from_bytes(field.first(std::min((size + kUnit - 1) / kUnit * kUnit, field.size())));
}

std::optional<BuildId> BuildId::from_hex(std::string_view hex) {
  BuildId id;
  if (hex.empty() || hex.size() % 2 != 0 || hex.size() > 2 * id.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    std::uint8_t byte = 0;
    const auto [end, failed] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (failed != std::errc{} || end != hex.data() + i + 2) return std::nullopt;
    id.bytes[id.size++] = byte;
  }
  return id;
}

std::optional<BuildId> build_id_in_notes(Bytes notes, std::endian order) {
  Cursor in(notes, order);
  const auto padded = [](std::uint32_t size) { return (std::uint64_t{size} + 3) / 4 * 4; };
  while (in.left() >= 12) {
    const std::uint32_t name_size = in.u32();
    const std::uint32_t description_size = in.u32();
    const std::uint32_t type = in.u32();
    const std::string_view name = in.text(padded(name_size));
    // The last note's padding may be missing.
    const Bytes description = in.take(std::min<std::uint64_t>(padded(description_size), in.left()));
    if (in.failed() || description.size() < description_size) return std::nullopt;
    if (type == kNoteGnuBuildId && name == "GNU" && description_size > 0)
      return BuildId::from_bytes(description.first(description_size));
  }
  return std::nullopt;
}

namespace {

struct ElfLayout {
  bool is_64 = true;
  std::endian order = std::endian::native;
};

struct NoteArea {
  std::uint64_t offset = 0, size = 0;
};

// One program or section header, as far as notes need it.
std::optional<NoteArea> note_segment(Cursor in, const ElfLayout& elf) {
  if (in.u32() != kSegmentNote) return std::nullopt;
  NoteArea area;
  if (elf.is_64) {
    in.skip(4);  // flags
    area.offset = in.u64();
    in.skip(16);  // addresses
    area.size = in.u64();
  } else {
    area.offset = in.u32();
    in.skip(8);
    area.size = in.u32();
  }
  return in.failed() ? std::nullopt : std::optional(area);
}

std::optional<NoteArea> note_section(Cursor in, const ElfLayout& elf) {
  in.skip(4);  // name
  if (in.u32() != kSectionNote) return std::nullopt;
  NoteArea area;
  if (elf.is_64) {
    in.skip(16);  // flags, address
    area.offset = in.u64();
    area.size = in.u64();
  } else {
    in.skip(8);
    area.offset = in.u32();
    area.size = in.u32();
  }
  return in.failed() ? std::nullopt : std::optional(area);
}

using ReadHeader = std::optional<NoteArea> (*)(Cursor, const ElfLayout&);

std::optional<BuildId> search_headers(Bytes image, const ElfLayout& elf, std::uint64_t table,
                                      std::size_t entry_size, std::size_t count, ReadHeader read) {
  if (entry_size == 0 || table > image.size()) return std::nullopt;
  Cursor headers(image.subspan(static_cast<std::size_t>(table)));
  for (std::size_t i = 0; i < std::min(count, kMaxHeaders) && headers.left() >= entry_size; ++i) {
    const auto area = read(Cursor(headers.take(entry_size), elf.order), elf);
    if (!area || area->offset > image.size() || area->size > image.size() - area->offset) continue;
    const Bytes notes =
        image.subspan(static_cast<std::size_t>(area->offset), static_cast<std::size_t>(area->size));
    if (const auto id = build_id_in_notes(notes, elf.order)) return id;
  }
  return std::nullopt;
}

}  // namespace

std::optional<BuildId> build_id_in_elf(Bytes image) {
  Cursor ident(image);
  if (ident.u32() != 0x464C457F && Cursor::swapped(Cursor(image).u32()) != 0x464C457F) return std::nullopt;
  ElfLayout elf;
  elf.is_64 = ident.u8() == 2;
  elf.order = ident.u8() == 2 ? std::endian::big : std::endian::little;
  if (image.size() < 16) return std::nullopt;
  Cursor in(image.subspan(16), elf.order);
  in.skip(8);  // type, machine, version
  const auto word = [&] { return elf.is_64 ? in.u64() : in.u32(); };
  word();  // entry
  const std::uint64_t segments = word();
  const std::uint64_t sections = word();
  in.skip(6);  // flags, header size
  const std::uint16_t segment_size = in.u16();
  const std::uint16_t segment_count = in.u16();
  const std::uint16_t section_size = in.u16();
  const std::uint16_t section_count = in.u16();
  if (in.failed()) return std::nullopt;
  if (const auto id = search_headers(image, elf, segments, segment_size, segment_count, note_segment))
    return id;
  return search_headers(image, elf, sections, section_size, section_count, note_section);
}

}  // namespace tacho::format
