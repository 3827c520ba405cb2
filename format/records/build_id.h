// The identity of a binary: the bytes of its NT_GNU_BUILD_ID note.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "format/base/cursor.h"

namespace tacho::format {

struct BuildId {
  std::array<std::uint8_t, 20> bytes{};
  std::uint8_t size = 0;  // 0: none; at most 20: longer ids are truncated, as in the kernel

  bool empty() const { return size == 0; }
  std::string hex() const;  // lower case, 2 digits a byte
  static BuildId from_bytes(Bytes bytes);
  // An id in a field of 20 bytes without its size: ids have 8, 16 or 20 bytes, and the rest is zeros. Fewer
  // than 4 zeros at the end belong to the id.
  static BuildId from_padded(Bytes field);
  static std::optional<BuildId> from_hex(std::string_view hex);
  bool operator==(const BuildId&) const = default;
  auto operator<=>(const BuildId&) const = default;
};

// The build id in ELF notes ({u32 namesz, descsz, type; name; desc}, each padded to 4): of PT_NOTE segments,
// /sys/kernel/notes and /sys/module/*/notes.
std::optional<BuildId> build_id_in_notes(Bytes notes, std::endian order = std::endian::native);

// The build id of an ELF image (32 or 64 bit, either byte order), from its program headers or, if it has none
// (kernel modules), its section headers. `image` may be the start of a file, if the notes are in it.
std::optional<BuildId> build_id_in_elf(Bytes image);

}  // namespace tacho::format
