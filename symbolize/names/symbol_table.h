// SymbolTable: symbols by address range. Every symbol source makes one.
//
// A source adds its symbols in its own order, settles them (perf's rules for missing ends and for aliases),
// may add some more that the rules do not touch, and finishes. Then addresses are looked up. Big binaries
// have hundreds of thousands of symbols, of which a capture needs a few: they are sorted once, by number
// alone, and names are compared and demangled only where an address is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/seeded_hash.h"

namespace tacho::symbolize {

// Index over overlapping ranges: the owner of every address is computed once, so a lookup is one binary
// search.

struct RankedRange {
  std::uint64_t start = 0, end = 0;  // end is past the last
  std::uint64_t rank = 0;            // of ranges that hold an address, the lowest rank has it
  std::uint32_t owner = 0;           // and of equal ranks the highest owner
};

class RangeIndex {
 public:
  RangeIndex() = default;
  // Ranges that are empty, or end before they start, hold nothing.
  explicit RangeIndex(std::vector<RankedRange> ranges);

  std::optional<std::uint32_t> find(std::uint64_t address) const;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint64_t> starts_;  // ascending; each piece reaches to the next one
  std::vector<std::uint32_t> owners_;  // beside starts_
};

// Unnamed: no symbol, but the range of a function that has none.
enum class Binding : std::uint8_t { Local, Global, Weak, Unnamed };

struct Symbol {
  std::uint64_t start = 0, end = 0;  // end is past the last; equal to start: covers its start alone
  std::string_view name;             // mangled, where the source mangles
  Binding binding = Binding::Local;
  bool is_data = false;  // a variable, not a function

  std::uint64_t size() const { return end - start; }
  bool is_unnamed() const { return binding == Binding::Unnamed; }
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
  void reserve(std::size_t count) { rows_.reserve(count); }
  // Of names, the first 4 GiB are kept; of symbols, the first 2^29.
  void add(const Symbol& symbol);
  bool has_none() const { return rows_.empty(); }
  // What was added so far: a symbol without an end gets the next one's start; of symbols that start together
  // one is kept. `shown` is asked later, as long as the table lives; its answers too must live as long.
  void settle(ShownName shown);
  // Nothing is added any more.
  void finish();

  // In place of finish(): the table knows these addresses alone, each once and ascending, with the number of
  // the row that was added so: the first is 0. kNoSymbol: no symbol covers it.
  static constexpr std::uint32_t kNoSymbol = ~std::uint32_t{1};
  struct Answer {
    std::uint64_t address = 0;
    std::uint32_t row = 0;
  };
  void finish_with(const std::vector<Answer>& answers);

  // Ranges of functions without symbols, from the first address to behind the last. Where no symbol covers an
  // address it is in such a function, which is called `prefix` and its start in hexadecimal digits. `ranges`
  // is called once, when there is an address that no symbol covers.
  struct Range {
    std::uint64_t start = 0, end = 0;
  };
  using Ranges = std::function<std::vector<Range>()>;
  void add_unnamed(std::string prefix, Ranges ranges);

  // The symbol that covers `address`: of several the one that starts last, of symbols that start together the
  // best alias (is_better_alias), or what was added last behind settle(). Valid until the next question; its
  // name as long as the table.
  const Symbol* find(std::uint64_t address);
  // The same as the number of the symbol's row, below size() then: addresses with one row have one symbol.
  std::optional<std::uint32_t> row_at(std::uint64_t address);
  // Where a caller is looked up whose return address is `address`: one byte before, which is in the call. A
  // signal trampoline was not called; the kernel made the handler return to its first instruction, which is
  // looked up itself. So is a return address of which only itself is known (finish_with()).
  std::uint64_t call_before(std::uint64_t address);
  // Lookup by any thread, also while another one calls find() or row_at(). Unsure: symbols start together or
  // overlap, and only find() chooses between them. `row`: of the symbol; where Unsure, of the last symbol
  // that starts at or before the address; kNoSymbol: there is none. Functions without symbols are not
  // searched: see unnamed_table().
  struct Sight {
    enum class Kind : std::uint8_t { Symbol, None, Unsure };
    Kind kind = Kind::None;
    std::uint32_t row = kNoSymbol;
  };
  Sight see(std::uint64_t address) const;
  // The same of a caller, by its return address.
  Sight see_caller(std::uint64_t address) const;
  std::uint64_t start_of(std::uint32_t row) const { return rows_[row].start; }
  bool has_unnamed() const { return unnamed_ != nullptr; }
  // The ranges of functions without symbols; null until row_at() or find() looked at them. Not while another
  // thread asks these.
  const SymbolTable* unnamed_table() const { return unnamed_ ? unnamed_->table.get() : nullptr; }
  // Of symbols that were added and, once an address was in none, of functions without one.
  std::size_t size() const {
    return rows_.size() + (unnamed_ && unnamed_->table ? unnamed_->table->rows_.size() : 0);
  }
  std::size_t symbols() const { return rows_.size(); }  // without these
  bool empty() const { return rows_.empty(); }

 private:
  // A symbol in 32 bytes.
  struct Row {
    std::uint64_t start, end;
    const char* name;
    std::uint32_t name_size;
    std::uint32_t number : 29;  // in the order they were added
    std::uint32_t binding : 2;
    std::uint32_t is_data : 1;

    Symbol symbol() const {
      return {start, end, {name, name_size}, static_cast<Binding>(binding), is_data != 0};
    }
  };
  // Rows that start at one address: from `first` to before `end`.
  struct Group {
    std::size_t first, end;
  };
  // Which row of a group stands for it, and how far the others reach that are kept as well.
  struct Choice {
    std::size_t row = 0;
    std::uint64_t others_reach = 0;
  };
  // A group that ranges before it may cover.
  struct Covered {
    std::size_t first;
    std::uint64_t reached;  // the highest end before it
  };
  template <class T>
  using Table = std::vector<T, format::LargePages<T>>;  // the kernel has some 200,000

  std::optional<std::uint32_t> symbol_row_at(std::uint64_t address);
  std::optional<std::uint32_t> unnamed_row_at(std::uint64_t address);
  Symbol unnamed(std::uint32_t row);
  Group group_at(std::size_t first) const;
  std::size_t round_of(const Row& row) const;
  bool is_settled(const Row& row) const { return row.number < (rounds_.empty() ? 0 : rounds_.back()); }
  void make_guide();
  void end_open_rows();
  void find_covered();
  std::uint64_t reach_of(const Group& group) const;
  std::optional<std::uint32_t> answer_to(std::uint64_t address) const;
  std::optional<std::size_t> last_start(std::uint64_t address) const;
  std::size_t best_of(std::span<const std::size_t> rows) const;
  const Choice& choice_of(const Group& group);
  std::vector<std::size_t> kept_of(const Group& group) const;
  const RangeIndex& overlaps();

  std::deque<std::string> texts_;
  ShownName shown_;
  std::vector<std::uint32_t> rounds_;  // how many symbols there were at each settle()
  // Addresses that are known, of 64 in a row: every sample comes here, and most of them hit few such pieces
  // of code, which stay in the caches.
  struct KnownAddresses {
    std::uint64_t block = 0;  // an address by 64
    std::uint64_t known = 0;  // a bit for each; 0: this slot is free
    std::uint32_t first = 0;  // the row of the first known one in known_rows_, and then those of the others
    std::uint32_t row = kSeveralRows;  // of all of them
  };
  static constexpr std::uint32_t kSeveralRows = ~std::uint32_t{0};
  std::size_t slot_of(std::uint64_t block) const;
  bool has_answers_ = false;
  std::vector<KnownAddresses> known_;  // a power of two, some of them free; by block
  std::vector<std::uint32_t> known_rows_;
  format::SeededHash block_hash_;
  Table<Row> rows_;  // as they were added; once finished: by start, then number
  // Where to begin looking: rows first_ to last_ are all but the outermost few, so that single symbols far
  // away do not spoil it. For each step of 2^shift_ bytes: the first row that starts there or
  // behind.
  std::size_t first_ = 0, last_ = 0;
  int shift_ = 0;
  std::vector<std::uint32_t> guide_;
  std::unordered_map<std::size_t, Choice> choices_;  // by the first row of a group of several, once asked for
  std::vector<Covered> covered_;                     // ascending
  std::vector<bool> is_covered_;                     // by row: whether covered_ may have it
  std::optional<RangeIndex> overlaps_;  // of rows; made when an address is behind a row that others cover
  Symbol found_;

  struct Unnamed {
    std::string prefix;
    Ranges ranges;
    std::unique_ptr<SymbolTable> table;  // of the ranges, once they were asked for; named as they are found
  };
  std::unique_ptr<Unnamed> unnamed_;  // null: nothing is known of code without symbols
};

// True when perf would keep `a` of two symbols at one address.
bool is_better_alias(const Symbol& a, const Symbol& b, const SymbolTable::ShownName& shown);

}  // namespace tacho::symbolize
