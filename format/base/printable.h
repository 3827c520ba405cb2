// Names from outside (threads, files, symbols, cgroups, events) made safe for where they are going: one
// function a target, for all programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::format {

enum class Names : std::uint8_t {
  Safe,
  Raw,  // --raw-names: perf's exact bytes
};

// True when every byte is printable ASCII: nothing to make safe for a terminal.
bool is_plain(std::string_view name);

// For a terminal or a text file: control characters, invalid UTF-8, line separators and direction overrides
// become \xNN, byte for byte; everything else stays.
std::string printable(std::string_view name, Names names = Names::Safe);

// For text of several lines: as above, but newlines and tabs stay. A name in it is made printable before.
std::string printable_lines(std::string_view text);

// For folded stacks: as above, and ';' (which parts frames) becomes ':'.
std::string printable_folded(std::string_view name, Names names = Names::Safe);

// For a place between quotes on a line: as printable(), and \ and " get a \ before them, so that what was
// made safe cannot be mistaken for the name's own text.
std::string printable_quoted(std::string_view name);

// For a JSON writer, which escapes quotes by itself. What a parser gives back is printable(), where the
// name's own backslashes are doubled.
std::string printable_json(std::string_view name);

// For a cell of CSV (RFC 4180: quotes around what could be mistaken). A text that a spreadsheet would take
// for a formula, by its first character, gets an apostrophe before it; "-5" is a number and stays one.
std::string printable_csv(std::string_view name, Names names = Names::Safe);

}  // namespace tacho::format
