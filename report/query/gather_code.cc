#include "report/query/gather_code.h"

#include <optional>
#include <string_view>
#include <tuple>

#include "symbolize/name_source.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kLargestFunction = std::uint64_t{1} << 18, kAlone = 64;  // bytes

Location at_address(const Location& location, std::uint64_t ip) {
  Location at = location;
  at.ip = {ip};
  return at;
}

}  // namespace

CodeGatherer::CodeGatherer(Resolver& resolver, symbolize::PackMaker& maker, std::string_view arch)
    : resolver_(resolver),
      maker_(maker),
      wide_(arch, WordSize::Bits64, AsmSyntax::Att),
      narrow_(arch, WordSize::Bits32, AsmSyntax::Att) {}

bool CodeGatherer::add_bytes(const Location& location, const symbolize::PlaceFacts& facts,
                             std::uint64_t start, std::uint64_t size) {
  if (maker_.has_code(facts, start, size)) return true;
  const std::uint64_t moved = location.ip.value - facts.shown_address;
  const format::Bytes code = resolver_.code(location, start + moved, static_cast<std::size_t>(size));
  maker_.add_code(facts, start, code, resolver_.is_64_bit(location));
  return code.size() == size;
}

void CodeGatherer::add(const Location& location, const symbolize::PlaceFacts& facts) {
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

// Of each instruction at which the line or the inlined call changes, what is known of it; and the names of
// what instructions lead to.
void CodeGatherer::add_lines(const Location& location, const symbolize::PlaceFacts& facts) {
  const std::uint64_t start = facts.symbol->start, size = facts.symbol->size();
  const std::uint64_t start_ip = location.ip.value - (facts.shown_address - start);
  const std::uint64_t elf_start = facts.elf_address - (facts.shown_address - start);
  const format::Bytes code = resolver_.code(location, start_ip, static_cast<std::size_t>(size));
  const Disassembler& disassembler = resolver_.is_64_bit(location) ? wide_ : narrow_;
  std::optional<std::tuple<std::string_view, std::uint32_t, std::uint32_t, std::uint32_t>> before;
  bool is_first = true;
  for (const DisassembledInstruction& instruction : disassembler.disassemble(code, elf_start)) {
    const std::uint64_t offset = instruction.address - elf_start;
    const symbolize::PlaceFacts here = resolver_.facts(at_address(location, start_ip + offset));
    if (here.lines != nullptr) {
      const auto spot = here.lines->spot_of({here.elf_address});
      const auto now =
          spot ? std::optional(std::tuple(spot->file, spot->line, spot->unit, spot->function)) : std::nullopt;
      if (is_first || now != before) maker_.add(here);
      if (spot && spot->file.starts_with('/')) sources_.emplace(spot->file);
      before = now;
    } else if (here.source != nullptr && here.source->packed != nullptr) {
      const format::PackedAddress* const known = here.source->packed->at(here.shown_address);
      if (known != nullptr) maker_.add(here);
      if (known != nullptr && known->file != 0) sources_.emplace(here.source->packed->text(known->file));
    } else if (is_first) {
      maker_.add(here);
    }
    is_first = false;
    const auto& named = instruction.target ? instruction.target : instruction.memory;
    if (named && *named - elf_start >= size) add_target(location, facts, *named);
  }
}

void CodeGatherer::add_target(const Location& location, const symbolize::PlaceFacts& facts,
                              std::uint64_t elf_address) {
  const auto shown = places_.shown_address(facts, elf_address);
  if (!shown) return;
  const std::uint64_t ip = location.ip.value + (*shown - facts.shown_address);
  const symbolize::PlaceFacts target = resolver_.facts(at_address(location, ip));
  if (target.symbol) maker_.add(target);
}

void CodeGatherer::add_made(const Location& location, const symbolize::PlaceFacts& facts) {
  if (facts.source == nullptr || facts.source->jit == nullptr || !facts.symbol) return;
  if (!functions_.emplace(facts.module, facts.symbol->start).second) return;
  for (const symbolize::JitLine& line : facts.source->jit->lines)
    if (line.file.starts_with('/')) sources_.emplace(line.file);
  symbolize::Source bare = symbolize::without_names({});  // names are in the jitdump
  symbolize::PlaceFacts code = facts;
  code.source = &bare;
  if (facts.symbol->size() <= kLargestFunction)
    add_bytes(location, code, facts.symbol->start, facts.symbol->size());
}

}  // namespace tacho::report
