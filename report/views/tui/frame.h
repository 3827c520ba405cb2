// Frames and keys: the messages between the sandboxed process that reads a capture and the process that owns
// the terminal. A frame is the whole screen as text with styles; the decoder checks all of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::report {

constexpr std::uint16_t kMostSide = 2000;  // rows or columns of a screen; of a larger one, the first ones

struct ScreenSize {
  std::uint16_t width = 80, height = 24;
  bool operator==(const ScreenSize&) const = default;
};

// Styles by meaning: the screen maps them to colours, or to attributes on terminals without colours.
enum class Style : std::uint8_t {
  Normal,
  Bar,      // title and last line
  Heading,  // names of columns
  High,     // shares of 5 % and more
  Medium,   // shares above 0.5 %
  Address,
  Jump,    // arrows of code
  Quiet,   // source lines, hints
  Notice,  // a message in place of rows
  Box,     // menus and questions
  Heat1,   // boxes of a heat map, from few samples to many
  Heat2,
  Heat3,
  Heat4,
  Heat5,
  User,    // code of programs, and the time in it
  Kernel,  // of the kernel
  kCount,
};
constexpr std::size_t kHeatStyles = 5;
constexpr Style heat_style(std::size_t number) {
  return static_cast<Style>(static_cast<std::size_t>(Style::Heat1) + number);
}

// Kinds of files that the view writes into the working directory, and their names.
enum class SavedAs : std::uint8_t {
  Capture,  // tacho top: top.data, top.1.data, ...
  Rows,     // perf.hist.0, perf.hist.1, ..., as perf report names them
  Code,     // FUNCTION.annotation, FUNCTION.annotation.1, ..., as perf annotate
  kCount,
};
// The path of a file to write. `name`: of a capture its path, of code its function. Slashes and unprintable
// bytes of the function's name become "_", as the name may come from a capture.
std::string saved_path(SavedAs as, std::string_view name, unsigned number);

struct StyledText {
  std::uint16_t column = 0;
  Style style = Style::Normal;
  std::string text;  // UTF-8 without control characters
};

struct FrameRow {
  Style fill = Style::Normal;  // of the columns without a run
  bool is_selected = false;
  std::vector<StyledText> runs;  // a later one covers an earlier one
};

struct Frame {
  explicit Frame(ScreenSize of = {}) : size(of), rows(of.height) {}

  // Text is made safe and cut at the right edge; rows and columns outside are left out.
  void put_text(std::size_t row, std::size_t column, Style style, std::string_view text);
  // A row of one style from edge to edge.
  void bar(std::size_t row, Style style, std::string_view text);
  // The last row: a message or hints.
  void last_line(std::string_view text) { bar(size.height - std::size_t{1}, Style::Bar, text); }
  // Whether a view fits; otherwise the frame says that it does not.
  bool has_room();

  ScreenSize size;
  bool waits = true;    // for a key; false: reading goes on after the frame is drawn
  bool begins = false;  // the first frame of a reading process: earlier keys are dropped
  bool draws = true;    // false: the screen stays as it is
  // Number of bytes in the memfd Screen::saved_file() to be written to saved_path(); 0: none. The
  // answer is Key::Saved or Key::NotSaved.
  std::uint64_t saved_bytes = 0;
  SavedAs saved_as = SavedAs::Capture;
  std::string saved_name;                                         // SavedAs::Code: the function
  std::optional<std::pair<std::uint16_t, std::uint16_t>> cursor;  // row and column; nullopt: hidden
  std::vector<FrameRow> rows;
};

// Blocks of a column, by its height in eighths.
inline constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// Terminal columns of UTF-8; a broken byte takes one.
std::size_t columns_of(std::string_view text);
// `text` in at most `width` columns: shortened in the middle or at the end.
std::string fit_middle(std::string_view text, std::size_t width);
std::string_view fit_begin(std::string_view text, std::size_t width);
// `text` without its first `columns`.
std::string_view from_column(std::string_view text, std::size_t columns);
// The text of a row, without styles.
std::string text_of(const FrameRow& row);
// `text` with blanks at its end, up to `width`.
std::string padded_to(std::string text, std::size_t width);
// The first character of `text` and the bytes it takes; U+FFFD and 1 for a broken one. `text` is not empty.
std::pair<char32_t, std::size_t> first_character(std::string_view text);

// encode() writes the length, then the frame; decode_frame() takes the bytes after the length.
constexpr std::size_t kLengthBytes = 4, kMostFrameBytes = std::size_t{4} << 20;
std::string encode(const Frame& frame);
Result<Frame> decode_frame(format::Bytes bytes);

// Keys: a character is its Unicode number; other keys have numbers above Unicode's.
enum class Key : std::uint32_t {
  None = 0,  // nothing was pressed
  Enter = '\n',
  Tab = '\t',
  Escape = 27,
  Backspace = 127,
  Up = 0x110000,
  Down,
  Left,
  Right,
  PageUp,
  PageDown,
  Home,
  End,
  BackTab,
  Delete,
  F1,
  Resize,
  Click,  // of the first mouse button
  DoubleClick,
  WheelUp,
  WheelDown,
  Saved,     // the file was written; column: its number in saved_path()
  NotSaved,  // it was not; column: errno
};

// A key with the size of the screen when it was pressed, and where a mouse was.
struct KeyPress {
  Key key = Key::None;
  ScreenSize size;
  std::uint16_t row = 0, column = 0;

  bool is(char c) const { return key == static_cast<Key>(c); }
};
// The lines by which a key moves in a list: an arrow, the wheel, PageUp, PageDown or Space; nullopt: another
// key. `page`: the lines of a page.
std::optional<std::ptrdiff_t> lines_moved(const KeyPress& press, std::size_t page);
// `at` moved by `by`, but not out of the range 0 to `count` - 1.
std::size_t moved(std::size_t at, std::ptrdiff_t by, std::size_t count);

// The first of `height` shown lines, of `count`: `top`, scrolled as little as line `at` needs to be shown.
std::size_t top_showing(std::size_t at, std::size_t top, std::size_t height, std::size_t count);

constexpr std::size_t kKeyBytes = 12;
std::string encode(const KeyPress& press);
Result<KeyPress> decode_key(format::Bytes bytes);

}  // namespace tacho::report
