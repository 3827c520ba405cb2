// Parts of messages: errors with a caret below the wrong column, words quoted for a shell, text made safe for
// a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace tacho::cli {

// An error at one column of an option's text (`at`: index of its byte). A second line shows the text, and a
// third a caret below the column:
//
//   --where: column 8: a value is missing at the end
//       bytes >
//              ^
//
// A text that is wider than a terminal, or has bytes of unknown width, gets no caret: the first line has the
// text from the column on.
Error error_at(std::string_view option, std::string_view text, std::size_t at, std::string_view what);

// Makes a message safe to print (format::printable()): it may contain names of files, BPF objects, cgroups
// and processes. Newlines followed by blanks are kept (a caret, the verifier's log), since such a line cannot
// be mistaken for another message.
std::string printable_message(std::string_view text);

// Quotes a word, for instance a file name in a hint, for a shell, if needed; bytes that cannot be shown
// become $'\xNN'. "./" is put before a word that starts with a dash, so that it is not an option.
std::string shell_word(std::string_view word);

// The noun after a number: "event" after 1, else "events"; "address", "addresses"; "entry", "entries".
std::string noun_after(std::uint64_t number, std::string_view singular);
// "1 event", "2 events".
std::string counted(std::uint64_t number, std::string_view singular);

}  // namespace tacho::cli
