// Makes untrusted names (threads, files, symbols, cgroups, events) safe to print: one function for each kind
// of output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::format {

enum class Names : std::uint8_t {
  Safe,
  Raw,  // --raw-names: perf's exact bytes
};

// Whether every byte is printable ASCII, so that nothing has to be escaped.
bool is_plain(std::string_view name);

// For a terminal or a text file: control characters, invalid UTF-8, line separators, direction overrides and
// invisible characters become \xNN, byte for byte; everything else stays. Joiners (ZWJ and ZWNJ) stay between
// characters of emoji, Arabic and other scripts that use them.
std::string printable(std::string_view name, Names names = Names::Safe);

// For text of several lines: as above, but newlines and tabs stay. Make names in it printable before.
std::string printable_lines(std::string_view text);

// For a frame of folded stacks: as printable(), and ';', the separator of frames, becomes ':'.
std::string printable_folded(std::string_view name, Names names = Names::Safe);
// The same text as the last frame of a line: the blank before a number at its end becomes \x20, since readers
// would take the number for a weight.
std::string printable_leaf(std::string_view folded);

// For text in quotes: as printable(), and \ and " are escaped by \, so that the original bytes can be
// recovered.
std::string printable_quoted(std::string_view name);

// For a JSON writer, which escapes quotes itself. A parser returns printable(), with the name's backslashes
// doubled.
std::string printable_json(std::string_view name);

// For a cell of CSV, quoted as in RFC 4180. A text that a spreadsheet would read as a formula gets an
// apostrophe in front; "-5" is a number and is unchanged.
std::string printable_csv(std::string_view name, Names names = Names::Safe);

}  // namespace tacho::format
