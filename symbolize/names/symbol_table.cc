#include "symbolize/names/symbol_table.h"

#include <algorithm>
#include <numeric>

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kPage = 4096;  // bytes

std::size_t leading_underscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

// Wrappers that the kernel's macros once put beside each system call.
bool is_syscall_wrapper(std::string_view name) {
  return name.starts_with("SyS") || name.starts_with("compat_SyS");
}

}  // namespace

bool is_better_alias(const Symbol& a, const Symbol& b, const SymbolTable::ShownName& shown) {
  if ((a.size() == 0) != (b.size() == 0)) return a.size() != 0;
  for (const Binding binding : {Binding::Weak, Binding::Global}) {
    const bool a_has = a.binding == binding, b_has = b.binding == binding;
    if (a_has != b_has) return a_has == (binding == Binding::Global);
  }
  const std::string_view a_name = shown(a.name), b_name = shown(b.name);
  const std::size_t a_bars = leading_underscores(a_name), b_bars = leading_underscores(b_name);
  if (a_bars != b_bars) return a_bars < b_bars;
  if (a_name.size() != b_name.size()) return a_name.size() > b_name.size();
  return !is_syscall_wrapper(a_name);
}

SymbolTable::Table<std::uint32_t> SymbolTable::kept_by_start() const {
  Table<std::uint32_t> order(symbols_.size());
  std::iota(order.begin(), order.end(), 0u);
  if (!dropped_.empty()) {
    std::vector<bool> is_dropped(symbols_.size());
    for (const std::uint32_t number : dropped_) is_dropped[number] = true;
    std::erase_if(order, [&](std::uint32_t number) { return is_dropped[number]; });
  }
  const auto earlier = [this](std::uint32_t a, std::uint32_t b) {
    return symbols_[a].start < symbols_[b].start;
  };
  if (!std::ranges::is_sorted(order, earlier)) std::ranges::stable_sort(order, earlier);
  return order;
}

void SymbolTable::settle(const ShownName& shown) {
  const Table<std::uint32_t> order = kept_by_start();
  for (std::size_t i = 0; i < order.size(); ++i) {
    Symbol& symbol = symbols_[order[i]];
    if (symbol.size() != 0) continue;
    symbol.end = i + 1 < order.size()
                     ? symbols_[order[i + 1]].start
                     : std::max(symbol.start, (symbol.start + kPage - 1) / kPage * kPage + kPage);
  }
  for (std::size_t kept = 0, i = 1; i < order.size(); ++i) {
    const Symbol& a = symbols_[order[kept]];
    const Symbol& b = symbols_[order[i]];
    if (a.start != b.start) {
      kept = i;
    } else if (is_better_alias(a, b, shown)) {
      dropped_.push_back(order[i]);
    } else {
      dropped_.push_back(order[kept]);
      kept = i;
    }
  }
  rounds_.push_back({symbols_.size(), dropped_.size()});
}

void SymbolTable::finish() {
  rounds_.push_back({symbols_.size(), dropped_.size()});
  numbers_ = kept_by_start();
  starts_.reserve(numbers_.size());
  reached_.reserve(numbers_.size());
  std::uint64_t reached = 0;
  for (const std::uint32_t number : numbers_) {
    starts_.push_back(symbols_[number].start);
    reached_.push_back(reached = std::max(reached, symbols_[number].end));
  }
}

const OverlapTree& SymbolTable::overlaps() {
  if (overlaps_) return *overlaps_;
  overlaps_.emplace(symbols_.size());
  Round last;
  for (const Round& round : rounds_) {
    for (std::size_t i = last.added; i < round.added; ++i) {
      overlaps_->insert(static_cast<std::uint32_t>(i), symbols_[i].start, symbols_[i].end);
    }
    for (std::size_t i = last.dropped; i < round.dropped; ++i) overlaps_->erase(dropped_[i]);
    last = round;
  }
  return *overlaps_;
}

const Symbol* SymbolTable::find(std::uint64_t address) {
  const auto after = std::ranges::upper_bound(starts_, address);
  if (after == starts_.begin()) return nullptr;
  const auto last = static_cast<std::size_t>(after - starts_.begin()) - 1;
  const Symbol& candidate = symbols_[numbers_[last]];
  const bool covers = address < candidate.end || address == candidate.start;
  const bool is_alone = last == 0 || (reached_[last - 1] <= address && starts_[last - 1] != address);
  if (is_alone) return covers ? &candidate : nullptr;
  const auto number = overlaps().find(address);
  return number ? &symbols_[*number] : nullptr;
}

}  // namespace tacho::symbolize
