#include "symbolize/packed_names.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace tacho::symbolize {

using format::PackedAddress;
using format::PackedFunction;
using format::PackedPiece;
using format::PackedSymbol;

static_assert(PackedFunction::kNone == InlineFunction::kNone);

void join_code(format::PackedModule& module) {
  constexpr std::uint64_t kLargestPiece = std::numeric_limits<std::uint32_t>::max();  // bytes
  const format::Bytes all = module.code_bytes;
  std::vector<PackedPiece> joined;
  std::vector<std::byte> code;
  code.reserve(all.size());
  for (const PackedPiece& piece : module.code) {
    const std::uint64_t moved = joined.empty() ? 0 : piece.start - joined.back().start;
    const bool is_further =
        joined.empty() || moved > joined.back().size || moved + piece.size > kLargestPiece;
    if (is_further) joined.push_back({.start = piece.start, .size = 0, .offset = code.size()});
    PackedPiece& last = joined.back();
    const std::uint64_t known = is_further ? 0 : last.size - moved;
    if (known >= piece.size) continue;
    const format::Bytes bytes = all.subspan(static_cast<std::size_t>(piece.offset), piece.size)
                                    .subspan(static_cast<std::size_t>(known));
    code.insert(code.end(), bytes.begin(), bytes.end());
    last.size += static_cast<std::uint32_t>(bytes.size());
  }
  module.code = std::move(joined);
  module.code_bytes = std::move(code);
}

SymbolTable& PackedSource::table(Unnamed unnamed) {
  if (table_) return *table_;
  SymbolTable& table = table_.emplace();
  table.reserve(module_->symbols.size());
  std::vector<FunctionRanges::Range> ranges;
  for (const PackedSymbol& symbol : module_->symbols) {
    if (symbol.name == 0) ranges.push_back({symbol.start, symbol.end});
    table.add_symbol({.start = symbol.start,
                      .end = symbol.end,
                      .name = text(symbol.name),
                      .binding = Binding::Global,
                      .is_data = symbol.is_data});
  }
  std::vector<SymbolTable::Answer> answers;
  answers.reserve(module_->addresses.size());
  const auto is_named = [this](const PackedAddress& address) {
    return address.symbol != PackedFunction::kNone && module_->symbols[address.symbol].name != 0;
  };
  const std::vector<PackedAddress>& addresses = module_->addresses;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (is_named(addresses[i])) {
      answers.push_back({addresses[i].address, addresses[i].symbol});
      continue;
    }
    // A call without a name, whose return address has a symbol.
    const bool is_call = i + 1 < addresses.size() && addresses[i + 1].address == addresses[i].address + 1 &&
                         is_named(addresses[i + 1]);
    if (is_call) answers.push_back({addresses[i].address, SymbolTable::kNoSymbol});
  }
  table.finish_with(answers);
  if (ranges.empty() || unnamed == Unnamed::Addresses) return table;
  const std::string_view path = text(module_->path);
  table.add_unnamed(std::string(path.substr(path.rfind('/') + 1)) + "+0x", nullptr,
                    std::make_unique<FunctionRanges>(std::move(ranges)));
  return table;
}

const PackedAddress* PackedSource::at(std::uint64_t address) const {
  const auto found = std::ranges::lower_bound(module_->addresses, address, {}, &PackedAddress::address);
  return found != module_->addresses.end() && found->address == address ? &*found : nullptr;
}

// Pieces were joined, so only the last one that begins before the address can have it.
format::Bytes PackedSource::code_at(std::uint64_t address, std::size_t size) const {
  const auto next = std::ranges::upper_bound(module_->code, address, {}, &PackedPiece::start);
  if (next == module_->code.begin()) return {};
  const PackedPiece& piece = *std::prev(next);
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
                            .is_linkage_name = packed.is_linkage_name,
                            .start = packed.start,
                            .caller = packed.caller,
                            .call_file = text(packed.call_file),
                            .call_line = packed.call_line});
  }
  return functions_[number];
}

void PackedSource::list_calls_at(std::uint64_t address, const LinkerSymbol& symbol,
                                 UseSymbolName use_symbol_name, std::vector<Call>& calls) {
  calls.clear();
  const PackedAddress* const known = at(address);
  if (known == nullptr || (known->function == PackedFunction::kNone && known->file == 0)) return;
  list_calls({{}, text(known->file), known->line}, known->function, symbol, use_symbol_name, calls,
             [this](std::uint32_t number) -> InlineFunction& { return function(number); });
}

std::map<PackedNames::Key, PackedSource>& PackedNames::sources() {
  if (section_->empty() || std::exchange(is_open_, true)) return sources_;
  auto pack = format::parse_symbol_pack(*section_);
  if (!pack) {
    missing_reason_ = pack.error().what;
    return sources_;
  }
  pack_ = std::move(*pack);
  for (format::PackedModule& module : pack_.modules) {
    join_code(module);
    sources_.try_emplace(
        key_of(static_cast<ModuleKind>(module.kind), pack_.texts[module.path], module.build_id), module,
        pack_.texts);
  }
  return sources_;
}

PackedSource* PackedNames::find_source(ModuleKind kind, std::string_view path, const format::BuildId& id) {
  auto& all = sources();
  const auto found = all.find(key_of(kind, path, id));
  return found == all.end() ? nullptr : &found->second;
}

bool PackedNames::has_kernel() {
  return std::ranges::any_of(sources(),
                             [](const auto& source) { return source.first.kind == ModuleKind::Kernel; });
}

}  // namespace tacho::symbolize
