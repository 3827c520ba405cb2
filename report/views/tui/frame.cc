#include "report/views/tui/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "report/output/text_output.h"

namespace tacho::report {
namespace {

constexpr std::size_t kLongestSavedName = 200;  // bytes

struct Range {
  char32_t first, last;
};
// Code points without width (Unicode Mn, Me and Cf of common scripts), ascending.
constexpr Range kZeroWidth[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x5bf, 0x5bf},   {0x5c1, 0x5c2},
    {0x5c4, 0x5c5},   {0x5c7, 0x5c7},   {0x610, 0x61a},   {0x64b, 0x65f},   {0x670, 0x670},
    {0x6d6, 0x6dc},   {0x6df, 0x6e4},   {0x6e7, 0x6e8},   {0x6ea, 0x6ed},   {0x900, 0x902},
    {0x93c, 0x93c},   {0x941, 0x948},   {0x94d, 0x94d},   {0xe31, 0xe31},   {0xe34, 0xe3a},
    {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x2060, 0x2064},
    {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef}};
// East Asian wide characters and emoji.
constexpr Range kWide[] = {{0x1100, 0x115f},  {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97c},
                           {0xac00, 0xd7a3},  {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                           {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
                           {0x20000, 0x3fffd}};

bool is_in(const auto& ranges, char32_t character) {
  const auto* const range =
      std::ranges::lower_bound(ranges, character, {}, [](const Range& one) { return one.last; });
  return range != std::end(ranges) && range->first <= character;
}

// Terminal columns of a character: 0 for a combining one, 2 for a wide one.
std::size_t column_width(char32_t character) {
  if (character < 0x300) return 1;
  return is_in(kZeroWidth, character) ? 0 : is_in(kWide, character) ? 2 : 1;
}

void add_number(std::string& to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

constexpr std::uint16_t kNoCursor = 0xffff;

}  // namespace

std::pair<char32_t, std::size_t> first_character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (size == 0 || first > 0xf4 || text.size() < size) return {0xfffd, 1};
  char32_t character = first & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0xfffd, 1};
    character = character << 6 | (byte(i) & 0x3fU);
  }
  return {character, size};
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto [character, size] = first_character(text);
    columns += column_width(character);
    text.remove_prefix(size);
  }
  return columns;
}

std::string_view fit_begin(std::string_view text, std::size_t width) {
  std::size_t at = 0, columns = 0;
  while (at < text.size()) {
    const auto [character, size] = first_character(text.substr(at));
    if (columns + column_width(character) > width) break;
    columns += column_width(character);
    at += size;
  }
  return text.substr(0, at);
}

std::string_view from_column(std::string_view text, std::size_t columns) {
  text.remove_prefix(fit_begin(text, columns).size());
  return text;
}

std::string fit_middle(std::string_view text, std::size_t width) {
  constexpr std::string_view kCut = "..";
  if (text.size() <= width) return std::string(text);
  const std::size_t all = columns_of(text);
  if (all <= width) return std::string(text);
  if (width < kCut.size() + 3) return std::string(fit_begin(text, width));
  const std::size_t kept = width - kCut.size();
  const std::string_view begin = fit_begin(text, kept - kept / 2);
  std::string_view end = from_column(text, all - kept / 2);
  // If the cut is inside of a wide character, one more column is removed.
  while (columns_of(end) > kept / 2) end.remove_prefix(first_character(end).second);
  return std::string(begin).append(kCut).append(end);
}

std::string padded_to(std::string text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  if (columns < width) text.append(width - columns, ' ');
  return text;
}

std::string text_of(const FrameRow& row) {
  std::string line;
  for (const StyledText& run : row.runs) {
    std::string text = padded_to(std::string(fit_begin(line, run.column)), run.column);
    const std::string_view rest = from_column(line, run.column + columns_of(run.text));
    line = text.append(run.text).append(rest);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void Frame::put_text(std::size_t row, std::size_t column, Style style, std::string_view text) {
  if (row >= rows.size() || column >= size.width || text.empty()) return;
  // At most four bytes for each column are needed.
  constexpr std::size_t kMostBytes = 16;
  const std::string safe = printable(text.substr(0, kMostBytes * size.width));
  rows[row].runs.push_back(
      {static_cast<std::uint16_t>(column), style, std::string(fit_begin(safe, size.width - column))});
}

void Frame::bar(std::size_t row, Style style, std::string_view text) {
  if (row >= rows.size()) return;
  rows[row] = {.fill = style, .is_selected = false, .runs = {}};
  put_text(row, 0, style, text);
}

bool Frame::has_room() {
  if (size.height >= 4 && size.width >= 20) return true;
  put_text(0, 0, Style::Notice, "too small");
  return false;
}

std::string saved_path(SavedAs as, std::string_view name, unsigned number) {
  if (as == SavedAs::Rows) return fmt::format("perf.hist.{}", number);
  if (as == SavedAs::Code) {
    std::string path(name.substr(0, kLongestSavedName));
    for (char& c : path)
      if (c <= ' ' || c == '/' || c > '~') c = '_';
    if (path.empty() || path.front() == '.' || path.front() == '-') path.insert(path.begin(), '_');
    return path + ".annotation" + (number == 0 ? std::string() : fmt::format(".{}", number));
  }
  if (number == 0) return std::string(name);
  const std::size_t file = name.rfind('/') + 1, dot = name.rfind('.');
  const std::size_t at = dot == name.npos || dot <= file ? name.size() : dot;
  return fmt::format("{}.{}{}", name.substr(0, at), number, name.substr(at));
}

std::string encode(const Frame& frame) {
  std::string bytes;
  add_number(bytes, (frame.waits ? 1U : 0U) | (frame.begins ? 2U : 0U) | (frame.draws ? 4U : 0U), 1);
  add_number(bytes, frame.saved_bytes, 8);
  add_number(bytes, static_cast<std::uint8_t>(frame.saved_as), 1);
  const std::string_view saved_name = std::string_view(frame.saved_name).substr(0, kLongestSavedName);
  add_number(bytes, saved_name.size(), 1);
  bytes += saved_name;
  add_number(bytes, frame.size.width, 2);
  add_number(bytes, frame.size.height, 2);
  const auto [row, column] = frame.cursor.value_or(std::pair{kNoCursor, kNoCursor});
  add_number(bytes, row, 2);
  add_number(bytes, column, 2);
  for (const FrameRow& one : frame.draws ? std::span(frame.rows) : std::span<const FrameRow>()) {
    add_number(bytes, static_cast<std::uint8_t>(one.fill), 1);
    add_number(bytes, one.is_selected ? 1 : 0, 1);
    add_number(bytes, one.runs.size(), 2);
    for (const StyledText& run : one.runs) {
      add_number(bytes, run.column, 2);
      add_number(bytes, static_cast<std::uint8_t>(run.style), 1);
      add_number(bytes, run.text.size(), 2);
      bytes += run.text;
    }
  }
  std::string all;
  add_number(all, bytes.size(), kLengthBytes);
  return all + bytes;
}

Result<Frame> decode_frame(format::Bytes bytes) {
  const Error broken{"damaged frame from the reading process"};
  const auto style_of = [](std::uint8_t number) {
    return number < static_cast<std::uint8_t>(Style::kCount) ? static_cast<Style>(number) : Style::Normal;
  };
  format::Cursor in(bytes, std::endian::little);
  const auto flags = in.read<std::uint8_t>();
  const auto saved_bytes = in.read<std::uint64_t>();
  const auto saved_as = in.read<std::uint8_t>();
  const std::string_view saved_name = in.text(in.read<std::uint8_t>());
  ScreenSize size;
  size.width = in.read<std::uint16_t>();
  size.height = in.read<std::uint16_t>();
  if (in.failed() || size.width > kMostSide || size.height > kMostSide) return broken;
  Frame frame(size);
  frame.waits = (flags & 1U) != 0;
  frame.begins = (flags & 2U) != 0;
  frame.draws = (flags & 4U) != 0;
  if (saved_as >= static_cast<std::uint8_t>(SavedAs::kCount)) return broken;
  frame.saved_bytes = saved_bytes;
  frame.saved_as = static_cast<SavedAs>(saved_as);
  frame.saved_name = saved_name;
  const auto row = in.read<std::uint16_t>(), column = in.read<std::uint16_t>();
  if (row < size.height && column < size.width) frame.cursor = {row, column};
  if (!frame.draws) frame.rows.clear();
  for (FrameRow& one : frame.rows) {
    one.fill = style_of(in.read<std::uint8_t>());
    one.is_selected = in.read<std::uint8_t>() != 0;
    const auto runs = in.read<std::uint16_t>();
    for (std::uint16_t i = 0; i < runs && !in.failed(); ++i) {
      const auto at = in.read<std::uint16_t>();
      const Style style = style_of(in.read<std::uint8_t>());
      const auto length = in.read<std::uint16_t>();
      const auto taken = in.take_bytes(length);
      const std::string_view text(reinterpret_cast<const char*>(taken.data()), taken.size());
      if (at >= size.width) continue;
      const std::string safe = printable(text);
      one.runs.push_back({at, style, std::string(fit_begin(safe, size.width - at))});
    }
    if (in.failed()) return broken;
  }
  if (in.left() != 0) return broken;
  return frame;
}

std::optional<std::ptrdiff_t> lines_moved(const KeyPress& press, std::size_t page) {
  constexpr std::ptrdiff_t kWheel = 3;
  switch (press.key) {
    case Key::Up:
      return -1;
    case Key::Down:
      return 1;
    case Key::WheelUp:
      return -kWheel;
    case Key::WheelDown:
      return kWheel;
    case Key::PageUp:
      return -static_cast<std::ptrdiff_t>(page);
    case Key::PageDown:
      return static_cast<std::ptrdiff_t>(page);
    default:
      return press.is(' ') ? std::optional(static_cast<std::ptrdiff_t>(page)) : std::nullopt;
  }
}

std::size_t moved(std::size_t at, std::ptrdiff_t by, std::size_t count) {
  const auto last = static_cast<std::ptrdiff_t>(std::max<std::size_t>(count, 1)) - 1;
  return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(at) + by, 0, last));
}

std::size_t top_showing(std::size_t at, std::size_t top, std::size_t height, std::size_t count) {
  top = std::max(std::min(top, at), at + 1 - std::min(at + 1, height));
  return std::min(top, count - std::min(count, height));
}

std::string encode(const KeyPress& press) {
  std::string bytes;
  add_number(bytes, static_cast<std::uint32_t>(press.key), 4);
  for (const std::uint16_t number : {press.size.width, press.size.height, press.row, press.column})
    add_number(bytes, number, 2);
  return bytes;
}

Result<KeyPress> decode_key(format::Bytes bytes) {
  format::Cursor in(bytes, std::endian::little);
  KeyPress press;
  press.key = static_cast<Key>(in.read<std::uint32_t>());
  for (std::uint16_t* const number : {&press.size.width, &press.size.height, &press.row, &press.column})
    *number = in.read<std::uint16_t>();
  if (in.failed() || press.size.width > kMostSide || press.size.height > kMostSide)
    return Error{"damaged key from the terminal process"};
  return press;
}

}  // namespace tacho::report
