// Folded stacks through tacho import.
#include "fuzz/imported.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacho::fuzz::import_bytes(data, size, tacho::report::import_folded);
  return 0;
}
