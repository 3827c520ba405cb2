#include "cli/absent_options.h"

#include <set>
#include <string>

#include "format/base/parse_text.h"

namespace tacho::cli {

void add_absent_options(std::vector<Option>& rows, std::span<const AbsentOption> absent) {
  std::set<std::string> taken;
  for (const Option& row : rows)
    for (std::string_view rest = row.names; !rest.empty();) taken.emplace(format::take_until(rest, ','));
  for (const AbsentOption& option : absent) {
    std::string names;  // spellings that no row has
    for (std::string_view rest = option.names; !rest.empty();)
      if (const auto [name, is_new] = taken.emplace(format::take_until(rest, ',')); is_new)
        names += (names.empty() ? "" : ",") + *name;
    if (names.empty()) continue;
    const std::string shown = names.substr(names.rfind(',') + 1);
    rows.push_back({std::move(names), option.takes, "VALUE", "",
                    [shown, instead = option.instead](std::string_view) -> Result<> {
                      return use_error(shown + ": " + std::string(instead));
                    }});
  }
}

}  // namespace tacho::cli
