// Tracepoint descriptions carried in a capture (header feature 1): the format files of tracefs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/byte_writer.h"
#include "format/cursor.h"
#include "format/result.h"

namespace tacho::format {

struct TracepointFormat {
  std::string system;
  std::string text;  // the format file, byte for byte
};

struct TracingData {
  bool is_big_endian = false;
  std::uint8_t long_size = 8;   // bytes
  std::uint32_t page_size = 0;  // bytes
  std::string header_page, header_event;
  std::vector<std::string> ftrace_formats;
  std::vector<TracepointFormat> formats;
  std::string printk_formats;
  std::string saved_cmdlines;

  bool empty() const { return formats.empty() && ftrace_formats.empty(); }
};

// The number after "ID:" in a format file: what EventAttr::config has.
std::optional<std::uint64_t> tracepoint_id(std::string_view format_text);

Result<TracingData> parse_tracing_data(Bytes section);
void write_tracing_data(ByteWriter& out, const TracingData& data);

}  // namespace tacho::format
