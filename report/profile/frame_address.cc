#include "report/profile/frame_address.h"

#include <fmt/format.h>

#include <string_view>

#include "report/output/text_output.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::report {

namespace {

std::string file_text(std::string_view file) {
  return file == "??" ? std::string() : printable(std::string(file.substr(file.rfind('/') + 1)));
}

std::string line_text(std::string_view file, std::uint32_t line) {
  const std::string name = line == 0 ? std::string() : file_text(file);
  return name.empty() ? name : fmt::format("{}:{}", name, line);
}

std::string dwarf_line(const symbolize::LocationFacts& facts, std::uint64_t into_function) {
  auto spot = facts.lines->line_info({facts.elf_address - into_function});
  if (!spot) spot = facts.lines->line_info({facts.elf_address});
  return spot ? line_text(spot->file, spot->line) : std::string();
}

std::string jit_line(const symbolize::JitCode::Function& function, std::uint64_t into_function) {
  const symbolize::JitLine* line = symbolize::line_at(function.lines, 0);
  if (line == nullptr) line = symbolize::line_at(function.lines, into_function);
  return line == nullptr ? std::string() : line_text(line->file, line->line);
}

std::string packed_line(symbolize::PackedSource& packed, const symbolize::LocationFacts& facts) {
  const format::PackedAddress* const start = packed.at(facts.symbol->start);
  if (start != nullptr && start->line != 0) return line_text(packed.text(start->file), start->line);
  // The line of the one address that stands for all of the function would differ from recording to recording.
  const format::PackedAddress* const known = packed.at(facts.shown_address);
  return known == nullptr || known->line == 0 ? std::string() : file_text(packed.text(known->file));
}

}  // namespace

std::string source_line(Resolver& resolver, const FrameAddress& address) {
  if (address.location == kNo<LocationId>) return {};
  const Location& location = resolver.location(address.location);
  const auto frames = resolver.frames(location);
  if (address.inlined < frames.size() && frames[address.inlined].is_inlined)
    return line_text(frames[address.inlined].file, frames[address.inlined].line);
  const auto facts = location.is_caller ? resolver.facts_of_call(location) : resolver.facts(location);
  if (!facts.symbol || facts.source == nullptr) return {};
  const std::uint64_t into_function = facts.shown_address - facts.symbol->start;
  if (facts.lines != nullptr) return dwarf_line(facts, into_function);
  if (facts.source->jit != nullptr) return jit_line(*facts.source->jit, into_function);
  return facts.source->packed == nullptr ? std::string() : packed_line(*facts.source->packed, facts);
}

}  // namespace tacho::report
