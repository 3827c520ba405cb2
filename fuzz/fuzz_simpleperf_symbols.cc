// simpleperf's section of symbols -> tables. A symbol that is found covers the address it was found for.
#include <cstdlib>
#include <span>

#include "symbolize/names/symbol_lists.h"

using namespace tacho::symbolize;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  SimpleperfSymbols carried(std::as_bytes(std::span(data, size)));
  for (const char* const path : {"/a", "/lib/b.so", "[kernel.kallsyms]"}) {
    SymbolTable* const table = carried.table_of(path);
    if (table == nullptr) continue;
    for (std::uint64_t address = 0; address < 0x200; ++address) {
      const Symbol* const found = table->find_symbol(address);
      if (!found) continue;
      const bool covers = address == found->start || (found->start < address && address < found->end);
      if (!covers || found->name.empty()) std::abort();
    }
  }
  return 0;
}
