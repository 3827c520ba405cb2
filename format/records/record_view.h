// The bytes of one record, with its parsed header; record.h and sample.h parse the body.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "format/base/cursor.h"

namespace tacho::format {

inline constexpr std::size_t kRecordHeaderSize = 8;  // u32 type, u16 misc, u16 size

struct RecordView {
  std::uint32_t type = 0;  // abi::RecordType
  std::uint16_t misc = 0;  // abi::Misc
  Bytes bytes;             // the whole record, header included
  Bytes payload;           // the bytes after TRACING_DATA; empty for others
  // Bytes after TRACING_DATA and AUXTRACE. A trace may be larger than memory: CaptureReader::next_payload()
  // returns it in pieces.
  std::uint64_t payload_size = 0;
  std::uint64_t offset = 0;  // file offset in bytes; of an inflated record: of its COMPRESSED record
  std::endian order = std::endian::native;

  Cursor body(FieldLog* log = nullptr) const { return Cursor(bytes.subspan(kRecordHeaderSize), order, log); }
};

// Parses the header of `bytes`, a whole record.
inline RecordView whole_record(Bytes bytes, std::endian order) {
  Cursor in(bytes, order);
  RecordView record;
  record.type = in.u32();
  record.misc = in.u16();
  record.bytes = bytes;
  record.order = order;
  return record;
}

}  // namespace tacho::format
