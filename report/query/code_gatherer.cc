#include "report/query/code_gatherer.h"

#include <cstddef>
#include <string_view>

#include "format/extensions/symbol_pack.h"
#include "report/decode/payload.h"
#include "symbolize/symbol_source.h"

namespace tacho::report {

std::optional<std::uint64_t> CodeAddresses::shown_address(const symbolize::LocationFacts& facts,
                                                          std::uint64_t elf_address) {
  const symbolize::SymbolSource* const source = facts.source;
  if (source == nullptr || source->jit != nullptr || source->is_kernel_module()) return std::nullopt;
  if (source->packed != nullptr) {
    const auto [known, is_new] = packed_.try_emplace(source->packed);
    if (is_new)
      for (const format::PackedAddress& address : source->packed->addresses())
        if (address.symbol != format::PackedFunction::kNone)
          known->second.emplace(address.elf_address, address.address);
    const auto found = known->second.find(elf_address);
    // Functions without a symbol were packed as ranges, which are in the same segment.
    return found != known->second.end() ? found->second
                                        : facts.shown_address + (elf_address - facts.elf_address);
  }
  if (source->is_vmlinux()) return elf_address + source->moved;
  const auto offset = source->loads.offset_of({elf_address});
  return offset ? std::optional(offset->value) : std::nullopt;
}

namespace {

constexpr std::uint64_t kLargestFunction = std::uint64_t{1} << 18, kAlone = 64;  // bytes

}  // namespace

Location at_address(const Location& location, std::uint64_t ip) {
  Location at = location;
  at.ip = {ip};
  return at;
}

CodeGatherer::CodeGatherer(Resolver& resolver, symbolize::PackMaker& maker, std::string_view arch)
    : resolver_(resolver),
      maker_(maker),
      wide_(arch, WordSize::Bits64, AsmSyntax::Att),
      narrow_(arch, WordSize::Bits32, AsmSyntax::Att) {}

bool CodeGatherer::add_bytes(const Location& location, const symbolize::LocationFacts& facts,
                             std::uint64_t start, std::uint64_t size) {
  if (maker_.has_code(facts, start, size)) return true;
  const std::uint64_t moved = location.ip.value - facts.shown_address;
  const format::Bytes code = resolver_.code(location, start + moved, static_cast<std::size_t>(size));
  maker_.add_code(facts, start, code, resolver_.is_64_bit(location));
  return code.size() == size;
}

void CodeGatherer::add_location(const Location& location, const symbolize::LocationFacts& facts) {
  using symbolize::ModuleKind;
  const bool has_code = facts.source != nullptr && location.mapping != nullptr &&
                        (facts.module->kind == ModuleKind::User || facts.module->kind == ModuleKind::Kernel);
  if (!has_code) return;
  const bool is_function =
      facts.symbol && facts.symbol->size() <= kLargestFunction && facts.symbol->start <= facts.shown_address;
  if (!is_function || !add_bytes(location, facts, facts.symbol->start, facts.symbol->size())) {
    add_bytes(location, facts, facts.shown_address, kAlone);
    return;
  }
  if (functions_.emplace(facts.module, facts.symbol->start).second) add_lines(location, facts);
}

// Packs an address wherever the line or the inlined call changes, and the names of the targets of
// instructions.
void CodeGatherer::add_lines(const Location& location, const symbolize::LocationFacts& facts) {
  const std::uint64_t start = facts.symbol->start, size = facts.symbol->size();
  const std::uint64_t start_ip = location.ip.value - (facts.shown_address - start);
  const std::uint64_t elf_start = facts.elf_address - (facts.shown_address - start);
  const format::Bytes code = resolver_.code(location, start_ip, static_cast<std::size_t>(size));
  const Disassembler& disassembler = resolver_.is_64_bit(location) ? wide_ : narrow_;
  struct Line {
    bool is_known = false;
    std::string_view file;
    std::uint32_t line = 0, unit = 0, function = 0;
    bool operator==(const Line&) const = default;
  };
  Line before;
  bool is_first = true;
  const auto instructions = disassembler.disassemble(code, elf_start);
  if (!budget_.take_instructions(facts.module, instructions.size())) return;
  for (const DisassembledInstruction& instruction : instructions) {
    const std::uint64_t offset = instruction.address - elf_start;
    const symbolize::LocationFacts here = resolver_.facts(at_address(location, start_ip + offset));
    if (here.lines != nullptr) {
      const auto spot = here.lines->line_info({here.elf_address});
      const Line now = spot ? Line{true, spot->file, spot->line, spot->unit, spot->function} : Line{};
      if (is_first || now != before) maker_.add_location(here);
      if (spot && spot->file.starts_with('/')) sources_.emplace(spot->file, facts.module);
      before = now;
    } else if (here.source != nullptr && here.source->packed != nullptr) {
      const format::PackedAddress* const known = here.source->packed->at(here.shown_address);
      if (known != nullptr) maker_.add_location(here);
      if (known != nullptr && known->file != 0)
        sources_.emplace(here.source->packed->text(known->file), facts.module);
    } else if (is_first) {
      maker_.add_location(here);
    }
    is_first = false;
    const auto& named = instruction.target ? instruction.target : instruction.memory;
    if (named && *named - elf_start >= size) add_target(location, facts, *named);
  }
}

void CodeGatherer::add_target(const Location& location, const symbolize::LocationFacts& facts,
                              std::uint64_t elf_address) {
  const auto shown = addresses_.shown_address(facts, elf_address);
  if (!shown) return;
  const std::uint64_t ip = location.ip.value + (*shown - facts.shown_address);
  const symbolize::LocationFacts target = resolver_.facts(at_address(location, ip));
  if (target.symbol) maker_.add_location(target);
}

void CodeGatherer::add_made(const Location& location, const symbolize::LocationFacts& facts) {
  if (facts.source == nullptr || facts.source->jit == nullptr || !facts.symbol) return;
  if (!functions_.emplace(facts.module, facts.symbol->start).second) return;
  for (const symbolize::JitLine& line : facts.source->jit->lines)
    if (line.file.starts_with('/')) sources_.emplace(line.file, facts.module);
  symbolize::SymbolSource bare = symbolize::without_names({});  // names are in the jitdump
  symbolize::LocationFacts code = facts;
  code.source = &bare;
  if (facts.symbol->size() <= kLargestFunction)
    add_bytes(location, code, facts.symbol->start, facts.symbol->size());
}

}  // namespace tacho::report
