// A tracepoint's format file (the first half of the input, up to a zero byte, which printk_formats may
// follow) and a record of it (the second half) through libtraceevent: what our checks let through must do no
// harm.
#include "format/base/file.h"
#include "report/decode/payload.h"
#include "report/decode/tracepoint_text.h"

using namespace tacho;
using namespace tacho::report;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const std::size_t cut = size / 2;
  format::TracingData tracing;
  const std::string_view texts_of_kernel = format::as_text(bytes.first(cut));
  const std::size_t end = std::min(texts_of_kernel.find('\0'), cut);
  tracing.formats.push_back({"fuzz", std::string(texts_of_kernel.substr(0, end))});
  tracing.printk_formats = texts_of_kernel.substr(std::min(end + 1, cut));
  const auto id = format::tracepoint_id(tracing.formats[0].text);
  if (!id || size - cut < 2) return 0;
  std::vector<std::byte> record(bytes.begin() + static_cast<std::ptrdiff_t>(cut), bytes.end());
  // The record must be of this tracepoint, else nothing is tried.
  record[0] = static_cast<std::byte>(*id & 0xff);
  record[1] = static_cast<std::byte>(*id >> 8 & 0xff);
  TracepointText texts(tracing, {});
  texts.text_of(*id, record, 0, std::endian::native);
  texts.text_of(*id, record, 1, std::endian::native);
  return 0;
}
