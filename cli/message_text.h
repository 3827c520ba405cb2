// Parts of messages for people: a refusal with a caret below the column that is wrong, words to paste into a
// shell, text made safe for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace tacho::cli {

// The refusal of one column of a text that an option took (`at`: index of its byte). A second line shows the
// text, and a third a caret below the column:
//
//   --where: column 8: a value is missing at the end
//       bytes >
//              ^
//
// A text that is wider than a terminal, or has bytes of unknown width, gets no caret: the rest of it from the
// column on stands in the first line.
Error error_at(std::string_view option, std::string_view text, std::size_t at, std::string_view what);

// A message as format::printable() makes it safe: it may hold names of files, BPF objects, cgroups and
// processes. A newline stays where blanks follow, as above or in a verifier's log: such a line cannot pass
// for another message.
std::string printable_message(std::string_view text);

// A word for a command line that is printed to be typed or pasted: a file name in a hint. It is quoted where
// a shell would change it, with bytes that cannot be shown as $'\xNN'. A word that starts with a dash gets
// "./" in front, since it would be taken for an option.
std::string shell_word(std::string_view word);

}  // namespace tacho::cli
