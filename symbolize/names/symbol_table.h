// Names of address ranges: what every source of symbols produces.
//
// A source adds its symbols in its own order, settles them (perf's rules for missing ends and for aliases),
// may add some more that the rules do not touch, and finishes. Then addresses are looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/large_pages.h"
#include "symbolize/names/overlap_tree.h"

namespace tacho::symbolize {

enum class Binding : std::uint8_t { Local, Global, Weak };

struct Symbol {
  std::uint64_t start = 0, end = 0;  // end is past the last; equal to start: covers its start alone
  std::string_view name;             // mangled, where the source mangles
  Binding binding = Binding::Local;

  std::uint64_t size() const { return end - start; }
};

class SymbolTable {
 public:
  // How a name is shown; aliases are compared by what is shown.
  using ShownName = std::function<std::string_view(std::string_view)>;

  SymbolTable() = default;
  SymbolTable(SymbolTable&&) = default;
  SymbolTable& operator=(SymbolTable&&) = default;

  // Keeps text that names point into as long as the table lives.
  std::string_view own(std::string text) { return texts_.emplace_back(std::move(text)); }
  void reserve(std::size_t count) { symbols_.reserve(count); }
  void add(const Symbol& symbol) { symbols_.push_back(symbol); }
  bool has_none() const { return symbols_.empty(); }
  // A symbol without an end gets the next one's start; of those that start together one is kept.
  void settle(const ShownName& shown);
  // Nothing is added any more.
  void finish();

  // The symbol that covers `address`, as perf would find it. The pointer is valid as long as the table.
  const Symbol* find(std::uint64_t address);
  std::size_t size() const { return starts_.size(); }
  bool empty() const { return starts_.empty(); }

 private:
  // How far symbols_ and dropped_ reached after one settle().
  struct Round {
    std::size_t added = 0, dropped = 0;
  };

  template <class T>
  using Table = std::vector<T, format::LargePages<T>>;  // the kernel has some 200,000

  Table<std::uint32_t> kept_by_start() const;
  const OverlapTree& overlaps();

  std::deque<std::string> texts_;
  Table<Symbol> symbols_;               // in the order they were added
  std::vector<std::uint32_t> dropped_;  // aliases not kept, in the order of their dropping
  std::vector<Round> rounds_;
  Table<std::uint64_t> starts_;   // of the kept ones, ascending
  Table<std::uint32_t> numbers_;  // beside starts_: which symbol
  Table<std::uint64_t> reached_;  // beside starts_: the highest end so far
  std::optional<OverlapTree> overlaps_;
};

// True when perf would keep `a` of two symbols at one address.
bool is_better_alias(const Symbol& a, const Symbol& b, const SymbolTable::ShownName& shown);

}  // namespace tacho::symbolize
