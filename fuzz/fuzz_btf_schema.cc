// BTF of an object -> payload schemas. A schema that comes out must fit the payload it describes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "bpf/object/btf_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto declared = tacho::bpf::read_declarations(std::as_bytes(std::span(data, size)));
  if (!declared) return 0;
  for (const auto& schema : declared->events)
    for (const auto& field : schema.fields) {
      const std::uint64_t end = field.bit_offset + std::uint64_t{field.bit_size} * field.count;
      if (field.bit_size == 0 || field.bit_size > 64 || end > std::uint64_t{schema.size} * 8) std::abort();
    }
  return 0;
}
