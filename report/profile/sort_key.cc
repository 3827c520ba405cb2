#include "report/profile/sort_key.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacho::report {
namespace {

using Order = std::strong_ordering;

constexpr std::size_t kAddressWidth = 16;  // hexadecimal digits

std::uint64_t by_bytes(std::string_view text) { return reinterpret_cast<std::uintptr_t>(text.data()); }

Order no_tie(const RowFacts&, const RowFacts&) { return Order::equal; }

std::string show_thread(const RowFacts& facts, Names names) {
  return fmt::format("{:7}:{}", static_cast<std::int32_t>(facts.thread->tid),
                     printable(facts.thread->comm, names));
}

std::string show_cpu(const RowFacts& facts, Names) {
  return facts.cpu == ~0U ? std::string("-001") : fmt::format("{:03}", facts.cpu);
}

std::string show_module(const RowFacts& facts, Names names) {
  return facts.place->module == 0 ? std::string("[unknown]") : printable(facts.place->module_name, names);
}

std::size_t module_width(const RowFacts& facts, Names names) {
  const std::size_t name = facts.place->module == 0 ? 0 : printable(facts.place->module_name, names).size();
  return facts.place->function.empty() ? std::max(name, kAddressWidth) : name;
}

std::string show_symbol(const RowFacts& facts, Names names) {
  const CodePlace& place = *facts.place;
  if (place.function.empty()) return fmt::format("[{}] 0x{:016x}", place.level, place.start);
  return fmt::format("[{}] {}", place.level, printable(place.function, names));
}

// Functions with a name stand before addresses without one; by name here, by address where names are equal.
Order symbol_order(const RowFacts& a, const RowFacts& b) {
  const bool is_unknown_a = a.place->function.empty(), is_unknown_b = b.place->function.empty();
  if (is_unknown_a != is_unknown_b) return is_unknown_a ? Order::greater : Order::less;
  return a.place->function <=> b.place->function;
}
Order symbol_tie(const RowFacts& a, const RowFacts& b) {
  if (const auto order = a.place->start <=> b.place->start; order != 0) return order;
  return a.place->end <=> b.place->end;
}

Order module_order(const RowFacts& a, const RowFacts& b) {
  if ((a.place->module == 0) != (b.place->module == 0))
    return a.place->module == 0 ? Order::less : Order::greater;
  return a.place->module_name <=> b.place->module_name;
}

constexpr SortKey kSortKeys[] = {
    {.names = "comm",
     .header = "Command",
     .help = "the thread's name",
     .identity = [](const RowFacts& f) { return by_bytes(f.comm); },
     .order = [](const RowFacts& a, const RowFacts& b) -> Order { return a.comm <=> b.comm; },
     .tie = no_tie,
     .show = [](const RowFacts& f, Names names) { return printable(f.comm, names); },
     // perf measures the name that the thread has in the end.
     .width = [](const RowFacts& f, Names names) { return printable(f.thread->comm, names).size(); },
     .is_cut = true},
    {.names = "dso",
     .header = "Shared Object",
     .help = "the file or module",
     .identity = [](const RowFacts& f) -> std::uint64_t { return f.place->module; },
     .order = module_order,
     .tie = no_tie,
     .show = show_module,
     .width = module_width,
     .is_cut = true},
    {.names = "sym,symbol",
     .header = "Symbol",
     .help = "the function",
     .identity = [](const RowFacts& f) -> std::uint64_t { return f.place->symbol; },
     .order = symbol_order,
     .tie = symbol_tie,
     .show = show_symbol,
     .width = [](const RowFacts& f, Names names) { return show_symbol(f, names).size(); },
     .is_cut = false},
    {.names = "pid",
     .header = "    Pid:Command",
     .help = "the thread's number and name",
     .identity = [](const RowFacts& f) -> std::uint64_t { return f.thread->tid; },
     .order = [](const RowFacts& a, const RowFacts& b) -> Order { return a.thread->tid <=> b.thread->tid; },
     .tie = no_tie,
     .show = show_thread,
     .width = [](const RowFacts& f, Names names) { return show_thread(f, names).size(); },
     .is_cut = true},
    {.names = "cpu",
     .header = "CPU",
     .help = "the processor",
     .identity = [](const RowFacts& f) -> std::uint64_t { return f.cpu; },
     .order = [](const RowFacts& a, const RowFacts& b) -> Order { return a.cpu <=> b.cpu; },
     .tie = no_tie,
     .show = show_cpu,
     .width = [](const RowFacts&, Names) -> std::size_t { return 0; },
     .is_cut = false},
    {.names = "trace",
     .header = "Trace output",
     .help = "a tracepoint's text",
     .identity = [](const RowFacts& f) { return by_bytes(f.trace); },
     .order = [](const RowFacts& a, const RowFacts& b) -> Order { return a.trace <=> b.trace; },
     .tie = no_tie,
     .show = [](const RowFacts& f, Names names) { return printable(f.trace, names); },
     .width = [](const RowFacts& f, Names names) { return printable(f.trace, names).size(); },
     .is_cut = false},
};

bool is_called(const SortKey& key, std::string_view name) {
  for (std::size_t at = 0; at <= key.names.size();) {
    const std::size_t end = std::min(key.names.find(',', at), key.names.size());
    if (key.names.substr(at, end - at) == name) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::span<const SortKey> sort_keys() { return kSortKeys; }

Result<std::vector<const SortKey*>> parse_sort_keys(std::string_view list) {
  std::vector<const SortKey*> keys;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string_view name = list.substr(at, end - at);
    at = end + 1;
    const auto key =
        std::ranges::find_if(kSortKeys, [&](const SortKey& row) { return is_called(row, name); });
    if (key == std::end(kSortKeys)) {
      std::string known;
      for (const SortKey& row : kSortKeys) {
        if (!known.empty()) known += ' ';
        known += row.names.substr(0, row.names.find(','));
      }
      return use_error("--sort: there is no key '" + std::string(name) + "'; known keys: " + known);
    }
    if (std::ranges::find(keys, &*key) == keys.end()) keys.push_back(&*key);
  }
  return keys;
}

}  // namespace tacho::report
