#include "format/header_strings.h"

namespace tacho::format {

std::string header_string(Cursor& in) { return std::string(in.text(in.u32())); }

std::uint32_t checked_count(Cursor& in, std::uint64_t count, std::size_t entry_size) {
  if (count > in.left() / entry_size) {
    in.fail();
    return 0;
  }
  return static_cast<std::uint32_t>(count);
}

std::vector<std::string> string_list(Cursor& in) {
  std::vector<std::string> list;
  const std::uint32_t count = checked_count(in, in.u32(), sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count; ++i) list.push_back(header_string(in));
  return list;
}

void write_list(ByteWriter& out, const std::vector<std::string>& list) {
  out.u32(static_cast<std::uint32_t>(list.size()));
  for (const std::string& text : list) out.header_string(text);
}

StringPairs string_pairs(Cursor& in) {
  StringPairs pairs;
  const std::uint32_t count = checked_count(in, in.u32(), 2 * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string first = header_string(in);
    pairs.emplace_back(std::move(first), header_string(in));
  }
  return pairs;
}

void write_pairs(ByteWriter& out, const StringPairs& pairs) {
  out.u32(static_cast<std::uint32_t>(pairs.size()));
  for (const auto& [first, second] : pairs) out.header_string(first).header_string(second);
}

}  // namespace tacho::format
