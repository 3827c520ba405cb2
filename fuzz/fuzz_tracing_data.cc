// Tracing data that can be parsed can be written and parsed again.
#include <cstdlib>

#include "format/extensions/tracing_data.h"

using namespace tacho;
using namespace tacho::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const auto parsed = parse_tracing_data(bytes);
  if (!parsed) return 0;
  ByteWriter out;
  write_tracing_data(out, *parsed);
  if (!parse_tracing_data(out.view())) std::abort();
  return 0;
}
