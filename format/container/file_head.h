// The fixed parts of a capture file: the header at its start, the table of sections after its data, and
// tacho's copy of that table in front of the data, from which the file of a killed recorder is read
// (docs/capture-format.md).
#pragma once

#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/records/perf_abi.h"

namespace tacho::format {

struct FileSection {
  std::uint64_t offset = 0, size = 0;  // bytes
  bool operator==(const FileSection&) const = default;
};

struct FileHead {
  static constexpr std::size_t kSize = 104;
  static constexpr std::size_t kSizeWithoutFeatures = 72;  // before perf added the feature bitmap
  static constexpr std::size_t kPipeSize = 16;
  static constexpr std::uint64_t kIdsEntrySize = 16;  // {offset, size} of an event's ids, after its attr

  std::endian order = std::endian::native;
  bool is_pipe = false;
  std::uint64_t attr_size = 0;  // of one entry of the attr table: attr and kIdsEntrySize
  FileSection attrs, data;
  FileSection event_types;  // names of tracepoints, up to Linux 3.9; empty since
  std::bitset<abi::kFeatureCount> features;
};

// `start`: the first kSize bytes, or as many as the file has. With the magic PERFFILE (until 2012), which is
// the same in both byte orders, the size of the header tells the order. The error names the format of a file
// that is not a capture.
Result<FileHead> parse_file_head(Bytes start);
// Whether the magic is perf's, in any version and byte order.
bool is_capture_magic(std::uint64_t magic);
// Whether the file at `path` begins with such a magic; false if it cannot be read.
bool is_capture_file(const std::string& path);
void write_file_head(ByteWriter& out, const FileHead& head);

struct FeatureSection {
  std::uint32_t feature = 0;
  FileSection place;
};

// tacho's table in front of the data. It ends with a trailer right before data.offset:
//   u64 offset of the table, u32 entries, u32 state (0 open, 1 closed), u64 0, "TACHOHD1"
// and the table is, for each entry, u64 feature, u64 offset, u64 size. tacho's sections (from
// abi::kFirstOwnFeature on) are listed here and not in the table after the data: perf 6.1's inject crashes
// on feature bits that it does not know. Entries of size 0 are reserved for sections that are written late.
struct EarlyTable {
  static constexpr std::size_t kTrailerSize = 32;
  static constexpr std::size_t kEntrySize = 24;
  static constexpr std::size_t kStateOffset = 12;  // of the state word, in the trailer

  std::uint64_t offset = 0;
  std::uint32_t entries = 0;
  bool is_closed = false;
};
// `trailer`: the kTrailerSize bytes before data.offset. Nothing when another program wrote the file.
std::optional<EarlyTable> parse_early_trailer(Bytes trailer, std::endian order);
std::vector<FeatureSection> parse_early_entries(Bytes entries, std::endian order);
void write_early_table(ByteWriter& out, const std::vector<FeatureSection>& sections,
                       std::uint64_t table_offset);

}  // namespace tacho::format
