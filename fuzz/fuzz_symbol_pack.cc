// Symbol packs that can be parsed can be written and parsed again, and support all look-ups.
#include <cstdlib>

#include "format/extensions/symbol_pack.h"
#include "symbolize/packed_names.h"

using namespace tacho;
using namespace tacho::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  auto parsed = parse_symbol_pack(bytes);
  if (!parsed) return 0;
  std::vector<symbolize::Call> calls;
  for (const PackedModule& module : parsed->modules) {
    symbolize::PackedSource source(module, parsed->texts);
    for (const PackedAddress& address : module.addresses) {
      const symbolize::Symbol* const symbol = source.table().find_symbol(address.address);
      const symbolize::LinkerSymbol linkers{symbol ? symbol->name : "", {address.elf_address}};
      source.list_calls_at(address.address, linkers, symbolize::UseSymbolName::AsPerf, calls);
    }
  }
  const auto again = write_symbol_pack_section(*parsed);
  if (!again || !parse_symbol_pack(*again)) std::abort();
  return 0;
}
