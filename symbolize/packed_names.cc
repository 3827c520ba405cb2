#include "symbolize/packed_names.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "symbolize/packed_code.h"

namespace tacho::symbolize {

using format::PackedAddress;
using format::PackedFunction;
using format::PackedSymbol;

static_assert(PackedFunction::kNone == InlineFunction::kNone);

SymbolTable& PackedSource::table() {
  if (table_) return *table_;
  SymbolTable& table = table_.emplace();
  table.reserve(module_->symbols.size());
  for (const PackedSymbol& symbol : module_->symbols)
    table.add({.start = symbol.start,
               .end = symbol.end,
               .name = text(symbol.name),
               .binding = Binding::Global,
               .is_data = symbol.is_data});
  std::vector<SymbolTable::Answer> answers;
  answers.reserve(module_->addresses.size());
  for (const PackedAddress& address : module_->addresses)
    if (address.symbol != PackedFunction::kNone) answers.push_back({address.address, address.symbol});
  table.finish_with(answers);
  return table;
}

const PackedAddress* PackedSource::at(std::uint64_t address) const {
  const auto found = std::ranges::lower_bound(module_->addresses, address, {}, &PackedAddress::address);
  return found != module_->addresses.end() && found->address == address ? &*found : nullptr;
}

// Pieces are joined: the last that begins before the address has what there is.
format::Bytes PackedSource::code_at(std::uint64_t address, std::size_t size) const {
  const auto next = std::ranges::upper_bound(module_->code, address, {}, &format::PackedPiece::start);
  if (next == module_->code.begin()) return {};
  const format::PackedPiece& piece = *std::prev(next);
  const std::uint64_t skipped = address - piece.start;
  if (skipped >= piece.size) return {};
  return format::Bytes(module_->code_bytes)
      .subspan(static_cast<std::size_t>(piece.offset + skipped),
               std::min<std::uint64_t>(size, piece.size - skipped));
}

std::uint64_t PackedSource::elf_address_of(std::uint64_t address) const {
  const PackedAddress* const known = at(address);
  return known != nullptr ? known->elf_address : address;
}

InlineFunction& PackedSource::function(std::uint32_t number) {
  if (functions_.empty()) {
    functions_.reserve(module_->functions.size());
    for (const PackedFunction& packed : module_->functions)
      functions_.push_back({.name = text(packed.name),
                            .is_linkers = packed.is_linkers,
                            .start = packed.start,
                            .caller = packed.caller,
                            .call_file = text(packed.call_file),
                            .call_line = packed.call_line});
  }
  return functions_[number];
}

void PackedSource::list_calls_at(std::uint64_t address, const LinkerSymbol& symbol, StandIn stand_in,
                                 std::vector<Call>& calls) {
  calls.clear();
  const PackedAddress* const known = at(address);
  if (known == nullptr || (known->function == PackedFunction::kNone && known->file == 0)) return;
  list_calls({{}, text(known->file), known->line}, known->function, symbol, stand_in, calls,
             [this](std::uint32_t number) -> InlineFunction& { return function(number); });
}

void PackedNames::open() {
  is_open_ = true;
  auto pack = format::parse_symbol_pack(*section_);
  if (!pack) {
    lack_ = pack.error().what;
    return;
  }
  pack_ = std::move(*pack);
  for (format::PackedModule& module : pack_.modules) {
    join_code(module);
    sources_.try_emplace(
        key_of(static_cast<ModuleKind>(module.kind), pack_.texts[module.path], module.build_id), module,
        pack_.texts);
  }
}

PackedSource* PackedNames::find(ModuleKind kind, std::string_view path, const format::BuildId& id) {
  if (section_->empty()) return nullptr;
  if (!is_open_) open();
  const auto found = sources_.find(key_of(kind, path, id));
  return found == sources_.end() ? nullptr : &found->second;
}

bool PackedNames::has_kernel() {
  if (section_->empty()) return false;
  if (!is_open_) open();
  return std::ranges::any_of(sources_,
                             [](const auto& source) { return source.first.kind == ModuleKind::Kernel; });
}

}  // namespace tacho::symbolize
