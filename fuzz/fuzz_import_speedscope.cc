// A document of speedscope through tacho import.
#include "fuzz/imported.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacho::fuzz::import_bytes(data, size, tacho::report::import_speedscope);
  return 0;
}
