#include "cli/absent_options.h"

#include <algorithm>
#include <string>

namespace tacho::cli {
namespace {

bool has_spelling(std::string_view names, std::string_view wanted) {
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(',', at), names.size());
    if (names.substr(at, end - at) == wanted) return true;
    at = end + 1;
  }
  return false;
}

// The spellings of `names` that no row has, in the same form.
std::string free_spellings(const std::vector<Option>& rows, std::string_view names) {
  std::string free;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(',', at), names.size());
    const std::string_view name = names.substr(at, end - at);
    const bool is_taken =
        std::ranges::any_of(rows, [&](const Option& row) { return has_spelling(row.names, name); });
    if (!is_taken && !free.empty()) free += ',';
    if (!is_taken) free += name;
    at = end + 1;
  }
  return free;
}

}  // namespace

void add_absent_options(std::vector<Option>& rows, std::span<const AbsentOption> absent) {
  for (const AbsentOption& option : absent) {
    std::string names = free_spellings(rows, option.names);
    if (names.empty()) continue;
    const std::string shown = names.substr(names.rfind(',') + 1);
    rows.push_back({std::move(names), option.takes, "VALUE", "",
                    [shown, instead = option.instead](std::string_view) -> Result<> {
                      return use_error(shown + ": " + std::string(instead));
                    }});
  }
}

}  // namespace tacho::cli
