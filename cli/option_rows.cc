#include "cli/option_rows.h"

#include <utility>

namespace tacho::cli {

Option flag(std::string names, std::string help, bool& target, bool given) {
  return {std::move(names), Takes::Nothing, "", std::move(help),
          [&target, given](std::string_view) -> Result<> {
            target = given;
            return Done{};
          }};
}

Option text(std::string names, std::string value, std::string help, std::string& target) {
  return {std::move(names), Takes::Value, std::move(value), std::move(help),
          [&target](std::string_view given) -> Result<> {
            target = given;
            return Done{};
          }};
}

Option number(std::string names, std::string value, std::string help, std::uint64_t least, std::uint64_t most,
              std::uint64_t& target) {
  const std::string shown = names.substr(names.rfind(',') + 1);
  return {std::move(names), Takes::Value, std::move(value), std::move(help),
          [shown, least, most, &target](std::string_view given) -> Result<> {
            const auto parsed = parse_number(shown, given, least, most);
            if (!parsed) return parsed.error();
            target = *parsed;
            return Done{};
          }};
}

Option passed_on(std::string names, Takes takes, std::string value, std::string help,
                 std::vector<std::string>& words) {
  const std::string shown = names.substr(names.rfind(',') + 1);
  return {std::move(names), takes, std::move(value), std::move(help),
          [shown, &words](std::string_view given) -> Result<> {
            words.push_back(given.empty() ? shown : shown + "=" + std::string(given));
            return Done{};
          }};
}

Option accepted(std::string names, Takes takes, std::string help) {
  return {std::move(names), takes, takes == Takes::Nothing ? "" : "VALUE", std::move(help),
          [](std::string_view) -> Result<> { return Done{}; }};
}

void mark_common(std::vector<Option>& rows, std::size_t first) {
  for (std::size_t i = first; i < rows.size(); ++i) rows[i].is_common = true;
}

}  // namespace tacho::cli
