// Checks an ELF object before libbpf reads it, for clearer messages: whether it is a BPF object, and whether
// it has constructs that libbpf refuses with an unhelpful message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/elf.h"
#include "format/base/result.h"

namespace tacho::bpf {

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t flags = 0;
  format::Bytes content;  // empty when it takes no room in the file
};

// Points into the bytes it was parsed from.
struct ElfObject {
  std::vector<ElfSection> sections;
  std::vector<format::ElfSymbol> symbols;

  const ElfSection* find(std::string_view name) const;
};

// Fails for files that are not an ELF object for BPF of this byte order.
Result<ElfObject> parse_elf_object(format::Bytes file);
// Maps in the section "maps", as older libbpf and perf's own BPF programs had them: the error shows the
// definition to write instead of the first one.
Result<> refuse_legacy_maps(const ElfObject& object);

// Name of the object in the kernel: "bigreads" for "./examples/bigreads.bpf.c".
std::string object_name(const std::string& path);

}  // namespace tacho::bpf
