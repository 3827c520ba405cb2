#include "symbolize/names/kallsyms.h"

#include <algorithm>
#include <array>

#include "format/file.h"
#include "format/large_pages.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kPage = 4096;      // bytes
constexpr std::size_t kBytesPerLine = 40;  // about, in a real kallsyms

struct Line {
  std::uint64_t address = 0;
  std::string_view name;
  std::string_view module;  // "[ext4]"; empty: the kernel's own
  char type = 0;            // as nm prints it
};

// What each byte is worth as a hexadecimal digit; 16 when it is none.
constexpr std::array<std::uint8_t, 256> kHexDigits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(16);
  for (std::uint8_t i = 0; i < 10; ++i) digits['0' + i] = i;
  for (std::uint8_t i = 0; i < 6; ++i) digits['a' + i] = digits['A' + i] = static_cast<std::uint8_t>(10 + i);
  return digits;
}();

// Nothing when it is not "ADDRESS TYPE NAME" or "ADDRESS TYPE NAME<TAB>[MODULE]".
std::optional<Line> parse_line(std::string_view text) {
  Line line;
  std::size_t at = 0;
  for (; at < text.size() && at <= 16; ++at) {
    const std::uint8_t digit = kHexDigits[static_cast<std::uint8_t>(text[at])];
    if (digit == 16) break;
    line.address = line.address << 4 | digit;
  }
  if (at == 0 || at > 16 || at + 4 > text.size() || text[at] != ' ' || text[at + 2] != ' ')
    return std::nullopt;
  line.type = text[at + 1];
  line.name = text.substr(at + 3);
  const auto tab = line.name.ends_with(']') ? line.name.find('\t') : std::string_view::npos;
  if (tab != std::string_view::npos) {
    line.module = line.name.substr(tab + 1);
    line.name = line.name.substr(0, tab);
  }
  return line;
}

// Text, weak, data and bss, global or not: what perf takes.
bool is_wanted(const Line& line) {
  const char type = static_cast<char>(line.type | 0x20);
  return (type == 't' || type == 'w' || type == 'd' || type == 'b') && !line.name.starts_with('$');
}

using Lines = std::vector<Line, format::LargePages<Line>>;

Lines parse_lines(std::string_view text) {
  Lines lines;
  lines.reserve(text.size() / kBytesPerLine);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = parse_line(text.substr(0, end));
    if (line && is_wanted(*line)) lines.push_back(*line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  constexpr auto earlier = [](const Line& a, const Line& b) { return a.address < b.address; };
  if (!std::ranges::is_sorted(lines, earlier)) std::ranges::stable_sort(lines, earlier);
  return lines;
}

// kallsyms has no sizes. A symbol reaches to the next one; the last of the kernel or of a module to a page
// after.
std::uint64_t end_of(const Line& line, const Line* next) {
  if (next && next->module == line.module) return next->address;
  const std::uint64_t end = (line.address + kPage + kPage - 1) / kPage * kPage;
  return std::max(end, line.address);
}

Symbol symbol_of(const Line& line, std::uint64_t end, std::uint64_t moved_by) {
  return {
      .start = line.address - moved_by, .end = end - moved_by, .name = line.name, .binding = Binding::Global};
}

// How much higher this text's kernel lies than the recorded one.
Result<std::uint64_t> distance(const Lines& lines, const std::optional<ReferenceSymbol>& reference) {
  if (!reference) return std::uint64_t{0};
  const auto found = std::ranges::find_if(
      lines, [&](const Line& line) { return line.name == reference->name && line.module.empty(); });
  if (found == lines.end()) {
    return Error{"no symbol " + reference->name +
                 ", so where the recorded kernel lay cannot be told; give the " +
                 "kallsyms of the kernel that was recorded"};
  }
  return found->address - reference->address;
}

}  // namespace

Result<Kallsyms> Kallsyms::parse(std::vector<std::byte> text,
                                 const std::optional<ReferenceSymbol>& reference) {
  Kallsyms result;
  result.text_ = std::move(text);
  const Lines lines = parse_lines(format::as_text(result.text_));
  if (lines.empty()) return Error{"no line of the form 'ADDRESS TYPE NAME'"};
  if (lines.back().address == 0) {
    return Error{
        "every address is zero: it was read without the permission to see addresses; read it as root"};
  }
  auto moved_by = distance(lines, reference);
  if (!moved_by) return std::move(moved_by.error());
  result.kernel_.reserve(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line* const next = i + 1 < lines.size() ? &lines[i + 1] : nullptr;
    const std::uint64_t end = end_of(lines[i], next);
    // Only the last of several aliases has a size, and perf prefers names with one.
    if (next && next->address == lines[i].address && end == lines[i].address) continue;
    if (lines[i].module.empty()) {
      result.kernel_.add(symbol_of(lines[i], end, *moved_by));
    } else {
      result.modules_[lines[i].module].add(symbol_of(lines[i], end, 0));
    }
  }
  result.kernel_.finish();
  for (auto& [name, table] : result.modules_) table.finish();
  return result;
}

SymbolTable* Kallsyms::module(std::string_view name) {
  const auto found = modules_.find(name);
  return found == modules_.end() ? nullptr : &found->second;
}

}  // namespace tacho::symbolize
