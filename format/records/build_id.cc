#include "format/records/build_id.h"

#include <elf.h>

#include <algorithm>
#include <charconv>

#include "format/base/elf.h"

namespace tacho::format {

std::string BuildId::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  return text;
}

BuildId BuildId::from_bytes(Bytes from) {
  BuildId id;
  id.size = static_cast<std::uint8_t>(std::min(from.size(), id.bytes.size()));
  for (std::size_t i = 0; i < id.size; ++i) id.bytes[i] = static_cast<std::uint8_t>(from[i]);
  return id;
}

BuildId BuildId::from_padded(Bytes field) {
  constexpr std::size_t kUnit = 4;  // sizes of build ids are multiples of this
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
    const Bytes description = in.take_bytes(std::min<std::uint64_t>(padded(description_size), in.left()));
    if (in.failed() || description.size() < description_size) return std::nullopt;
    if (type == NT_GNU_BUILD_ID && name == "GNU" && description_size > 0)
      return BuildId::from_bytes(description.first(description_size));
  }
  return std::nullopt;
}

std::optional<BuildId> build_id_in_elf(Bytes image) {
  const auto elf = ElfView::parse(image);
  if (!elf) return std::nullopt;
  for (const ElfSegment& segment : elf->segments())
    if (segment.type == PT_NOTE)
      if (const auto id = build_id_in_notes(elf->content(segment), elf->header().order)) return id;
  for (const ElfSection& section : elf->sections())
    if (section.type == SHT_NOTE)
      if (const auto id = build_id_in_notes(elf->content(section), elf->header().order)) return id;
  return std::nullopt;
}

}  // namespace tacho::format
