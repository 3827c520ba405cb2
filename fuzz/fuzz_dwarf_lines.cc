// An ELF file with DWARF in it: calls and lines all over its code. Split-off and shared parts are not there.
#include <cstdlib>

#include "fuzz/memory_file.h"
#include "symbolize/elf/dwarf_lines.h"

using namespace tacho;
using namespace tacho::symbolize;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile input(data, size);
  auto file = format::open_input(input.path());
  if (!file) return 0;
  // A root where nothing is: names in the file must not lead to files of this machine.
  auto lines = DwarfLines::open(std::move(*file), "/proc/self/fdinfo");
  if (!lines) return 0;
  (void)lines->supplementary_file();
  std::vector<Call> calls;
  const LinkerSymbol symbol{"symbol", {0x280}};
  for (std::uint64_t address = 0x240; address < 0x340; address += 3) {
    lines->find_calls({address}, symbol, UseSymbolName::Innermost, calls);
    if (calls.size() > 1025) std::abort();
    for (const Call& call : calls) {
      if (call.function.size() + call.file.size() > (std::size_t{1} << 30)) std::abort();
    }
  }
  return 0;
}
