#include "symbolize/names/perf_map.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>

#include "format/base/file.h"

namespace tacho::symbolize {
namespace {

// Takes a hexadecimal number and the blank behind it off the front.
std::optional<std::uint64_t> take_number(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  const auto used = static_cast<std::size_t>(end - line.data());
  if (failed != std::errc{} || used == line.size() || line[used] != ' ') return std::nullopt;
  line.remove_prefix(used + 1);
  return value;
}

std::optional<Symbol> parse_line(std::string_view line) {
  const auto start = take_number(line);
  const auto size = start ? take_number(line) : std::nullopt;
  if (!size || line.empty()) return std::nullopt;
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - *start;
  return Symbol{
      .start = *start, .end = *start + std::min(*size, most), .name = line, .binding = Binding::Global};
}

// Real maps have a line in 50 bytes and more. One of a few bytes each is meant to fill the memory.
std::size_t most_lines(std::size_t text_size) { return (std::size_t{1} << 18) + text_size / 32; }

}  // namespace

Result<SymbolTable> parse_perf_map(std::vector<std::byte> text) {
  SymbolTable table;
  std::string_view rest = table.own(std::string(format::as_text(text)));
  const std::size_t most = most_lines(rest.size());
  std::size_t count = 0;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    if (const auto symbol = parse_line(rest.substr(0, end))) {
      if (++count > most)
        return Error{"has more than " + std::to_string(most) + " lines, too many for its size", EFBIG};
      table.add(*symbol);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  table.finish();
  if (table.empty()) return Error{"no line of the form 'START SIZE NAME'"};
  return table;
}

}  // namespace tacho::symbolize
