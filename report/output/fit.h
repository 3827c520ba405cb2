// Tables that fit a terminal: columns of names give up room, and names are cut in the middle, where they
// differ least.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::report {

// Columns of the terminal that standard output is; 0: it is none, or none that says it.
std::size_t terminal_width();

// Columns that the text takes on a terminal: characters, without escapes of colours.
std::size_t shown_width(std::string_view text);

// The least width that names are cut to.
inline constexpr std::size_t kLeastNameWidth = 12;

// `text` in at most `width` characters: "std::vector<int..iterator::next"; of less than 5 only its begin.
std::string cut_in_the_middle(std::string_view text, std::size_t width);

// Makes the widest of the columns that hold names narrower, none below 12, until all columns and the `gap`
// before each but the first fit into `room`; as far as that goes. `room` 0: no limit.
void fit_columns(std::vector<std::size_t>& widths, const std::vector<bool>& are_names, std::size_t gap,
                 std::size_t room);

}  // namespace tacho::report
