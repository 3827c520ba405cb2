// Header sections in a pipe that perf's own record for them cannot carry: those of more than 64 KiB, and
// those whose number perf does not know (its report refuses such a pipe). They travel in EVENT_UPDATE records
// of a kind of our own, which perf passes over (docs/capture-format.md, "Pipes").
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/byte_writer.h"
#include "format/record.h"
#include "format/result.h"

namespace tacho::format {

// The kind of an EVENT_UPDATE record that holds a piece: "TACHOSEC".
inline constexpr std::uint64_t kSectionPiece = 0x434553'4F48434154;

// Appends the records that hold `section` in pieces.
void write_section_pieces(ByteWriter& out, std::uint32_t feature, Bytes section);

// Puts sections together again.
class SectionPieces {
 public:
  struct Section {
    std::uint32_t feature = 0;
    std::vector<std::byte> bytes;
  };
  // Takes an EVENT_UPDATE record of kind kSectionPiece. Gives the section when this was its last piece; an
  // error when the piece is not the next one.
  Result<std::optional<Section>> take(const EventUpdateRecord& update, std::endian order);
  // A section has begun and not ended.
  bool is_open() const { return total_ != 0; }

 private:
  Section section_;
  std::uint64_t total_ = 0;  // bytes of the whole section; 0 when none has begun
};

}  // namespace tacho::format
