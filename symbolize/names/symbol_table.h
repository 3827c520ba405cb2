// SymbolTable: symbols by address range. Every symbol source makes one.
//
// A source adds its symbols in its own order, calls fix_up() (perf's symbols__fixup_end and
// symbols__fixup_duplicate: rules for missing ends and for aliases), may add more symbols, to which these
// rules do not apply, and calls finish(). Then addresses are looked up. Big binaries have hundreds of
// thousands of symbols, of which a capture needs few: they are sorted by address only, and names are compared
// and demangled when an address is looked up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
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
#include "symbolize/names/function_ranges.h"

namespace tacho::symbolize {

// Unnamed: not a symbol, but the range of a function without a symbol.
enum class Binding : std::uint8_t { Local, Global, Weak, Unnamed };

struct Symbol {
  std::uint64_t start = 0, end = 0;  // [start, end); end equal to start: only `start`
  std::string_view name;             // mangled, if the source has mangled names
  Binding binding = Binding::Local;
  bool is_data = false;  // a variable, not a function

  std::uint64_t size() const { return end - start; }
  bool is_unnamed() const { return binding == Binding::Unnamed; }
};

class SymbolTable {
 public:
  // Returns a name as it is shown; aliases are compared by shown names.
  using ShownName = std::function<std::string_view(std::string_view)>;

  // Keeps text to which names point.
  std::string_view own(std::string text) { return texts_.emplace_back(std::move(text)); }
  void reserve(std::size_t count) { rows_.reserve(count); }
  // Up to 4 GiB of names and 2^29 symbols; more are ignored.
  void add_symbol(const Symbol& symbol);
  // Applies perf's rules to the symbols so far: a symbol without an end ends at the next one's start; of
  // symbols with one start one is kept. `shown` is called later; it and its results must outlive the table.
  void fix_up(ShownName shown);
  // Call it after the last add_symbol().
  void finish();

  // Instead of finish(): the table has only these addresses (ascending, each once), each with its symbol: the
  // number of an added symbol, from 0, or kNoSymbol.
  static constexpr std::uint32_t kNoSymbol = ~std::uint32_t{1};
  struct Answer {
    std::uint64_t address = 0;
    std::uint32_t row = 0;
  };
  void finish_with(const std::vector<Answer>& answers);

  // Sets the functions without symbols, for addresses that no symbol covers. Such a function is named
  // `prefix` and its start in hexadecimal digits. Without `functions`, `open` is called once, at the first
  // such address; it may return null.
  using OpenRanges = std::function<std::unique_ptr<FunctionRanges>()>;
  void add_unnamed(std::string prefix, OpenRanges open, std::unique_ptr<FunctionRanges> functions = nullptr) {
    unnamed_.reset(new Unnamed{std::move(prefix), std::move(open), std::move(functions), {}});
  }

  // The symbol that covers `address`: of several the one with the highest start; of symbols with one start
  // the best alias (is_better_alias), or the last one that was added after fix_up(). Valid until the next
  // look-up; its name as long as the table.
  const Symbol* find_symbol(std::uint64_t address);
  // The same as a row number (below size() then): addresses with equal rows have the same symbol.
  std::optional<std::uint32_t> row_at(std::uint64_t address);
  // The address at which a caller is looked up, by its return address: one byte before, which is in the call
  // instruction. Exceptions, which are looked up at the return address itself: a signal trampoline, since it
  // did not call (the handler returns to its first instruction), and addresses of finish_with() without the
  // byte before.
  std::uint64_t caller_address(std::uint64_t return_address);
  // Look-up on any thread, also while another one calls find_symbol() or row_at(). Ambiguous: several symbols
  // cover the address, and row_at() must choose between them; for aliases it does that once. `row`: if the
  // kind is Symbol. Functions without symbols are not searched (unnamed_functions()).
  struct RowLookup {
    enum class Kind : std::uint8_t { Symbol, None, Ambiguous };
    Kind kind = Kind::None;
    std::uint32_t row = kNoSymbol;
  };
  RowLookup try_row_at(std::uint64_t address) const;
  // The same for a caller, by its return address.
  RowLookup try_caller_row_at(std::uint64_t address) const;
  std::uint64_t start_of(std::uint32_t row) const { return rows_[row].start; }
  bool has_unnamed() const { return unnamed_ != nullptr; }
  // The functions without symbols; null before row_at() or find_symbol() needed them. Do not call it while
  // another thread calls these.
  const FunctionRanges* unnamed_functions() const { return unnamed_ ? unnamed_->functions.get() : nullptr; }
  // The number of rows: symbols, and the functions without symbols, if these were needed.
  std::size_t size() const {
    return rows_.size() + (unnamed_ && unnamed_->functions ? unnamed_->functions->size() : 0);
  }
  std::size_t symbols() const { return rows_.size(); }  // without these
  // use(symbol) for each of these.
  template <class Use>
  void each(Use&& use) const {
    for (const Row& row : rows_) use(row.symbol());
  }
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
  // The preferred row of a group, and the highest end of the others that are kept.
  struct Choice {
    std::size_t row = 0;
    std::uint64_t others_reach = 0;
  };
  // A group that may be covered by earlier ranges.
  struct Covered {
    std::size_t first;
    std::uint64_t reached;  // the highest end before it
  };
  template <class T>
  using Table = std::vector<T, format::LargePages<T>>;  // the kernel has some 200,000

  std::optional<std::uint32_t> symbol_row_at(std::uint64_t address);
  RowLookup try_row_from(std::optional<std::size_t> last, std::uint64_t address) const;
  std::optional<FunctionRanges::Function> unnamed_at(std::uint64_t address);
  Symbol symbol_of(const FunctionRanges::Function& function);
  Group group_at(std::size_t first) const;
  std::size_t fixup_of(const Row& row) const;
  bool is_fixed_up(const Row& row) const { return row.number < (fixups_.empty() ? 0 : fixups_.back()); }
  void make_start_index();
  void choose_plain_aliases();
  void end_open_rows();
  void find_covered();
  std::uint64_t highest_end_of(const Group& group) const;
  std::optional<std::uint32_t> answer_to(std::uint64_t address) const;
  std::optional<std::size_t> last_start(std::uint64_t address) const;
  std::size_t best_of(std::span<const std::size_t> rows) const;
  const Choice& choice_of(const Group& group);
  std::vector<std::size_t> kept_of(const Group& group) const;
  const RangeIndex& overlaps();

  std::deque<std::string> texts_;
  ShownName shown_;
  std::vector<std::uint32_t> fixups_;  // the number of symbols at each call of fix_up()
  // A cache of looked-up addresses, in blocks of 64: most samples hit few such blocks, which stay in the
  // CPU's caches.
  struct KnownAddresses {
    std::uint64_t block = 0;  // address / 64
    std::uint64_t known = 0;  // a bit for each; 0: this slot is free
    std::uint32_t first = 0;  // index in known_rows_ of the first known address's row; the others follow
    std::uint32_t row = kSeveralRows;  // the row of all of them, if it is one
  };
  static constexpr std::uint32_t kSeveralRows = ~std::uint32_t{0};
  std::size_t slot_of(std::uint64_t block) const;
  bool has_answers_ = false;
  std::vector<KnownAddresses> known_;  // a hash table by block; its size is a power of two
  std::vector<std::uint32_t> known_rows_;
  format::SeededHash block_hash_;
  Table<Row> rows_;  // as they were added; once finished: by start, then number
  // An index that narrows the binary search: for each step of 2^shift_ bytes, the first row that starts there
  // or later. It covers rows first_ to last_, without a few outermost ones, so that a single distant symbol
  // does not make it coarse.
  std::size_t first_ = 0, last_ = 0;
  int shift_ = 0;
  std::vector<std::uint32_t> start_index_;
  std::unordered_map<std::size_t, Choice> choices_;  // by the first row of a group; made at its first look-up
  // By the last row of a group of several: 1 + the row of its choice; 0: none yet. For try_row_at().
  std::unique_ptr<std::atomic<std::uint32_t>[]> chosen_;
  std::vector<Covered> covered_;        // ascending
  std::vector<bool> is_covered_;        // by row: whether covered_ may have it
  std::optional<RangeIndex> overlaps_;  // of rows; made when first needed
  Symbol found_;

  struct Unnamed {
    std::string prefix;
    OpenRanges open;
    std::unique_ptr<FunctionRanges> functions;                  // null: not needed yet
    std::unordered_map<std::uint32_t, std::string_view> names;  // of functions that were found, by number
  };
  std::unique_ptr<Unnamed> unnamed_;  // null: add_unnamed() was not called
};

// Whether perf would keep `a` of two symbols at one address.
bool is_better_alias(const Symbol& a, const Symbol& b, const SymbolTable::ShownName& shown);

}  // namespace tacho::symbolize
