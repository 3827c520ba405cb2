#include "report/output/svg_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "report/output/text_output.h"

namespace tacho::report {

std::string xml_text(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<std::uint8_t>(c);
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if ((byte < 0x20 && c != '\t' && c != '\n') || byte == 0x7f) {
      escaped += fmt::format("\\x{:02x}", byte);
    } else if (text.substr(i).starts_with("\xef\xbf\xbe") || text.substr(i).starts_with("\xef\xbf\xbf")) {
      escaped += fmt::format("\\xef\\xbf\\x{:02x}", static_cast<std::uint8_t>(text[i + 2]));
      i += 2;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string with_commas(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string with_origin(std::string what, const format::Environment& environment) {
  if (environment.hostname) what += (what.empty() ? "on " : " on ") + printable(*environment.hostname);
  std::string command;
  for (const std::string& word : environment.command_line) command += (command.empty() ? "" : " ") + word;
  constexpr std::size_t kMost = 200;
  std::string shown = printable(command);
  if (shown.size() > kMost) shown = shown.substr(0, kMost) + "...";
  if (!shown.empty()) what += ": " + printable(shown);  // it may have been cut within a letter
  return what;
}

std::string fitting_text(std::string_view text, double width) {
  double left = (width - 6) / kSvgLetter;
  if (left < 2) return {};
  std::size_t at = 0, letters = 0, before_last = 0;
  while (at < text.size()) {
    std::size_t size = 1;
    while (at + size < text.size() && (static_cast<std::uint8_t>(text[at + size]) & 0xc0) == 0x80) ++size;
    left -= size > 2 ? 2 : 1;
    if (left < 0) break;
    before_last = letters == 0 ? 0 : at;
    at += size;
    ++letters;
  }
  if (at == text.size()) return std::string(text);
  if (letters < 3) return {};
  return std::string(text.substr(0, before_last)) + "…";
}

}  // namespace tacho::report
