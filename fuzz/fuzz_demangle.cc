// A mangled name: what comes out is bounded.
#include <cstdlib>
#include <string_view>

#include "symbolize/names/demangle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  const auto text = tacho::symbolize::demangle(name);
  if (text && text->size() > 64 * 1024) std::abort();
  return 0;
}
