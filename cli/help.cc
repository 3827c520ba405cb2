// The text of --help: usage line, description, one block for each row, epilog.
#include <algorithm>
#include <cstddef>

#include "cli/options.h"

namespace tacho::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kHelpColumn = 30;

// Breaks `text` at blanks so that no line passes kWidth; lines after the first start at `indent`.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    if (end < text.size() && text[end] == '\n') {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    }
    at = end + 1;
  }
  return out;
}

// "  -z, --compression-level[=LEVEL]"; without a short name its place is blank.
std::string spelled(const Option& option) {
  std::string names = option.names;
  for (std::size_t at = names.find(','); at != std::string::npos; at = names.find(',', at + 1))
    names.insert(at + 1, 1, ' ');
  const bool long_only = names.starts_with("--");
  if (option.takes == Takes::Value)
    names += " " + option.value;
  else if (option.takes != Takes::Nothing)
    names += (names.find("--") == std::string::npos ? "[" : "[=") + option.value + "]";
  return (long_only ? "      " : "  ") + names;
}

std::string block(const Option& option) {
  std::string out = spelled(option);
  // A long spelling gets a line of its own.
  out += out.size() + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                      : std::string(kHelpColumn - out.size(), ' ');
  return out + wrapped(option.help, kHelpColumn) + "\n";
}

}  // namespace

std::string help_text(const CommandLine& line) {
  std::string out = "Usage: " + line.program;
  if (!line.synopsis.empty()) out += " " + line.synopsis;
  std::string own, common;
  for (const Option& option : line.options)
    if (!option.help.empty()) (option.is_common ? common : own) += block(option);
  out += "\n\n" + wrapped(line.description, 0) + "\n\nOptions:\n" + own;
  const bool dash_h_is_free = std::ranges::none_of(line.options, [](const Option& option) {
    return option.names == "-h" || option.names.starts_with("-h,");
  });
  out += block({dash_h_is_free ? "-h,--help" : "--help", Takes::Nothing, "", "show this text", {}});
  if (!common.empty()) out += "\nCommon options:\n" + common;
  if (!line.epilog.empty()) out += "\n" + line.epilog + (line.epilog.ends_with('\n') ? "" : "\n");
  return out;
}

}  // namespace tacho::cli
