#include "symbolize/names/symbol_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <tuple>

#include "symbolize/names/demangle.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kPage = 4096;  // bytes
constexpr std::uint64_t kBlock = 64;   // addresses in a cache entry
constexpr std::uint32_t kMostRows = (std::uint32_t{1} << 29) - 1;

std::size_t leading_underscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

// Prefixes of aliases that the kernel's macros made for each system call.
bool is_syscall_wrapper(std::string_view name) {
  return name.starts_with("SyS") || name.starts_with("compat_SyS");
}

// The rank of an alias, compared before names: the higher one is kept.
int alias_class(const Symbol& symbol) {
  const int binding = symbol.binding == Binding::Global ? 2 : symbol.binding == Binding::Local ? 1 : 0;
  return binding + (symbol.size() != 0 ? 3 : 0);
}

// Names of signal trampolines in C libraries, the vdso and Go.
bool is_signal_trampoline(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames{"__restore_rt",          "__restore",
                                                   "__kernel_rt_sigreturn", "__kernel_sigreturn",
                                                   "__vdso_rt_sigreturn",   "__default_rt_sa_restorer",
                                                   "__default_sa_restorer"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("runtime.sigreturn");
}

}  // namespace

bool is_better_alias(const Symbol& a, const Symbol& b, const SymbolTable::ShownName& shown) {
  const int a_class = alias_class(a), b_class = alias_class(b);
  if (a_class != b_class) return a_class > b_class;
  const std::string_view a_name = shown(a.name), b_name = shown(b.name);
  const std::size_t a_bars = leading_underscores(a_name), b_bars = leading_underscores(b_name);
  if (a_bars != b_bars) return a_bars < b_bars;
  if (a_name.size() != b_name.size()) return a_name.size() > b_name.size();
  return !is_syscall_wrapper(a_name);
}

void SymbolTable::add_symbol(const Symbol& symbol) {
  if (rows_.size() == kMostRows) return;
  const std::string_view name = symbol.name.substr(0, std::numeric_limits<std::uint32_t>::max());
  rows_.push_back({.start = symbol.start,
                   .end = symbol.end,
                   .name = name.data(),
                   .name_size = static_cast<std::uint32_t>(name.size()),
                   .number = static_cast<std::uint32_t>(rows_.size()) & kMostRows,
                   .binding = static_cast<std::uint32_t>(symbol.binding) & 3U,
                   .is_data = symbol.is_data ? 1U : 0U});
}

void SymbolTable::fix_up(ShownName shown) {
  shown_ = std::move(shown);
  fixups_.push_back(static_cast<std::uint32_t>(rows_.size()));
}

void SymbolTable::finish() {
  const auto earlier = [](const Row& a, const Row& b) {
    return std::tuple(a.start, a.number) < std::tuple(b.start, b.number);
  };
  if (!std::ranges::is_sorted(rows_, earlier)) std::ranges::sort(rows_, earlier);
  make_start_index();
  end_open_rows();
  find_covered();
  choose_plain_aliases();
}

// Makes start_index_, with about as many steps as there are rows.
void SymbolTable::make_start_index() {
  constexpr std::size_t kOutermost = 32;  // 1/32 of the rows on either side is outside of the index
  if (rows_.empty()) return;
  first_ = rows_.size() / kOutermost;
  last_ = rows_.size() - 1 - first_;
  const std::uint64_t base = rows_[first_].start, length = rows_[last_].start - base;
  while (length >> shift_ >= rows_.size()) ++shift_;
  start_index_.reserve(static_cast<std::size_t>(length >> shift_) + 2);
  std::size_t row = first_;
  for (std::uint64_t step = 0; step <= length >> shift_; ++step) {
    while (rows_[row].start - base < step << shift_) ++row;
    start_index_.push_back(static_cast<std::uint32_t>(row));
  }
  start_index_.push_back(static_cast<std::uint32_t>(last_));
}

SymbolTable::Group SymbolTable::group_at(std::size_t first) const {
  std::size_t end = first + 1;
  while (end < rows_.size() && rows_[end].start == rows_[first].start) ++end;
  return {first, end};
}

// The number of the first fix_up() after the row was added; fixups_.size(): there was none.
std::size_t SymbolTable::fixup_of(const Row& row) const {
  const auto fixup = std::ranges::upper_bound(fixups_, std::uint32_t{row.number});
  return static_cast<std::size_t>(fixup - fixups_.begin());
}

// Sets the end of rows without one, from the last row to the first: the next start among the symbols that
// were there at the row's fix_up(). Of symbols with one start, only the last one at each fix_up() gets an
// end.
void SymbolTable::end_open_rows() {
  std::vector<std::optional<std::uint64_t>> next(fixups_.size());  // by fixup: the next start of its symbols
  for (std::size_t end = rows_.size(); end > 0;) {
    std::size_t first = end - 1;
    while (first > 0 && rows_[first - 1].start == rows_[first].start) --first;
    const std::uint64_t start = rows_[first].start;
    for (std::size_t i = first; i < end; ++i) {
      const std::size_t fixup = fixup_of(rows_[i]);
      const bool is_last = i + 1 == end || fixup_of(rows_[i + 1]) > fixup;
      if (fixup == fixups_.size() || rows_[i].end != start || !is_last) continue;
      rows_[i].end =
          next[fixup] ? *next[fixup] : std::max(start, (start + kPage - 1) / kPage * kPage + kPage);
    }
    for (std::size_t fixup = fixup_of(rows_[first]); fixup < fixups_.size(); ++fixup) next[fixup] = start;
    end = first;
  }
}

// The highest end of a group's rows, without aliases that are not kept.
std::uint64_t SymbolTable::highest_end_of(const Group& group) const {
  int best = -1;
  std::uint64_t fixed = 0, reached = 0;
  for (std::size_t i = group.first; i < group.end; ++i) {
    if (!is_fixed_up(rows_[i])) {
      reached = std::max(reached, rows_[i].end);
      continue;
    }
    const int one = alias_class(rows_[i].symbol());
    fixed = one > best ? rows_[i].end : one == best ? std::max(fixed, rows_[i].end) : fixed;
    best = std::max(best, one);
  }
  return std::max(reached, fixed);
}

void SymbolTable::find_covered() {
  std::uint64_t reached = 0;
  for (std::size_t first = 0; first < rows_.size();) {
    const Group group = group_at(first);
    if (reached > rows_[first].start) {
      if (is_covered_.empty()) is_covered_.resize(rows_.size());
      is_covered_[first] = true;
      covered_.push_back({first, reached});
    }
    reached = std::max(reached, highest_end_of(group));
    first = group.end;
  }
}

// The last row that starts at or before `address`.
std::optional<std::size_t> SymbolTable::last_start(std::uint64_t address) const {
  if (rows_.empty()) return std::nullopt;
  std::size_t from = 0, to = rows_.size();
  if (address < rows_[first_].start) {
    to = first_;
  } else if (address >= rows_[last_].start) {
    from = last_;
  } else {
    const auto step = static_cast<std::size_t>((address - rows_[first_].start) >> shift_);
    from = start_index_[step];
    to = start_index_[step + 1];
  }
  const auto after = std::upper_bound(rows_.begin() + static_cast<std::ptrdiff_t>(from),
                                      rows_.begin() + static_cast<std::ptrdiff_t>(to), address,
                                      [](std::uint64_t at, const Row& row) { return at < row.start; });
  if (after == rows_.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - rows_.begin()) - 1;
}

// The alias that is kept, of aliases in the order in which they were added.
std::size_t SymbolTable::best_of(std::span<const std::size_t> rows) const {
  std::size_t kept = rows.front();
  for (const std::size_t other : rows.subspan(1)) {
    if (!is_better_alias(rows_[kept].symbol(), rows_[other].symbol(), shown_)) kept = other;
  }
  return kept;
}

// The rows of a group that are kept; the last one is preferred. First the best alias of those before
// fix_up(), then the rows that were added after it, in their order.
std::vector<std::size_t> SymbolTable::kept_of(const Group& group) const {
  std::vector<std::size_t> kept;
  for (std::size_t i = group.first; i < group.end && is_fixed_up(rows_[i]); ++i) kept.push_back(i);
  const std::size_t fixed = kept.size();
  if (fixed > 1) kept = {best_of(kept)};
  for (std::size_t i = group.first + fixed; i < group.end; ++i) kept.push_back(i);
  return kept;
}

const SymbolTable::Choice& SymbolTable::choice_of(const Group& group) {
  const auto [entry, is_new] = choices_.try_emplace(group.first);
  Choice& choice = entry->second;
  if (!is_new) return choice;
  std::vector<std::size_t> kept = kept_of(group);
  choice.row = kept.back();
  kept.pop_back();
  for (const std::size_t other : kept) choice.others_reach = std::max(choice.others_reach, rows_[other].end);
  chosen_[group.end - 1].store(static_cast<std::uint32_t>(choice.row) + 1, std::memory_order_release);
  return choice;
}

// Chooses between aliases where no name must be demangled, so that try_row_at() knows them from the start.
void SymbolTable::choose_plain_aliases() {
  for (std::size_t first = 0; first < rows_.size();) {
    const Group group = group_at(first);
    first = group.end;
    if (group.end - group.first == 1) continue;
    if (!chosen_) chosen_ = std::make_unique<std::atomic<std::uint32_t>[]>(rows_.size());
    const auto aliases = std::span(rows_).subspan(group.first, group.end - group.first);
    if (std::ranges::none_of(aliases, [](const Row& row) { return may_be_mangled(row.symbol().name); }))
      choice_of(group);
  }
}

const RangeIndex& SymbolTable::overlaps() {
  if (overlaps_) return *overlaps_;
  std::vector<RankedRange> ranges;
  for (std::size_t first = 0; first < rows_.size();) {
    const Group group = group_at(first);
    for (const std::size_t row : kept_of(group)) {
      const auto [start, end] = std::pair(rows_[row].start, rows_[row].end);
      ranges.push_back({start, std::max(end, start + 1), ~start, static_cast<std::uint32_t>(row)});
    }
    first = group.end;
  }
  return overlaps_.emplace(std::move(ranges));
}

std::uint64_t SymbolTable::caller_address(std::uint64_t return_address) {
  const auto here = symbol_row_at(return_address);
  if (!here) return return_address - 1;
  const Row& row = rows_[*here];
  if (row.start == return_address && is_signal_trampoline(row.symbol().name)) return return_address;
  return has_answers_ && !answer_to(return_address - 1) ? return_address : return_address - 1;
}

const Symbol* SymbolTable::find_symbol(std::uint64_t address) {
  if (const auto row = symbol_row_at(address)) {
    found_ = rows_[*row].symbol();
    return &found_;
  }
  const auto function = unnamed_at(address);
  if (!function) return nullptr;
  found_ = symbol_of(*function);
  return &found_;
}

// The slot of a block in known_; a free one if the block is not there.
std::size_t SymbolTable::slot_of(std::uint64_t block) const {
  std::size_t at = block_hash_(block) & (known_.size() - 1);
  while (known_[at].known != 0 && known_[at].block != block) at = (at + 1) & (known_.size() - 1);
  return at;
}

void SymbolTable::finish_with(const std::vector<Answer>& answers) {
  has_answers_ = true;
  std::size_t blocks = 0;
  for (std::size_t i = 0; i < answers.size(); ++i)
    blocks += i == 0 || answers[i].address / kBlock != answers[i - 1].address / kBlock ? 1 : 0;
  known_.assign(std::bit_ceil(2 * blocks + 1), {});
  known_rows_.reserve(answers.size());
  for (const Answer& answer : answers) {
    KnownAddresses& block = known_[slot_of(answer.address / kBlock)];
    if (block.known == 0)
      block = {answer.address / kBlock, 0, static_cast<std::uint32_t>(known_rows_.size()), answer.row};
    block.known |= std::uint64_t{1} << answer.address % kBlock;
    if (block.row != answer.row) block.row = kSeveralRows;
    known_rows_.push_back(answer.row);
  }
}

std::optional<std::uint32_t> SymbolTable::answer_to(std::uint64_t address) const {
  const KnownAddresses& block = known_[slot_of(address / kBlock)];
  const std::uint64_t bit = std::uint64_t{1} << address % kBlock;
  if ((block.known & bit) == 0) return std::nullopt;
  if (block.row != kSeveralRows) return block.row;
  return known_rows_[block.first + static_cast<std::size_t>(std::popcount(block.known & (bit - 1)))];
}

std::optional<std::uint32_t> SymbolTable::row_at(std::uint64_t address) {
  if (const auto row = symbol_row_at(address)) return row;
  const auto function = unnamed_at(address);
  return function ? std::optional(static_cast<std::uint32_t>(rows_.size() + function->number)) : std::nullopt;
}

std::optional<FunctionRanges::Function> SymbolTable::unnamed_at(std::uint64_t address) {
  if (!unnamed_) return std::nullopt;
  if (!unnamed_->functions) {
    unnamed_->functions = std::exchange(unnamed_->open, nullptr)();
    if (!unnamed_->functions)
      unnamed_->functions = std::make_unique<FunctionRanges>(std::vector<FunctionRanges::Range>());
  }
  return unnamed_->functions->find_function(address);
}

// Names are only made for functions that samples hit, which are few.
Symbol SymbolTable::symbol_of(const FunctionRanges::Function& function) {
  std::string_view& name = unnamed_->names[function.number];
  if (name.empty()) name = own(fmt::format("{}{:x}", unnamed_->prefix, function.range.start));
  return {function.range.start, function.range.end, name, Binding::Unnamed};
}

SymbolTable::RowLookup SymbolTable::try_row_at(std::uint64_t address) const {
  if (has_answers_) {
    const auto row = answer_to(address);
    return !row || row == kNoSymbol ? RowLookup{} : RowLookup{RowLookup::Kind::Symbol, *row};
  }
  return try_row_from(last_start(address), address);
}

// `last`: last_start(address).
SymbolTable::RowLookup SymbolTable::try_row_from(std::optional<std::size_t> last,
                                                 std::uint64_t address) const {
  using Kind = RowLookup::Kind;
  if (!last) return {};
  auto row = static_cast<std::uint32_t>(*last);
  const std::uint64_t start = rows_[row].start;
  const bool is_alias = row > 0 && rows_[row - 1].start == start;
  if (is_alias) {
    const std::uint32_t chosen = chosen_[row].load(std::memory_order_acquire);
    if (chosen == 0) return {Kind::Ambiguous, kNoSymbol};
    row = chosen - 1;
  }
  if (address < rows_[row].end || address == start) return {Kind::Symbol, row};
  const bool may_be_covered = is_alias || (!is_covered_.empty() && is_covered_[row]);
  return {may_be_covered ? Kind::Ambiguous : Kind::None, kNoSymbol};
}

SymbolTable::RowLookup SymbolTable::try_caller_row_at(std::uint64_t address) const {
  using Kind = RowLookup::Kind;
  if (has_answers_) {
    const auto here = answer_to(address);
    const bool begins = here && *here < rows_.size() && rows_[*here].start == address;
    return begins || !answer_to(address - 1) ? RowLookup{Kind::Ambiguous, kNoSymbol}
                                             : try_row_at(address - 1);
  }
  const auto last = last_start(address);
  if (!last || rows_[*last].start != address) return try_row_from(last, address - 1);
  const RowLookup here = try_row_from(last, address);
  const bool is_call = here.kind == Kind::Symbol && !is_signal_trampoline(rows_[here.row].symbol().name);
  return is_call ? try_row_at(address - 1) : here;
}

std::optional<std::uint32_t> SymbolTable::symbol_row_at(std::uint64_t address) {
  if (has_answers_) {
    const auto row = answer_to(address);
    return row == kNoSymbol ? std::nullopt : row;
  }
  const auto last = last_start(address);
  if (!last) return std::nullopt;
  const std::uint64_t start = rows_[*last].start;
  Choice choice{.row = *last};
  Group group{*last, *last + 1};
  if (*last > 0 && rows_[*last - 1].start == start) {
    constexpr std::size_t kFew = 8;
    while (group.first > 0 && *last - group.first < kFew && rows_[group.first - 1].start == start)
      --group.first;
    if (*last - group.first == kFew)
      group.first =
          static_cast<std::size_t>(std::ranges::lower_bound(rows_, start, {}, &Row::start) - rows_.begin());
    choice = choice_of(group);
  }
  if (address < rows_[choice.row].end || address == start) return static_cast<std::uint32_t>(choice.row);
  const bool is_covered =
      (!is_covered_.empty() && is_covered_[group.first] &&
       std::ranges::lower_bound(covered_, group.first, {}, &Covered::first)->reached > address) ||
      address < choice.others_reach;
  return is_covered ? overlaps().find_range(address) : std::nullopt;
}

}  // namespace tacho::symbolize
