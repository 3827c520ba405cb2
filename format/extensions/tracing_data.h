// Tracepoint descriptions carried in a capture (header feature 1): the format files of tracefs.
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

// The number after "ID:" in a format file: what EventAttr::config has.
std::optional<std::uint64_t> tracepoint_id(std::string_view format_text);

Result<TracingData> parse_tracing_data(Bytes section);
void write_tracing_data(ByteWriter& out, const TracingData& data);

// Strings that tracepoints of the kernel record by their address: printk_formats of tracefs, as captures
// carry it.
//
// Lines `0xffffffff82000010 : "text"`, by address. Texts are kept as libtraceevent keeps them: escapes stay,
// an end of line at the end of a text does not.
class ConstantStrings {
 public:
  ConstantStrings() = default;
  explicit ConstantStrings(std::string_view printk_formats);
  // Null when no string has that address. Of several the first counts.
  const std::string* find(std::uint64_t address) const;
  struct Row {
    std::uint64_t address = 0;
    std::string text;
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;  // by address, each once
};

}  // namespace tacho::format
