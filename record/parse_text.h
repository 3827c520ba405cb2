// Parsing of short texts: values of options, and files of /proc, sysfs and tracefs.
#pragma once

#include <string>
#include <string_view>

#include "format/base/file.h"
#include "format/base/parse_text.h"

namespace tacho::record {

using format::field_of_status;
using format::number_at;
using format::take_number;
using format::take_prefix;
using format::take_until;
using format::whole_number;
using format::without_octal_escapes;

// The text of a file; empty: it cannot be read.
inline std::string text_of_file(const std::string& path) {
  const auto bytes = format::read_file(path);
  return bytes ? std::string(format::as_text(*bytes)) : std::string();
}

// Without blanks, tabs and newlines at both ends.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n";
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Without quotes around it.
inline std::string unquoted(std::string text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

// Whether the text is a pattern of fnmatch(3).
inline bool is_glob(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

}  // namespace tacho::record
