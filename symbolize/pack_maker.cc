#include "symbolize/pack_maker.h"

#include <algorithm>

namespace tacho::symbolize {

using format::PackedAddress;
using format::PackedFunction;
using Flag = format::PackedModule;

PackMaker::Gathered& PackMaker::gathered(const LocationFacts& facts) {
  // All BPF trampolines and dispatchers are one module, as in kallsyms.
  const Module* const key = facts.is_bpf_text ? nullptr : facts.module;
  const auto [entry, is_new] = modules_.try_emplace({key, facts.is_bpf_text});
  Gathered& to = entry->second;
  if (!is_new) return to;
  to.number = modules_.size() - 1;
  format::PackedModule& module = to.module;
  if (facts.is_bpf_text) {
    module.kind = static_cast<std::uint8_t>(ModuleKind::KernelModule);
    module.path = pack_.texts.number_of("[bpf]");
    module.flags = Flag::kHasNames;
    return to;
  }
  const SymbolSource& source = *facts.source;
  module.kind = static_cast<std::uint8_t>(facts.module->kind);
  module.path = pack_.texts.number_of(facts.module->path);
  module.build_id = facts.module->build_id;
  module.missing_reason = pack_.texts.number_of(source.missing.text);
  module.letter = static_cast<std::uint8_t>(source.letter);
  const bool has_packed_lines = source.packed != nullptr && source.packed->is(Flag::kHasLines);
  const std::pair<bool, std::uint8_t> flags[] = {
      {source.table != nullptr, Flag::kHasNames},
      {source.is_mangled, Flag::kIsMangled},
      {source.has_full_symbols, Flag::kHasFullSymbols},
      {source.has_own_table, Flag::kHasOwnTable},
      {pack_.level >= format::PackLevel::Inlines && (facts.lines != nullptr || has_packed_lines),
       Flag::kHasLines},
      {source.is_vmlinux(), Flag::kIsVmlinux},
      {source.is_kernel_module(), Flag::kIsKernelModuleFile}};
  for (const auto& [is_set, flag] : flags)
    if (is_set) module.flags = static_cast<std::uint8_t>(module.flags | flag);
  return to;
}

std::uint32_t PackMaker::symbol_of(Gathered& to, const Symbol& symbol) {
  const auto [entry, is_new] =
      to.symbols.try_emplace({symbol.start, symbol.end, symbol.name.data()}, to.module.symbols.size());
  if (is_new)
    to.module.symbols.push_back({symbol.start, symbol.end,
                                 symbol.is_unnamed() ? 0 : pack_.texts.number_of(symbol.name),
                                 symbol.is_data});
  return entry->second;
}

// Callers first, so that a caller has a lower number than its callees.
template <class FunctionAt>
std::uint32_t PackMaker::function_of(Gathered& to, std::uint32_t unit, std::uint32_t number,
                                     FunctionAt&& function_at) {
  std::vector<std::uint32_t> chain;
  std::uint32_t packed = PackedFunction::kNone;
  const auto key_of = [&](std::uint32_t one) { return std::uint64_t{unit} << 32 | one; };
  for (std::uint32_t at = number; at != InlineFunction::kNone && chain.size() <= kDeepestInline;) {
    if (const auto known = to.functions.find(key_of(at)); known != to.functions.end()) {
      packed = known->second;
      break;
    }
    chain.push_back(at);
    at = function_at(at).caller;
  }
  for (auto one = chain.rbegin(); one != chain.rend(); ++one) {
    const InlineFunction& function = function_at(*one);
    const auto added = static_cast<std::uint32_t>(to.module.functions.size());
    to.module.functions.push_back({.name = pack_.texts.number_of(function.name),
                                   .is_linkage_name = function.is_linkage_name,
                                   .start = function.is_linkage_name ? 0 : function.start,
                                   .caller = packed,
                                   .call_file = pack_.texts.number_of(function.call_file),
                                   .call_line = function.call_line});
    to.functions.emplace(key_of(*one), added);
    packed = added;
  }
  return packed;
}

void PackMaker::add_lines(Gathered& to, const LocationFacts& facts, PackedAddress& address) {
  if (facts.lines != nullptr) {
    const auto spot = facts.lines->line_info({facts.elf_address});
    if (!spot) return;
    address.file = pack_.texts.number_of(spot->file);
    address.line = spot->line;
    if (address.file != 0 && summed_files_.emplace(facts.lines, address.file).second)
      add_sums(source_sums_, spot->file, facts.lines->sums_of(spot->file));
    address.function = function_of(
        to, spot->unit, spot->function,
        [&](std::uint32_t number) -> InlineFunction& { return facts.lines->function(spot->unit, number); });
  } else if (PackedSource* const packed = facts.source->packed) {
    const PackedAddress* const known = packed->at(facts.shown_address);
    if (known == nullptr) return;
    address.file = pack_.texts.number_of(packed->text(known->file));
    address.line = known->line;
    address.function = function_of(to, 0, known->function, [&](std::uint32_t number) -> InlineFunction& {
      return packed->function(number);
    });
  }
}

void PackMaker::add_location(const LocationFacts& facts, Keep keep) {
  if (facts.module == nullptr || (facts.source == nullptr && !facts.is_bpf_text)) return;
  Gathered& to = gathered(facts);
  PackedAddress address{.address = facts.shown_address, .elf_address = facts.elf_address};
  if (facts.is_bpf_text) address.elf_address = facts.shown_address;
  if (facts.symbol) {
    const std::uint32_t symbol = symbol_of(to, *facts.symbol);
    if (!facts.symbol->is_unnamed())
      address.symbol = symbol;  // a function without symbol is found by its range
  }
  if ((to.module.flags & Flag::kHasLines) != 0) add_lines(to, facts, address);
  // Skip addresses without facts, of which there may be millions (data): readers treat missing ones the same
  // way.
  const bool says_something = keep == Keep::Always || address.symbol != PackedFunction::kNone ||
                              address.function != PackedFunction::kNone || address.file != 0 ||
                              address.elf_address != address.address;
  if (says_something) to.module.addresses.push_back(address);
}

bool PackMaker::has_code(const LocationFacts& facts, std::uint64_t start, std::uint64_t size) {
  const auto& code = gathered(facts).code;
  auto piece = code.upper_bound(start);
  if (piece == code.begin()) return false;
  --piece;
  return start - piece->first <= piece->second.size() &&
         size <= piece->second.size() - (start - piece->first);
}

void PackMaker::add_code(const LocationFacts& facts, std::uint64_t start, format::Bytes code,
                         bool is_64_bit) {
  if (code.empty() || has_code(facts, start, code.size())) return;
  Gathered& to = gathered(facts);
  to.code[start].assign(code.begin(), code.end());
  to.module.is_64_bit = is_64_bit;
  to.module.flags = static_cast<std::uint8_t>(to.module.flags | Flag::kHasCode);
}

format::SymbolPack PackMaker::finish() {
  pack_.modules.resize(modules_.size());
  for (auto& [module, gathered] : modules_) {
    for (auto& [start, bytes] : gathered.code) {
      gathered.module.code.push_back({.start = start, .size = static_cast<std::uint32_t>(bytes.size())});
      auto& all = gathered.module.code_bytes;
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    pack_.modules[gathered.number] = std::move(gathered.module);
  }
  modules_.clear();
  // A deterministic order, independent of memory addresses. Files of one path and build id, which differ by
  // their inodes, stay in the order of first use.
  std::ranges::stable_sort(pack_.modules,
                           [this](const format::PackedModule& a, const format::PackedModule& b) {
                             return std::tuple(a.kind, pack_.texts[a.path], a.build_id) <
                                    std::tuple(b.kind, pack_.texts[b.path], b.build_id);
                           });
  return std::move(pack_);
}

}  // namespace tacho::symbolize
