#include "symbolize/symbol_source.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "format/extensions/symbol_pack.h"
#include "format/records/address.h"
#include "symbolize/files/build_id_match.h"

namespace tacho::symbolize {

std::uint64_t SymbolSource::offset_of(const Frame& frame) const {
  if (!is_vmlinux() || packed != nullptr) return frame.shown_address;
  const auto offset = loads.offset_of({frame.ip.value - moved});
  return offset ? offset->value : ~std::uint64_t{0};
}

std::uint64_t SymbolSource::elf_address_of(const Frame& frame, std::uint64_t offset) const {
  if (packed != nullptr) return packed->elf_address_of(offset);
  if (is_vmlinux()) return frame.ip.value - moved;
  const auto address = loads.address_of({offset});
  return address ? address->value : frame.shown_address;
}

const SymbolSource* SymbolSources::find_source(const Module& module) const {
  const auto found = known_.find(&module);
  return found == known_.end() ? nullptr : found->second.source;
}

void SymbolSources::keep(SymbolSource source, Entry& known) {
  known.is_shared = source.table == nullptr && source.jit == nullptr;
  if (!known.is_shared) {
    known.source = &all_.emplace_back(std::move(source));
    return;
  }
  const MissingReason& why = source.missing;
  const char flags[] = {why.is_left_out ? '-' : '+', why.is_of_own_file ? '-' : '+', '\0'};
  SymbolSource*& same = shared_[flags + why.text];
  if (same == nullptr) same = &all_.emplace_back(std::move(source));
  known.source = same;
}

SymbolSource& SymbolSources::own(Entry& known) {
  if (!known.is_shared) return *known.source;
  SymbolSource& own = all_.emplace_back();
  own.missing = known.source->missing;
  known.is_shared = false;
  known.source = &own;
  return own;
}

bool SymbolSources::check_late_build_id(Entry& known, const Module& module) {
  if (!known.was_unsure || module.build_id.empty()) return false;
  known.was_unsure = false;
  const SymbolSource& source = *known.source;
  const bool has_names_of_a_file = source.table != nullptr && source.packed == nullptr &&
                                   source.origin != SymbolSource::Origin::Simpleperf;
  known.is_wrong_file =
      has_names_of_a_file && match_build_ids(source.build_id, module.build_id) == BuildIdMatch::Other;
  if (known.is_wrong_file)
    known.file_id = source.build_id.empty() ? "no build id" : "build id " + source.build_id.hex();
  return known.is_wrong_file;
}

void SymbolSources::report_wrong_files(const std::deque<const Module*>& modules,
                                       format::Diagnostics& diagnostics) {
  constexpr std::uint64_t kMostLines = 20;
  std::uint64_t wrong = 0;
  for (const Module* const module : modules) {
    const auto known = known_.find(module);
    if (known == known_.end()) continue;
    (void)check_late_build_id(known->second, *module);
    if (!known->second.is_wrong_file || ++wrong > kMostLines) continue;
    diagnostics.add_line(format::Damage::WrongNames,
                         std::string(module->path) + ": the file there has " + known->second.file_id +
                             "; build id " + module->build_id.hex() +
                             " was recorded, which is in the capture after samples that were already named");
  }
  if (wrong > kMostLines)
    diagnostics.add_line(format::Damage::WrongNames, std::to_string(wrong - kMostLines) + " more modules");
}

void SymbolSources::report_guesses(const std::deque<const Module*>& modules,
                                   format::Diagnostics& diagnostics) {
  constexpr std::size_t kMostNamed = 3;
  report_wrong_files(modules, diagnostics);
  std::vector<std::string_view> paths;
  for (const Module* const module : modules) {
    const auto known = known_.find(module);
    if (known == known_.end()) continue;
    const SymbolSource* const source = known->second.source;
    if (source == nullptr || source->table == nullptr) continue;
    if (source->is_guess)
      diagnostics.add_line(
          format::Damage::Note,
          std::string(module->path) + ": its names are a guess: the process may not have made this map");
    if (known->second.was_unsure && source->origin != SymbolSource::Origin::Simpleperf)
      paths.push_back(module->path);
  }
  if (paths.empty()) return;
  std::string line(paths[0]);
  for (std::size_t i = 1; i < std::min(paths.size(), kMostNamed); ++i) line.append(", ").append(paths[i]);
  if (paths.size() > kMostNamed) line += " and " + std::to_string(paths.size() - kMostNamed) + " more";
  line += paths.size() == 1 ? ": its names are a guess: no build id of it was recorded"
                            : ": their names are a guess: no build ids of them were recorded";
  diagnostics.add_line(format::Damage::Note, std::move(line));
}

bool is_left_out(const Error& reason) { return reason.code == EFBIG; }

SymbolSource from_table(SymbolTable table, char letter, bool is_mangled) {
  SymbolSource source;
  source.has_own_table = !table.empty();
  if (source.has_own_table) source.own = std::make_unique<SymbolTable>(std::move(table));
  source.letter = letter;
  source.is_mangled = is_mangled;
  return source;
}

SymbolSource from_file(ModuleSymbols symbols) {
  SymbolSource source = from_table(std::move(symbols.table), symbols.letter, true);
  if (symbols.embedded) source.embedded = std::make_unique<SymbolTable>(std::move(*symbols.embedded));
  source.loads = std::move(symbols.loads);
  source.build_id = symbols.build_id;
  source.has_full_symbols = symbols.is_full;
  source.origin = SymbolSource::Origin::File;
  if (symbols.missing_reason) {
    source.missing.text = std::move(symbols.missing_reason->what);
    source.missing.is_left_out = is_left_out(*symbols.missing_reason);
  }
  return source;
}

SymbolSource from_jit(const JitCode::Function& function) {
  SymbolTable table;
  table.add_symbol({.start = JitCode::kTextOffset,
                    .end = format::end_of_range(JitCode::kTextOffset, function.size),
                    .name = function.name});
  table.finish();
  SymbolSource source = from_table(std::move(table), 'd', true);
  source.has_full_symbols = true;
  source.jit = &function;
  return source;
}

SymbolSource from_vdso(std::vector<std::byte> image, Demangler* demangler) {
  auto elf = ElfFile::in_memory(image);
  auto table = elf ? read_symbols(*elf, *elf, demangler) : Result<SymbolTable>(std::move(elf.error()));
  if (!table) return without_names(Error{"the vdso: " + table.error().what});
  return from_table(std::move(*table), 'd', true);
}

std::optional<SymbolSource> SimpleperfNames::source_of(const Module& module) {
  const bool is_kernel = module.kind == ModuleKind::Kernel;
  if (!is_kernel && module.kind != ModuleKind::User && module.kind != ModuleKind::Vdso) return std::nullopt;
  if (!symbols_) {
    const auto section = std::ranges::find(features_.raw, kSimpleperfFeature, &format::RawSection::feature);
    symbols_.emplace(section == features_.raw.end() ? format::Bytes() : format::Bytes(section->bytes));
  }
  SymbolTable* const table =
      symbols_->table_of(is_kernel ? std::string_view("[kernel.kallsyms]") : module.path);
  if (table == nullptr) return std::nullopt;
  SymbolSource source;
  source.table = table;
  source.has_own_table = true;
  source.letter = is_kernel ? 'k' : 'd';
  source.is_mangled = true;
  source.origin = SymbolSource::Origin::Simpleperf;
  return source;
}

SymbolSource from_pack(PackedSource& packed, Unnamed unnamed) {
  using Flag = format::PackedModule;
  SymbolSource source;
  source.packed = &packed;
  source.table = &packed.table(unnamed);
  source.letter = static_cast<char>(packed.letter());
  source.is_mangled = packed.is(Flag::kIsMangled);
  source.has_full_symbols = packed.is(Flag::kHasFullSymbols);
  source.has_own_table = packed.is(Flag::kHasOwnTable);
  if (packed.is(Flag::kIsVmlinux))
    source.origin = SymbolSource::Origin::Vmlinux;
  else if (packed.is(Flag::kIsKernelModuleFile))
    source.origin = SymbolSource::Origin::KernelModuleFile;
  return source;
}

SymbolSource without_names(Error reason) {
  SymbolSource source;
  source.missing = {.text = std::move(reason.what), .message_start = {}, .is_left_out = is_left_out(reason)};
  return source;
}

MissingMessage missing_message(const SymbolSource* source, const DebugFiles& files, const std::string& path,
                               std::string_view ended) {
  constexpr std::string_view kEnded = "call chains end there: ";
  std::string missing_reason = source ? source->missing.text : "";
  if (source && source->missing.is_of_own_file) missing_reason.insert(0, files.local_path(path) + ": ");
  if (missing_reason.empty() && source && source->lines) missing_reason = source->lines->missing_reason();
  if (missing_reason.empty() && ended.empty()) return {};
  if (missing_reason.empty()) return {format::Damage::Note, files.message(path, std::string(ended), kEnded)};
  const bool is_left_out = source->missing.is_left_out || (source->lines && source->lines->left_out());
  const auto kind = is_left_out ? format::Damage::BadSymbolSource : format::Damage::NoSymbols;
  std::string line = files.message(path, missing_reason, source->missing.message_start);
  if (ended.empty() || missing_reason.starts_with(ended)) return {kind, line};
  const std::string here = files.local_path(path) + ": ";
  if (ended.starts_with(here)) ended.remove_prefix(here.size());
  return {kind, line + "; " + std::string(kEnded) + std::string(ended)};
}

}  // namespace tacho::symbolize
