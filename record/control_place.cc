#include "record/control_place.h"

#include <charconv>

namespace tacho::record {

std::optional<int> parse_descriptor(std::string_view text) {
  int number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = code == std::errc{} && end == text.data() + text.size() && number >= 0;
  return is_number ? std::optional(number) : std::nullopt;
}

Result<ControlPlace> parse_control(std::string_view text) {
  const auto wrong = [text] {
    return use_error("--control: '" + std::string(text) +
                     "' is neither fd:N[,ANSWERS] nor fifo:PATH[,ANSWERS]");
  };
  ControlPlace place;
  place.is_fifo = text.starts_with("fifo:");
  if (!place.is_fifo && !text.starts_with("fd:")) return wrong();
  const std::string_view names = text.substr(text.find(':') + 1);
  const auto comma = names.find(',');
  place.commands = names.substr(0, comma);
  if (comma != std::string_view::npos) place.answers = names.substr(comma + 1);
  const bool is_named =
      !place.commands.empty() && (comma == std::string_view::npos || !place.answers.empty());
  const bool are_numbers =
      parse_descriptor(place.commands) && (place.answers.empty() || parse_descriptor(place.answers));
  if (!is_named || (!place.is_fifo && !are_numbers)) return wrong();
  return place;
}

}  // namespace tacho::record
