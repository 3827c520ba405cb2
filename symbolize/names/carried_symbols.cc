#include "symbolize/names/carried_symbols.h"

#include <algorithm>
#include <utility>

namespace tacho::symbolize {
namespace {

// simpleperf's types of files.
constexpr std::uint32_t kKernel = 0, kElf = 2, kDex = 3;

constexpr std::size_t kLeastSymbol = sizeof(std::uint64_t) + sizeof(std::uint32_t) + 1;  // bytes

}  // namespace

CarriedSymbols::CarriedSymbols(format::Bytes section) {
  format::Cursor in(section);
  while (in.left() > sizeof(std::uint32_t)) {
    const format::Bytes file = in.take(in.u32());
    if (in.failed()) return;
    add(in.over(file));
  }
}

void CarriedSymbols::add(format::Cursor in) {
  const std::string path(in.terminated());
  const std::uint32_t type = in.u32();
  const std::uint64_t code_address = in.u64();
  File file;
  file.count = in.u32();
  if (in.failed() || file.count > in.left() / kLeastSymbol) return;
  file.symbols = in.rest();
  for (std::uint32_t i = 0; i < file.count; ++i) {
    in.skip(sizeof(std::uint64_t) + sizeof(std::uint32_t));
    (void)in.terminated();
  }
  if (in.failed()) return;
  if (type == kElf) {
    // Without it the file offset of an address is unknown.
    if (in.left() < sizeof(std::uint64_t)) return;
    file.moved = code_address - in.u64();
  } else if (type != kDex && type != kKernel) {
    return;
  }
  files_.try_emplace(path, std::move(file));
}

SymbolTable* CarriedSymbols::of(std::string_view path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return nullptr;
  File& file = found->second;
  if (!std::exchange(file.was_read, true)) file.table = read(file);
  return file.table.empty() ? nullptr : &file.table;
}

SymbolTable CarriedSymbols::read(const File& file) {
  format::Cursor in(file.symbols);
  SymbolTable table;
  table.reserve(file.count);
  for (std::uint32_t i = 0; i < file.count; ++i) {
    const std::uint64_t start = in.u64() - file.moved, length = in.u32();
    const std::string_view name = in.terminated();
    if (!name.empty())
      table.add({.start = start,
                 .end = start + std::min(length, ~std::uint64_t{0} - start),
                 .name = name,
                 .binding = Binding::Global});
  }
  table.finish();
  return table;
}

}  // namespace tacho::symbolize
