// Records and header sections in the other byte order. The parsers say where the numbers are (FieldLog); the
// bytes between them (texts, payloads, stacks) stay as they are.
#pragma once

#include <bit>
#include <cstddef>
#include <span>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/records/event_attr.h"
#include "format/records/record_view.h"

namespace tacho::format {

// Swaps the logged fields in `copy`, a copy of `original`, which is in byte order `from`.
void swap_fields(std::span<std::byte> copy, Bytes original, const FieldLog& log, std::endian from);

// Appends the record in the byte order it does not have, without its payload. False, and nothing is appended,
// when its fields are not known or are not all there. `attr` is the record's event.
bool swap_record(const RecordView& record, const EventAttr& attr, ByteWriter& out);

}  // namespace tacho::format
