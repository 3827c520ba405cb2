// A jitdump -> events. Lines lie within their function, in order, and are found by the address they begin at.
#include <cstdlib>
#include <span>

#include "symbolize/jit/jitdump.h"

using namespace tacho::symbolize;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto dump = Jitdump::parse({bytes.begin(), bytes.end()});
  if (!dump) return 0;
  std::size_t read = 0;
  for (const JitEvent& event : dump->events()) {
    for (const char c : event.name) read += static_cast<std::uint8_t>(c);
    for (const JitLine& line : event.lines) {
      const JitLine* const found = line_at(event.lines, line.offset);
      if (line.offset >= event.size || !found || found->offset != line.offset) std::abort();
      read += line.file.size() + line.line;
    }
  }
  return read == ~std::size_t{0} ? 1 : 0;
}
