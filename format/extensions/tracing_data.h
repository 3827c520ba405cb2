// Tracing data of a capture (header feature 1): the format files of tracepoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

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

// The number after "ID:" in a format file, which is in EventAttr::config.
std::optional<std::uint64_t> tracepoint_id(std::string_view format_text);

Result<TracingData> parse_tracing_data(Bytes section);
void write_tracing_data(ByteWriter& out, const TracingData& data);

// Strings that tracepoints record by their address (printk_formats of tracefs, part of tracing data).
//
// Lines `0xffffffff82000010 : "text"`. As in libtraceevent, escapes are kept, and a newline at the end of a
// text is removed.
class ConstantStrings {
 public:
  ConstantStrings() = default;
  explicit ConstantStrings(std::string_view printk_formats);
  // The first string with that address; null: none.
  const std::string* find_string(std::uint64_t address) const;
  struct Row {
    std::uint64_t address = 0;
    std::string text;
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;  // by address, each once
};

}  // namespace tacho::format
