// Build ids out of ELF images and runs of notes.
#include "format/records/build_id.h"

using namespace tacho::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  build_id_in_elf(bytes);
  build_id_in_notes(bytes, std::endian::little);
  build_id_in_notes(bytes, std::endian::big);
  return 0;
}
