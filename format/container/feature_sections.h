// Feature sections of a perf.data file: finds them in a file, reassembles them from a pipe, and finds
// duplicates.
//
// In a file they are found by perf's table after the data; if the recorder was killed, by tacho's early table
// before the data (file_head.h); if bytes of the data are missing, by perf's table at its shifted position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/file_head.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"

namespace tacho::format {

struct FeatureTable {
  std::vector<FeatureSection> sections;  // each inside the file
  bool is_closed = true;                 // the recorder finished the file
  std::uint64_t missing = 0;             // bytes of the data that the file does not have
};

// Reads the tables of the file `fd` with the header `head` and `file_size` bytes, and reports damage to
// `diagnostics`.
FeatureTable find_feature_sections(int fd, const FileHead& head, std::uint64_t file_size,
                                   Diagnostics& diagnostics);

// Feature sections without a body: their presence is the information.
inline bool is_flag(std::uint64_t feature) {
  return feature == abi::kFeatureBranchStack || feature == abi::kFeatureStat;
}

// Feature sections in a pipe that HEADER_FEATURE records cannot hold: those of more than 64 KiB, and those
// whose number perf does not know (perf report refuses such a pipe). They are written in pieces, as
// EVENT_UPDATE records of a kind that perf skips (docs/capture-format.md, "Pipes").
//
// The kind of an EVENT_UPDATE record that holds a piece: "TACHOSEC".
inline constexpr std::uint64_t kSectionPiece = 0x434553'4F48434154;

// Appends the records that hold `section` in pieces.
void write_section_pieces(ByteWriter& out, std::uint32_t feature, Bytes section);

// Reassembles sections from their pieces.
class SectionPieces {
 public:
  struct Section {
    std::uint32_t feature = 0;
    std::vector<std::byte> bytes;
  };
  // Adds an EVENT_UPDATE record of kind kSectionPiece. Returns the section after its last piece, an error if
  // the piece is not the next one.
  Result<std::optional<Section>> add_piece(const EventUpdateRecord& update, std::endian order);
  // Whether a section is incomplete.
  bool is_open() const { return total_ != 0; }

 private:
  Section section_;
  std::uint64_t total_ = 0;  // bytes of the whole section; 0: no section is open
};

// The feature sections read from a pipe so far, to find duplicates.
//
// The first section of a feature is used, since samples were shown by it. Of EVENT_DESC, ATTACHED_PROGRAMS
// and USER_STACKS the last one is used: recorders write them again with more in them.
class SeenFeatures {
 public:
  // Whether to ignore the section at `offset`, since its feature was seen before. If the two differ, an entry
  // in `diagnostics` says so.
  bool is_duplicate(std::uint32_t feature, Bytes bytes, std::uint64_t offset, Diagnostics& diagnostics) const;
  void add_section(std::uint32_t feature, Bytes bytes);

 private:
  // Digests by feature, a number below kFeatureCount. A collision only suppresses a message.
  std::unordered_map<std::uint32_t, std::size_t> digests_;
};

}  // namespace tacho::format
