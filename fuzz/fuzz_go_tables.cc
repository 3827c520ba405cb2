// The runtime tables of a Go program: functions, and calls and lines all over its code.
#include <cstdlib>
#include <span>
#include <vector>

#include "symbolize/elf/go_tables.h"

using namespace tacho;
using namespace tacho::symbolize;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostFunctions = 64;
  const auto bytes = std::as_bytes(std::span(data, size));
  auto image = unwind::ElfImage::in_memory({bytes.begin(), bytes.end()}, unwind::ElfImage::Width::Any);
  auto tables = image ? GoTables::find_in(std::move(*image)) : std::nullopt;
  std::vector<Call> calls;
  for (std::size_t number = 0; tables && number < tables->size() && number < kMostFunctions; ++number) {
    const auto function = tables->function_at(number);
    if (!function) continue;
    if (function->end <= function->start) std::abort();
    const std::uint64_t step = (function->end - function->start) / 8 + 1;
    for (std::uint64_t address = function->start; address < function->end; address += step) {
      tables->find_calls({address}, {}, UseSymbolName::Outermost, calls);
      if (calls.size() > kDeepestInline + 1) std::abort();
      if (function->end - address <= step) break;
    }
  }
  return 0;
}
