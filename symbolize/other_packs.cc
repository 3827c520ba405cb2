#include "symbolize/other_packs.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tacho::symbolize {

using format::PackedAddress;
using format::PackedFunction;
using format::PackedModule;

Result<> OtherPacks::add_pack(const std::string& name, format::Bytes section) {
  if (section.empty())
    return Error{name + ": it has no packed symbols; run tacho pack on the host where it was recorded"};
  const auto pack = format::parse_symbol_pack(section);
  if (!pack) return Error(pack.error()).in(name + ": the symbols packed into it");
  std::size_t omitted = 0;
  std::string_view first_omitted;
  for (const PackedModule& module : pack->modules) {
    const auto kind = static_cast<ModuleKind>(module.kind);
    const bool is_file = kind == ModuleKind::User || kind == ModuleKind::Vdso;
    if (!is_file || module.build_id.empty() || (module.flags & PackedModule::kHasNames) == 0) continue;
    if (!merge(modules_[{kind, module.build_id}], module, pack->texts) && ++omitted == 1)
      first_omitted = pack->texts[module.path];
    by_path_.try_emplace(std::string(pack->texts[module.path]),
                         name + " has the names of build id " + module.build_id.hex());
  }
  if (omitted != 0)
    omissions_.push_back(
        name + ": the names of " + std::string(first_omitted) +
        (omitted == 1 ? "" : " and of " + std::to_string(omitted - 1) + " more") +
        " are ignored: an earlier capture has names of the same file in another form (mangled, or "
        "of a file without .symtab)");
  return Done{};
}

bool OtherPacks::merge(Merged& to, const PackedModule& from, const format::PackTexts& texts) {
  constexpr std::uint8_t kForms = PackedModule::kIsMangled | PackedModule::kHasFullSymbols;
  PackedModule& into = to.module;
  const bool is_first = into.addresses.empty() && into.symbols.empty();
  if (is_first) {
    into.kind = from.kind;
    into.path = texts_.number_of(texts[from.path]);
    into.letter = from.letter;
    into.build_id = from.build_id;
    into.flags = from.flags;
  }
  // Names by different rules must not be mixed.
  if ((into.flags & kForms) != (from.flags & kForms)) return false;
  into.flags = static_cast<std::uint8_t>(into.flags | from.flags);
  const auto text = [&](std::uint32_t number) { return texts_.number_of(texts[number]); };
  const auto symbols = static_cast<std::uint32_t>(into.symbols.size());
  const auto functions = static_cast<std::uint32_t>(into.functions.size());
  const auto moved = [](std::uint32_t number, std::uint32_t by) {
    return number == PackedFunction::kNone ? number : number + by;
  };
  for (format::PackedSymbol symbol : from.symbols) {
    symbol.name = text(symbol.name);
    into.symbols.push_back(symbol);
  }
  for (PackedFunction function : from.functions) {
    function.name = text(function.name);
    function.call_file = text(function.call_file);
    function.caller = moved(function.caller, functions);
    into.functions.push_back(function);
  }
  const std::size_t known = into.addresses.size();
  for (PackedAddress address : from.addresses) {
    const auto end = into.addresses.begin() + static_cast<std::ptrdiff_t>(known);
    if (std::ranges::binary_search(into.addresses.begin(), end, address.address, {}, &PackedAddress::address))
      continue;
    address.symbol = moved(address.symbol, symbols);
    address.function = moved(address.function, functions);
    address.file = text(address.file);
    into.addresses.push_back(address);
  }
  std::ranges::sort(into.addresses, {}, &PackedAddress::address);
  into.is_64_bit = into.is_64_bit || from.is_64_bit;
  for (format::PackedPiece piece : from.code) {
    piece.offset += into.code_bytes.size();
    into.code.push_back(piece);
  }
  into.code_bytes.insert(into.code_bytes.end(), from.code_bytes.begin(), from.code_bytes.end());
  std::ranges::stable_sort(into.code, {}, &format::PackedPiece::start);
  return true;
}

PackedSource* OtherPacks::find_source(const Module& module) {
  if (module.build_id.empty()) return nullptr;
  const auto found = modules_.find({module.kind, module.build_id});
  if (found == modules_.end()) return nullptr;
  Merged& merged = found->second;
  if (!merged.source) {
    join_code(merged.module);
    merged.source.emplace(merged.module, texts_);
  }
  return &*merged.source;
}

std::string OtherPacks::other_build_of(const Module& module) const {
  const auto found = by_path_.find(module.path);
  return found == by_path_.end() ? std::string() : "; " + found->second;
}

}  // namespace tacho::symbolize
