#include "report/profile/source_line.h"

#include <fmt/format.h>

#include <string_view>

#include "report/output/text_output.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::report {
namespace {

std::string line_text(std::string_view file, std::uint32_t line) {
  if (file.empty() || file == "??" || line == 0) return {};
  return printable(fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line));
}

std::string dwarf_line(const symbolize::PlaceFacts& facts, std::uint64_t into_function) {
  auto spot = facts.lines->spot_of({facts.elf_address - into_function});
  if (!spot) spot = facts.lines->spot_of({facts.elf_address});
  return spot ? line_text(spot->file, spot->line) : std::string();
}

std::string jit_line(const symbolize::JitCode::Function& function, std::uint64_t into_function) {
  const symbolize::JitLine* line = symbolize::line_at(function.lines, 0);
  if (line == nullptr) line = symbolize::line_at(function.lines, into_function);
  return line == nullptr ? std::string() : line_text(line->file, line->line);
}

std::string packed_line(symbolize::PackedSource& packed, const symbolize::PlaceFacts& facts) {
  const format::PackedAddress* known = packed.at(facts.symbol->start);
  if (known == nullptr || known->line == 0) known = packed.at(facts.shown_address);
  return known == nullptr ? std::string() : line_text(packed.text(known->file), known->line);
}

}  // namespace

std::string source_line(Resolver& resolver, const FramePlace& place) {
  if (place.location == FramePlace::kNone) return {};
  const Location& location = resolver.location(place.location);
  const auto frames = resolver.frames(location);
  if (place.inlined < frames.size() && frames[place.inlined].is_inlined)
    return line_text(frames[place.inlined].file, frames[place.inlined].line);
  const auto facts = location.is_caller ? resolver.facts_of_call(location) : resolver.facts(location);
  if (!facts.symbol || facts.source == nullptr) return {};
  const std::uint64_t into_function = facts.shown_address - facts.symbol->start;
  if (facts.lines != nullptr) return dwarf_line(facts, into_function);
  if (facts.source->jit != nullptr) return jit_line(*facts.source->jit, into_function);
  return facts.source->packed == nullptr ? std::string() : packed_line(*facts.source->packed, facts);
}

}  // namespace tacho::report
