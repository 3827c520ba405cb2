// Tables that fit a terminal: columns of names become narrower, and names are cut in the middle, where they
// differ least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::cli {

// The width of the terminal on standard output; 0 when it is no terminal or does not report its width.
std::size_t terminal_width();

// The width of a text on a terminal: its characters, without colour escapes.
std::size_t shown_width(std::string_view text);

// No column of names becomes narrower than this.
inline constexpr std::size_t kLeastNameWidth = 12;

// `text` cut to `width` characters: "std::vector<int..iterator::next"; below a width of 5 only its start.
std::string cut_in_the_middle(std::string_view text, std::size_t width);

// Makes the widest columns of names narrower, but none narrower than kLeastNameWidth, until all columns with
// `gap` blanks between them fit into `room`, if possible. `room` 0: no limit.
void fit_columns(std::vector<std::size_t>& widths, const std::vector<bool>& are_names, std::size_t gap,
                 std::size_t room);

// A column of text_table().
struct TableColumn {
  // Number: at the right, never cut. Word: at the left, never cut. Spare: a word that is left out where the
  // table is too wide. Name: at the left, cut in the middle. List: words, of which the last are left out.
  enum class Kind : std::uint8_t { Number, Word, Spare, Name, List };
  std::string_view title;
  Kind kind = Kind::Number;
  std::size_t width = 0;  // without a limit; longer texts are not cut
  std::size_t gap = 1;    // blanks before it, without a limit; with a limit all have one width
};

// The lines of a table, the titles first. `rows`: a text for each column, or a single one, which gets a line
// for itself. `room`: columns of the terminal; 0: no limit.
std::string text_table(std::span<const TableColumn> columns, std::vector<std::vector<std::string>> rows,
                       std::size_t room);

}  // namespace tacho::cli
