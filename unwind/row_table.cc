#include "unwind/row_table.h"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "format/base/cursor.h"
#include "unwind/leb128.h"
#include "unwind/packed_section.h"
#include "unwind/sframe.h"

namespace tacho::unwind {
namespace {

constexpr std::int64_t kWord = 8;
constexpr std::uint64_t kRbp = 6, kRsp = 7, kReturn = 16;  // DWARF's numbers
constexpr std::uint64_t kX29 = 29, kX30 = 30, kSp = 31;    // of arm64

// DW_OP
enum Op : std::uint8_t {
  kDeref = 0x06,
  kAnd = 0x1a,
  kPlus = 0x22,
  kPlusConstant = 0x23,
  kShiftLeft = 0x24,
  kGreaterEqual = 0x2a,
  kLiteral0 = 0x30,
  kBaseRegister0 = 0x70,
};

// The offset of an expression of the form "register + offset".
std::optional<std::int64_t> offset_from(format::Bytes expression, std::uint64_t number) {
  format::Cursor in(expression, std::endian::little);
  if (in.u8() != kBaseRegister0 + number) return std::nullopt;
  const std::int64_t offset = read_sleb128(in);
  if (in.failed() || in.left() != 0) return std::nullopt;
  return offset;
}

// "[register + offset] + more".
struct Loaded {
  std::uint64_t base = 0;
  std::int64_t offset = 0;
  std::uint64_t more = 0;
};
std::optional<Loaded> loaded_by(format::Bytes expression) {
  format::Cursor in(expression, std::endian::little);
  Loaded found;
  const std::uint8_t base = in.u8();
  if (base != kBaseRegister0 + kRbp && base != kBaseRegister0 + kRsp) return std::nullopt;
  found.base = base - kBaseRegister0;
  found.offset = read_sleb128(in);
  if (in.u8() != kDeref) return std::nullopt;
  if (in.left() > 0) {
    if (in.u8() != kPlusConstant) return std::nullopt;
    found.more = read_uleb128(in);
  }
  if (in.failed() || in.left() != 0) return std::nullopt;
  return found;
}

// The linkers' expression for the PLT, rsp + offset + ((rip & 15) >= N) * 8: returns offset and N.
std::optional<std::pair<std::int64_t, std::int8_t>> plt_rule(format::Bytes expression) {
  format::Cursor in(expression, std::endian::little);
  if (in.u8() != kBaseRegister0 + kRsp) return std::nullopt;
  const std::int64_t offset = read_sleb128(in);
  if (in.u8() != kBaseRegister0 + kReturn || read_sleb128(in) != 0) return std::nullopt;
  if (in.u8() != kLiteral0 + 15 || in.u8() != kAnd) return std::nullopt;
  const std::uint8_t literal = in.u8();
  if (literal < kLiteral0 || literal > kLiteral0 + 15) return std::nullopt;
  if (in.u8() != kGreaterEqual || in.u8() != kLiteral0 + 3 || in.u8() != kShiftLeft || in.u8() != kPlus)
    return std::nullopt;
  if (in.failed() || in.left() != 0) return std::nullopt;
  return std::pair{offset, static_cast<std::int8_t>(literal - kLiteral0)};
}

bool set_cfa(Row& row, int kind, std::int64_t offset) {
  const std::int64_t words = offset / kWord;
  if (offset % kWord != 0 || words < std::numeric_limits<std::int16_t>::min() ||
      words > std::numeric_limits<std::int16_t>::max())
    return false;
  row.kind = static_cast<std::uint8_t>(kind);
  row.cfa = static_cast<std::int16_t>(words);
  return true;
}

bool set_cfa_by_expression(Row& row, format::Bytes expression) {
  if (const auto plt = plt_rule(expression)) {
    if (row.rbp != TACHO_UNWIND_RBP_SAME) return false;
    row.rbp = plt->second;
    return set_cfa(row, TACHO_UNWIND_PLT, plt->first);
  }
  const auto loaded = loaded_by(expression);
  if (!loaded) return false;
  if (loaded->base == kRbp && loaded->more == 0) return set_cfa(row, TACHO_UNWIND_AT_RBP, loaded->offset);
  if (loaded->base == kRsp && loaded->more == kWord) return set_cfa(row, TACHO_UNWIND_AT_RSP, loaded->offset);
  return false;
}

// The kernel's signal frame, in rules of libraries: every register at a fixed offset from rsp.
bool is_signal_frame(const CfiRow& rules) {
  const auto is_at = [&](std::uint64_t number, int words) {
    const Rule& rule = rules.rules[static_cast<std::size_t>(number)];
    return rule.kind == RuleKind::Expression && offset_from(rule.expression, kRsp) == words * kWord;
  };
  const auto cfa =
      rules.cfa.kind == CfaRule::Kind::Expression ? loaded_by(rules.cfa.expression) : std::nullopt;
  return cfa && cfa->base == kRsp && cfa->more == 0 && cfa->offset == TACHO_UNWIND_SIGNAL_RSP * kWord &&
         is_at(kRbp, TACHO_UNWIND_SIGNAL_RBP) && is_at(kReturn, TACHO_UNWIND_SIGNAL_RIP);
}

Row of_kind(int kind, std::uint64_t pc = 0) {
  return {static_cast<std::uint32_t>(pc), 0, 0, static_cast<std::uint8_t>(kind)};
}

bool has_same_rules(const Row& a, const Row& b) {
  return a.kind == b.kind && a.cfa == b.cfa && a.rbp == b.rbp;
}

bool has_rules(const Row* row) { return row != nullptr && row->kind != TACHO_UNWIND_NOTHING; }

class Builder {
 public:
  // Functions that `known` has rules for are left out; null: none.
  explicit Builder(const RowLimits& limits, const RowTable* known = nullptr)
      : limits_(limits), known_(known) {}
  static Error too_large() { return Error{"its unwind table is too large"}; }

  Result<RowTable> build(const CfiSection& section, const FdeIndex* index) {
    FdeParser fdes(section);
    if (index != nullptr && add_indexed(section, fdes, *index)) return finished();
    table_ = {};
    end_ = 0;
    for (const FdeRange& range : list_fdes(section, [this] { return is_stopped(); })) {
      if (known_ != nullptr && has_rules(known_->find_row(range.start))) continue;
      if (!prepare_for(range.start, range.end)) break;
      if (range.end <= end_) continue;
      const auto fde = fdes.at(range.offset);
      fde ? add_function(section, *fde)
          : add(begin_function(range.start, range.end), of_kind(TACHO_UNWIND_OTHER));
    }
    return finished();
  }

  Result<RowTable> build(format::Bytes sframe, std::uint64_t address) {
    const SframeLimits limits{.most = limits_.most_rows, .stop = [this] { return is_stopped(); }};
    const SframeRead read = read_sframe(sframe, address, limits, [this](const SframeFunction& function) {
      if (!prepare_for(function.start, function.end)) return false;
      if (function.end > end_) add_function(function);
      return true;
    });
    return read == SframeRead::TooLarge ? too_large() : finished();
  }

 private:
  bool is_stopped() { return is_stopped_ = is_stopped_ || (limits_.stop && limits_.stop()); }

  // Call it before a function is added; false: no more are added.
  bool prepare_for(std::uint64_t start, std::uint64_t end) {
    if (is_stopped() || table_.rows.size() > limits_.most_rows) return false;
    if (table_.rows.empty()) table_.base = end_ = start;
    if (end - table_.base > std::numeric_limits<std::uint32_t>::max()) return false;  // offsets have 32 bits
    if (end > end_ && start > end_) add(end_, of_kind(TACHO_UNWIND_NOTHING));
    return true;
  }

  Result<RowTable> finished() {
    if (is_stopped_) return Error{"its unwind table took too long"};
    if (table_.rows.size() > limits_.most_rows) return too_large();
    if (!table_.rows.empty()) add(end_, of_kind(TACHO_UNWIND_NOTHING));
    return std::move(table_);
  }

  // If two functions overlap, the lower one is used.
  std::uint64_t begin_function(std::uint64_t start, std::uint64_t end) {
    const std::uint64_t first = std::max(start, end_);
    ++table_.functions;
    end_ = end;
    return first;
  }

  void add_function(const SframeFunction& function) {
    const std::uint64_t first = begin_function(function.start, function.end);
    const auto& rows = function.rows;
    if (rows.empty() || rows.front().pc != 0) add(first, of_kind(TACHO_UNWIND_OTHER));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::uint64_t end = i + 1 < rows.size() ? function.start + rows[i + 1].pc : function.end;
      if (end > first) add(std::max(function.start + rows[i].pc, first), rows[i]);
    }
  }

  // False: an entry of the index is not an FDE of the section, or they are not in order.
  bool add_indexed(const CfiSection& section, FdeParser& fdes, const FdeIndex& index) {
    std::uint64_t last = 0;
    for (std::size_t number = 0; number < index.size() && !is_stopped(); ++number) {
      const auto fde = fdes.at(index.fde_address(number) - section.address);
      if (!fde || fde->start < last) return false;
      last = fde->start;
      if (fde->end <= fde->start) continue;
      if (!prepare_for(fde->start, fde->end)) break;
      if (fde->end > end_) add_function(section, *fde);
    }
    return true;
  }

  void add_function(const CfiSection& section, const Fde& fde) {
    const std::uint64_t first = begin_function(fde.start, fde.end);
    const CfiWalk walked = walk_cfi(section, fde, [&](const CfiRow& rules) {
      if (rules.end > first) add(std::max(rules.start, first), compact_row(rules, section.machine));
    });
    if (!walked.is_whole) add(std::max(walked.end, first), of_kind(TACHO_UNWIND_OTHER));
  }

  void add(std::uint64_t pc, Row row) {
    auto& rows = table_.rows;
    row.pc = static_cast<std::uint32_t>(pc - table_.base);
    if (!rows.empty() && rows.back().pc == row.pc) rows.pop_back();
    if (!rows.empty() && has_same_rules(rows.back(), row)) return;
    if (rows.size() > limits_.most_rows) return;
    table_.others += row.kind == TACHO_UNWIND_OTHER ? 1 : 0;
    rows.push_back(row);
  }

  const RowLimits& limits_;
  const RowTable* known_;
  RowTable table_;
  bool is_stopped_ = false;
  std::uint64_t end_ = 0;  // addresses below have rows
};

// The rows of `table` and, where it has none, those of `more`. Rows that are too far from the first are left
// out.
RowTable with_gaps_filled(const RowTable& table, const RowTable& more) {
  if (more.rows.empty()) return table;
  RowTable filled{.base = std::min(table.base, more.base), .functions = table.functions + more.functions};
  struct Side {
    const RowTable& table;
    std::size_t next = 0;  // rows before it begin at or before the current address
    std::uint64_t address() const {
      return next < table.rows.size() ? table.base + table.rows[next].pc : ~std::uint64_t{0};
    }
    const Row* current() const { return next == 0 ? nullptr : &table.rows[next - 1]; }
  } first{table}, second{more};
  while (first.next < table.rows.size() || second.next < more.rows.size()) {
    const std::uint64_t address = std::min(first.address(), second.address());
    if (address - filled.base > std::numeric_limits<std::uint32_t>::max()) break;
    for (Side* const side : {&first, &second})
      if (side->address() == address) ++side->next;
    Row row = of_kind(TACHO_UNWIND_NOTHING);
    for (const Side* const side : {&second, &first})
      if (has_rules(side->current())) row = *side->current();
    row.pc = static_cast<std::uint32_t>(address - filled.base);
    if (!filled.rows.empty() && has_same_rules(filled.rows.back(), row)) continue;
    filled.others += row.kind == TACHO_UNWIND_OTHER ? 1 : 0;
    filled.rows.push_back(row);
  }
  return filled;
}

// Adds the entry point of a program or the dynamic linker, which has no caller and sometimes no FDE.
void add_entry(RowTable& table, std::uint64_t entry, const RowLimits& limits) {
  if (entry == 0 || table.rows.empty() || table.rows.size() + 2 > limits.most_rows) return;
  const Row* const there = table.find_row(entry);
  if (there != nullptr && there->kind != TACHO_UNWIND_NOTHING) return;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (entry < table.base) {
    const std::uint64_t shift = table.base - entry;
    if (shift + table.rows.back().pc >= kMost) return;
    for (Row& row : table.rows) row.pc += static_cast<std::uint32_t>(shift);
    table.base = entry;
  }
  const std::uint64_t place = entry - table.base;
  if (place + kEntryBytes >= kMost) return;
  auto next = std::ranges::upper_bound(table.rows, place, {}, &Row::pc);
  if (next == table.rows.end() || next->pc > place + kEntryBytes)
    next = table.rows.insert(next, of_kind(TACHO_UNWIND_NOTHING, place + kEntryBytes));
  const Row end = of_kind(TACHO_UNWIND_END, place);
  if (next != table.rows.begin() && std::prev(next)->pc == place)
    *std::prev(next) = end;
  else
    table.rows.insert(next, end);
}

// The return address is in a register, whose value is only known in the leaf frame.
Row returning_to_register(const CfiRow& rules) {
  const std::int64_t number = rules.rules[static_cast<std::size_t>(kReturn)].value;
  Row row = of_kind(TACHO_UNWIND_OTHER);
  const bool is_plain = number >= 0 && number <= TACHO_UNWIND_LAST_REGISTER && rules.cfa.base == kRsp &&
                        rules.cfa.kind == CfaRule::Kind::Register &&
                        rules.rules[static_cast<std::size_t>(kRbp)].kind == RuleKind::Same;
  if (!is_plain || !set_cfa(row, TACHO_UNWIND_RETURN_IN, rules.cfa.offset))
    return of_kind(TACHO_UNWIND_OTHER);
  row.rbp = static_cast<std::int8_t>(number);
  return row;
}

// A row's `rbp` on arm64 for a word saved at CFA + `offset`; 0: a row cannot hold that place. `cfa`: words
// from the register of the row's kind to the CFA.
std::int8_t arm64_place(std::int64_t offset, std::int64_t cfa) {
  const std::int64_t words = offset / kWord, above = words + cfa;
  if (offset % kWord != 0 || words >= 0) return 0;
  if (words >= std::numeric_limits<std::int8_t>::min()) return static_cast<std::int8_t>(words);
  if (above < 0 || above >= std::numeric_limits<std::int8_t>::max()) return 0;
  return static_cast<std::int8_t>(above + 1);
}

// Compilers save x29 and x30, the return address, side by side (a frame record); or x30 alone; or, where x29
// is no frame pointer, in two places.
Row arm64_row(const CfiRow& rules) {
  const auto rule = [&rules](std::uint64_t number) -> const Rule& {
    return rules.rules[static_cast<std::size_t>(number)];
  };
  const Rule &back = rule(kX30), &frame = rule(kX29);
  if (rules.is_signal_frame) return of_kind(TACHO_UNWIND_SIGNAL);
  if (back.kind == RuleKind::Undefined) return of_kind(TACHO_UNWIND_END);
  const bool is_by_sp = rules.cfa.base == kSp;
  Row row = of_kind(TACHO_UNWIND_OTHER);
  if (rules.cfa.kind != CfaRule::Kind::Register || (!is_by_sp && rules.cfa.base != kX29) ||
      !set_cfa(row, is_by_sp ? TACHO_UNWIND_RSP : TACHO_UNWIND_RBP, rules.cfa.offset))
    return of_kind(TACHO_UNWIND_OTHER);
  if (back.kind == RuleKind::Same && frame.kind == RuleKind::Same) return row;
  const bool has_record = frame.kind == RuleKind::AtCfa;
  if (back.kind != RuleKind::AtCfa || (!has_record && frame.kind != RuleKind::Same))
    return of_kind(TACHO_UNWIND_OTHER);
  row.rbp = arm64_place(has_record ? frame.value : back.value, row.cfa);
  if (row.rbp == 0) return of_kind(TACHO_UNWIND_OTHER);
  if (!has_record) {
    row.kind = is_by_sp ? TACHO_UNWIND_LINK_RSP : TACHO_UNWIND_LINK_RBP;
    return row;
  }
  const std::int64_t above = back.value / kWord - frame.value / kWord,
                     kind = TACHO_UNWIND_SIDE_BY_SIDE + above;
  if (above == 1 && back.value % kWord == 0) return row;
  if (!is_by_sp || back.value % kWord != 0 || kind < TACHO_UNWIND_APART || kind > TACHO_UNWIND_LAST_APART)
    return of_kind(TACHO_UNWIND_OTHER);
  row.kind = static_cast<std::uint8_t>(kind);
  return row;
}

}  // namespace

std::optional<CfiMachine> machine_of(const ElfImage& image) {
  if (image.order() != std::endian::little) return std::nullopt;
  if (image.machine() == EM_AARCH64) return CfiMachine::Arm64;
  if (image.machine() == EM_X86_64) return CfiMachine::X86_64;
  return std::nullopt;
}

const Row* RowTable::find_row(std::uint64_t pc) const {
  if (pc < base) return nullptr;
  const auto after = std::ranges::upper_bound(rows, pc - base, {}, &Row::pc);
  return after == rows.begin() ? nullptr : &*std::prev(after);
}

std::int8_t compact_place(const Rule& rule) {
  switch (rule.kind) {
    case RuleKind::Same:
      return TACHO_UNWIND_RBP_SAME;
    case RuleKind::AtCfa: {
      const std::int64_t words = rule.value / kWord;
      if (rule.value % kWord != 0 || words >= 0 || words < std::numeric_limits<std::int8_t>::min())
        return TACHO_UNWIND_RBP_LOST;
      return static_cast<std::int8_t>(words);
    }
    case RuleKind::Expression:
      return offset_from(rule.expression, kRbp) == 0 ? TACHO_UNWIND_RBP_AT_RBP : TACHO_UNWIND_RBP_LOST;
    default:
      return TACHO_UNWIND_RBP_LOST;
  }
}

Row compact_row(const CfiRow& rules, CfiMachine machine) {
  if (machine == CfiMachine::Arm64) return arm64_row(rules);
  const Rule& back = rules.rules[static_cast<std::size_t>(kReturn)];
  if (back.kind == RuleKind::Undefined) return of_kind(TACHO_UNWIND_END);
  if (is_signal_frame(rules)) return of_kind(TACHO_UNWIND_SIGNAL);
  if (back.kind == RuleKind::Register) return returning_to_register(rules);
  if (back.kind != RuleKind::AtCfa || back.value != -kWord || rules.is_signal_frame)
    return of_kind(TACHO_UNWIND_OTHER);
  Row row = of_kind(TACHO_UNWIND_OTHER);
  row.rbp = compact_place(rules.rules[static_cast<std::size_t>(kRbp)]);
  bool fits = false;
  if (rules.cfa.kind == CfaRule::Kind::Expression) {
    fits = set_cfa_by_expression(row, rules.cfa.expression);
  } else if (rules.cfa.kind == CfaRule::Kind::Register && rules.cfa.base <= TACHO_UNWIND_LAST_REGISTER) {
    fits = set_cfa(row, static_cast<int>(rules.cfa.base), rules.cfa.offset);
  }
  return fits ? row : of_kind(TACHO_UNWIND_OTHER);
}

Result<RowTable> build_row_table(const CfiSection& section, const RowLimits& limits, const FdeIndex* index) {
  return Builder(limits).build(section, index);
}
Result<RowTable> build_row_table(format::Bytes sframe, std::uint64_t address, const RowLimits& limits) {
  return Builder(limits).build(sframe, address);
}

Result<RowTable> row_table_of(const ElfImage& image, const RowLimits& limits, const ElfImage* debug) {
  const auto machine = machine_of(image);
  if (!machine) return Error{"is for another machine"};
  RowTable table;
  const auto take = [&table, &limits](Result<RowTable> more) -> Result<> {
    if (!more) return std::move(more.error());
    RowTable joined = table.rows.empty() ? std::move(*more) : with_gaps_filled(table, *more);
    if (joined.rows.size() > limits.most_rows) return Builder::too_large();
    table = std::move(joined);
    return Done{};
  };
  const auto take_section = [&](const std::optional<ElfImage::Section>& frames, CfiForm form,
                                const FdeIndex* index) -> Result<> {
    if (!frames) return Done{};
    return take(Builder(limits, &table)
                    .build({frames->bytes, frames->address, form, image.order(), 8, *machine}, index));
  };
  const auto index = FdeIndex::of(image);
  if (auto taken = take_section(eh_frame_of(image), CfiForm::EhFrame, index ? &*index : nullptr); !taken)
    return std::move(taken.error());
  for (const ElfImage* const file : {&image, debug}) {
    if (file == nullptr || file->order() != image.order()) continue;
    auto taken = take_section(debug_frame_of(*file), CfiForm::DebugFrame, nullptr);
    if (!taken && table.rows.empty()) return std::move(taken.error());  // else .eh_frame's rows stay
  }
  if (table.rows.empty()) {
    const auto sframe = image.section(".sframe");
    if (sframe && !sframe->is_packed) {
      if (auto taken = take(build_row_table(sframe->bytes, sframe->address, limits)); !taken)
        return std::move(taken.error());
    }
  }
  add_entry(table, image.entry(), limits);
  return table;
}

}  // namespace tacho::unwind
