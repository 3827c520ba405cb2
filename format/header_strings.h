// Strings and lists as header sections hold them: u32 length, then that many bytes of text padded with NULs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/byte_writer.h"
#include "format/cursor.h"

namespace tacho::format {

using StringPairs = std::vector<std::pair<std::string, std::string>>;

std::string header_string(Cursor& in);
std::vector<std::string> string_list(Cursor& in);
StringPairs string_pairs(Cursor& in);
void write_list(ByteWriter& out, const std::vector<std::string>& list);
void write_pairs(ByteWriter& out, const StringPairs& pairs);

// `count` when that many entries of at least `entry_size` bytes can be in what is left; else the cursor
// fails.
std::uint32_t checked_count(Cursor& in, std::uint64_t count, std::size_t entry_size);

}  // namespace tacho::format
