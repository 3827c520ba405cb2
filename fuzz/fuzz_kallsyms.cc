// kallsyms text -> tables. A symbol that is found covers the address it was found for.
#include <cstdlib>
#include <span>

#include "symbolize/names/symbol_lists.h"

using namespace tacho::symbolize;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const bool is_moved : {false, true}) {
    const auto reference = is_moved ? std::optional(ReferenceSymbol{"_text", 0x1000}) : std::nullopt;
    auto kallsyms = Kallsyms::parse({bytes.begin(), bytes.end()}, reference);
    if (!kallsyms) continue;
    for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{0x1010}, ~std::uint64_t{0}}) {
      const Symbol* const found = kallsyms->kernel().find_symbol(address);
      if (found && address < found->start) std::abort();
    }
  }
  return 0;
}
