#include "report/output/colour.h"

#include <cstdlib>

namespace tacho::report {
namespace {

constexpr std::string_view kRed = "\033[31m", kGreen = "\033[32m", kPlain = "\033[m";
constexpr double kLeastRed = 5.0, kMostPlain = 0.5;  // percent

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

Result<Colour> parse_colour(std::string_view option, std::string_view text) {
  if (text == "auto") return Colour::Auto;
  if (text == "always") return Colour::Always;
  if (text == "never") return Colour::Never;
  return use_error(std::string(option) + ": '" + std::string(text) + "' is none of always, auto and never");
}

bool has_colour(Colour colour, bool is_for_person) {
  if (colour != Colour::Auto) return colour == Colour::Always;
  return is_for_person && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::string coloured_share(double percent, std::string_view text) {
  const std::string_view colour = percent >= kLeastRed   ? kRed
                                  : percent > kMostPlain ? kGreen
                                                         : std::string_view();
  if (colour.empty()) return std::string(text);
  return std::string(colour) + std::string(text) + std::string(kPlain);
}

}  // namespace tacho::report
