// The ELF file around BPF programs, and the section names in it.
#include <cstddef>
#include <cstdint>
#include <span>

#include "bpf/object/object.h"
#include "bpf/support/section.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto object = tacho::bpf::parse_elf_object(std::as_bytes(std::span(data, size)));
  if (!object) return 0;
  (void)tacho::bpf::refuse_legacy_maps(*object);
  for (const auto& section : object->sections) (void)tacho::bpf::parse_section(section.name);
  return 0;
}
