// A core file of a kernel's memory: its segments, notes and code.
#include <cstdlib>

#include "fuzz/memory_file.h"
#include "symbolize/elf/kernel_core.h"

using namespace tacho;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile memory(data, size);
  const auto file = format::open_input(memory.path());
  if (!file) return 0;
  auto core = symbolize::KernelCore::open(file->get());
  if (!core) return 0;
  constexpr std::size_t kPiece = 64;
  const std::uint64_t start = core->start_of_text().value_or(0xffffffff81000000);
  for (const std::uint64_t address : {std::uint64_t{0}, start, start + kPiece, ~std::uint64_t{0}})
    if (core->read_memory(address, kPiece).size() > kPiece) std::abort();
  return 0;
}
