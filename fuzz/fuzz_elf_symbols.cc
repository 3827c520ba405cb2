// An ELF image, as the attached vdso is one: its build id, link and symbols, with and without demangling.
#include <cstdlib>
#include <span>

#include "symbolize/elf/elf_file.h"

using namespace tacho::symbolize;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto elf = ElfFile::in_memory(std::as_bytes(std::span(data, size)));
  if (!elf) return 0;
  (void)elf->build_id();
  const auto layout = elf->module_load_map();
  for (std::uint64_t address = 0; address < size; address += 16) (void)layout.offset_of({address});
  if (elf->debuglink().find('/') != std::string::npos) std::abort();
  Demangler demangler;
  for (Demangler* const used : {static_cast<Demangler*>(nullptr), &demangler}) {
    auto table = read_symbols(*elf, *elf, used);
    if (!table) continue;
    for (std::uint64_t offset = 0; offset < size + 64; offset += 8) {
      const Symbol* const found = table->find_symbol(offset);
      if (found && offset < found->start) std::abort();
    }
  }
  return 0;
}
