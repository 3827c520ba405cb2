// One record of a capture as bytes, with its header taken apart; what it means is parsed by record.h and
// sample.h.
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
  Bytes payload;           // what follows TRACING_DATA; empty for others
  // Bytes that follow TRACING_DATA and AUXTRACE. A trace may be larger than memory:
  // CaptureReader::next_payload() gives it in pieces.
  std::uint64_t payload_size = 0;
  std::uint64_t offset = 0;  // file offset in bytes; of the enclosing COMPRESSED record when it was in one
  std::endian order = std::endian::native;

  Cursor body(FieldLog* log = nullptr) const { return Cursor(bytes.subspan(kRecordHeaderSize), order, log); }
};

// `bytes` as a record: its header taken apart.
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
