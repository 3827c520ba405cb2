// Converts records and feature sections to the other byte order. Parsers log the numbers (FieldLog); other
// bytes (texts, payloads, stacks) are unchanged.
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

// Appends the record in the other byte order, without its payload. False, and nothing is appended: its fields
// are unknown, or it is too short. `attr`: of the record's event.
bool swap_record(const RecordView& record, const EventAttr& attr, ByteWriter& out);

}  // namespace tacho::format
