#include "record/host/kernel_functions.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>
#include <utility>

#include "cli/nearest.h"

namespace tacho::record {
namespace {

struct Symbol {
  std::uint64_t address = 0;  // 0: hidden
  char type = '?';
  std::string_view name;
};

// "ffffffffc0a01230 t ext4_read\t[ext4]"; nothing for a line of another form.
std::optional<Symbol> parse_symbol(std::string_view line) {
  Symbol symbol;
  const auto end = std::from_chars(line.data(), line.data() + line.size(), symbol.address, 16);
  line.remove_prefix(static_cast<std::size_t>(end.ptr - line.data()));
  if (end.ec != std::errc() || line.size() < 4 || line[0] != ' ' || line[2] != ' ') return std::nullopt;
  symbol.type = line[1];
  line.remove_prefix(3);
  symbol.name = line.substr(0, line.find('\t'));
  return symbol;
}

bool is_code(const Symbol& symbol) {
  return std::string_view("tTwW").find(symbol.type) != std::string_view::npos;
}

template <class Use>
void for_each_symbol(std::string_view kallsyms, Use use) {
  while (!kallsyms.empty()) {
    const std::string_view line = kallsyms.substr(0, kallsyms.find('\n'));
    kallsyms.remove_prefix(std::min(line.size() + 1, kallsyms.size()));
    if (const auto symbol = parse_symbol(line)) use(*symbol);
  }
}

// Bytes up to the next symbol that lies higher; 0: not known.
std::uint64_t length_of(std::string_view kallsyms, std::uint64_t address) {
  std::uint64_t next = ~std::uint64_t{0};
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    if (symbol.address > address) next = std::min(next, symbol.address);
  });
  return next == ~std::uint64_t{0} ? 0 : next - address;
}

// Only names of about the same length: the list has a hundred thousand.
std::string suggestion_for(std::string_view kallsyms, std::string_view function) {
  std::vector<std::string> names;
  const std::size_t most_away = function.size() / 3;
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    const std::size_t longer = std::max(symbol.name.size(), function.size());
    const std::size_t shorter = std::min(symbol.name.size(), function.size());
    if (is_code(symbol) && longer - shorter <= most_away) names.emplace_back(symbol.name);
  });
  return cli::suggestion(function, names);
}

}  // namespace

std::vector<std::string> kernel_function_names(std::string_view kallsyms) {
  std::vector<std::string> names;
  for_each_symbol(kallsyms, [&names](const Symbol& symbol) {
    if (is_code(symbol)) names.emplace_back(symbol.name);
  });
  return names;
}

Result<> check_kernel_function(std::string_view kallsyms, std::string_view function, std::uint64_t offset) {
  std::optional<Symbol> found;
  bool is_data = false;
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    if (symbol.name != function) return;
    if (is_code(symbol) && !found) found = symbol;
    is_data = is_data || !is_code(symbol);
  });
  if (!found) {
    if (is_data) return Error{fmt::format("'{}' is no function", function)};
    return Error{
        fmt::format("this kernel has no function '{}'{}", function, suggestion_for(kallsyms, function))};
  }
  if (offset == 0 || found->address == 0) return Done{};
  const std::uint64_t length = length_of(kallsyms, found->address);
  if (length == 0 || offset < length) return Done{};
  return Error{fmt::format("'{}' is {} bytes long, and {} lies behind it", function, length, offset)};
}

namespace {

// "ffffffff812a0040 vfs_read", "vfs_read", "ext4_read [ext4]".
struct TraceableLine {
  std::uint64_t address = 0;
  std::string_view name;  // empty: it is of another form
};
TraceableLine next_traceable(std::string_view& traceable, bool has_address) {
  std::string_view line = traceable.substr(0, traceable.find('\n'));
  traceable.remove_prefix(std::min(line.size() + 1, traceable.size()));
  TraceableLine out;
  if (has_address) {
    const auto end = std::from_chars(line.data(), line.data() + line.size(), out.address, 16);
    line.remove_prefix(static_cast<std::size_t>(end.ptr - line.data()));
    if (line.empty() || line.front() != ' ') return {};
    line.remove_prefix(1);
  }
  out.name = line.substr(0, line.find_first_of(" \t"));
  return out;
}

}  // namespace

std::map<std::string, std::vector<std::uint64_t>> function_places(std::string_view traceable,
                                                                  std::string_view kallsyms,
                                                                  const std::vector<std::string>& names) {
  std::unordered_set<std::string_view> wanted(names.begin(), names.end());
  if (!traceable.empty()) {
    std::unordered_set<std::string_view> listed;
    while (!traceable.empty()) {
      const auto name = next_traceable(traceable, false).name;
      if (wanted.contains(name)) listed.insert(name);
    }
    wanted = std::move(listed);
  }
  std::map<std::string, std::vector<std::uint64_t>> places;
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    if (symbol.address != 0 && is_code(symbol) && wanted.contains(symbol.name))
      places[std::string(symbol.name)].push_back(symbol.address);
  });
  for (auto& [name, addresses] : places) {
    std::ranges::sort(addresses);
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  }
  return places;
}

std::vector<std::uint64_t> traceable_functions(std::string_view traceable, bool has_addresses,
                                               std::string_view kallsyms, const std::string& pattern) {
  std::vector<std::uint64_t> addresses;
  std::unordered_set<std::string_view> names;
  while (!traceable.empty()) {
    const auto [address, name] = next_traceable(traceable, has_addresses);
    if (name.empty() || ::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) != 0) continue;
    if (has_addresses && address != 0) addresses.push_back(address);
    if (!has_addresses) names.insert(name);
  }
  if (!has_addresses)
    for_each_symbol(kallsyms, [&](const Symbol& symbol) {
      if (symbol.address != 0 && is_code(symbol) && names.contains(symbol.name))
        addresses.push_back(symbol.address);
    });
  std::ranges::sort(addresses);
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

}  // namespace tacho::record
