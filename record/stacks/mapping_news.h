// What the kernel's records say of processes and of the code that they map.
#pragma once

#include <cstdint>
#include <vector>

#include "format/cursor.h"
#include "format/event_attr.h"
#include "record/stacks/file_table.h"

namespace tacho::record {

// What a record says of a process.
struct MappingNews {
  std::uint64_t time = 0;
  enum class Kind : std::uint8_t { Map, Fork, Exec, Exit } kind = Kind::Map;
  std::uint32_t process = 0, parent = 0;
  std::uint64_t start = 0, end = 0, offset = 0;
  MappedFile file;
};

// Appends what whole records of this event tell, in their order. Bytes that are no records end it.
void note_news(format::Bytes records, const format::EventAttr& attr, std::vector<MappingNews>& news);

}  // namespace tacho::record
