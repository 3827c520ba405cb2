// Feature sections of a perf.data file: finds them in a file, reassembles them from a pipe, and lets each
// count once.
//
// In a file they are found by perf's table behind the data, by tacho's early table in front of it
// (file_head.h) when the recorder was killed, or by perf's table at the place it moved to when bytes of the
// data are missing.
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

// Reads the tables of the file `fd`, whose start is `head` and which has `file_size` bytes; what is wrong
// with them goes to `diagnostics`.
FeatureTable find_feature_sections(int fd, const FileHead& head, std::uint64_t file_size,
                                   Diagnostics& diagnostics);

// Feature sections without a body: their presence is the information.
inline bool is_flag(std::uint64_t feature) {
  return feature == abi::kFeatureBranchStack || feature == abi::kFeatureStat;
}

// Header sections in a pipe that perf's own record for them cannot carry: those of more than 64 KiB, and
// those whose number perf does not know (its report refuses such a pipe). They travel in EVENT_UPDATE records
// of a kind that only tacho knows, which perf skips (docs/capture-format.md, "Pipes").
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
  // Takes an EVENT_UPDATE record of kind kSectionPiece. Gives the section when this was its last piece; an
  // error when the piece is not the next one.
  Result<std::optional<Section>> take(const EventUpdateRecord& update, std::endian order);
  // The last piece of a section is still missing.
  bool is_open() const { return total_ != 0; }

 private:
  Section section_;
  std::uint64_t total_ = 0;  // bytes of the whole section; 0 when none has begun
};

// The feature sections that a pipe brought so far: each counts once.
//
// A pipe may bring a section twice. The first one stays, since samples were shown by it. Of EVENT_DESC,
// ATTACHED_PROGRAMS and USER_STACKS, which recorders write again when there is more to say, the last one
// counts.
class SeenFeatures {
 public:
  // Whether the section at `offset` is to be left out, since one of its feature came before; an entry in
  // `diagnostics` says so when they differ.
  bool leaves_out(std::uint32_t feature, Bytes bytes, std::uint64_t offset, Diagnostics& diagnostics) const;
  void add(std::uint32_t feature, Bytes bytes);

 private:
  // By feature, a number below kFeatureCount. A collision costs a message, nothing else.
  std::unordered_map<std::uint32_t, std::size_t> digests_;
};

}  // namespace tacho::format
