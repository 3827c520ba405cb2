// Frames and keys of the screen: the process that sends them may have been taken over by what it read.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "report/output/text_output.h"
#include "report/views/tui/frame.h"

using namespace tacho::report;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)decode_key(bytes);
  const auto frame = decode_frame(bytes);
  if (!frame) return 0;
  for (const FrameRow& row : frame->rows)
    for (const StyledText& one : row.runs) {
      if (one.style >= Style::kCount || one.column + columns_of(one.text) > frame->size.width) std::abort();
      if (printable(one.text) != one.text) std::abort();
    }
  return 0;
}
