#include "unwind/cfi.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "format/records/address.h"
#include "unwind/leb128.h"

namespace tacho::unwind {
namespace {

constexpr std::size_t kLongestProgram = std::size_t{1} << 20;  // bytes of one function's instructions
constexpr std::uint64_t kMostFdes = 1U << 24;
constexpr std::size_t kDeepestRemember = 64;  // nesting of DW_CFA_remember_state; compilers need one or two
constexpr std::size_t kLongestCie = 4096;     // bytes; compilers write about 20

// DW_EH_PE
constexpr std::uint8_t kOmit = 0xff, kIndirect = 0x80, kAbsolute = 0x00;
constexpr std::uint8_t kFormMask = 0x0f, kBaseMask = 0x70, kPcRelative = 0x10, kDataRelative = 0x30;

std::optional<std::uint64_t> read_form(format::Cursor& in, std::uint8_t form, std::uint8_t address_size) {
  const auto widen = [](auto value) { return static_cast<std::uint64_t>(std::int64_t{value}); };
  switch (form) {
    case 0x00:
      return address_size == 4 ? in.u32() : in.u64();
    case 0x04:
    case 0x0c:
      return in.u64();
    case 0x01:
      return read_uleb128(in);
    case 0x02:
      return in.u16();
    case 0x03:
      return in.u32();
    case 0x09:
      return static_cast<std::uint64_t>(read_sleb128(in));
    case 0x0a:
      return widen(static_cast<std::int16_t>(in.u16()));
    case 0x0b:
      return widen(static_cast<std::int32_t>(in.u32()));
    default:
      return std::nullopt;
  }
}

// The header of a CIE or an FDE, in 32-bit or 64-bit DWARF.
struct EntryHead {
  format::Cursor body{{}};      // after the id
  std::uint64_t end = 0;        // offset of the next entry in the section
  std::uint64_t id = 0;         // of the CIE; zero or all ones: this is a CIE
  std::uint64_t id_offset = 0;  // of that field
  bool is_wide = false;
};

std::optional<EntryHead> read_head(const CfiSection& section, std::uint64_t offset) {
  if (offset >= section.bytes.size()) return std::nullopt;
  const auto size = section.bytes.size();
  format::Cursor in(section.bytes.subspan(static_cast<std::size_t>(offset)), section.order);
  EntryHead head;
  std::uint64_t length = in.u32();
  head.is_wide = length == 0xffffffff;
  if (head.is_wide) length = in.u64();
  head.id_offset = size - in.left();
  const format::Bytes rest = in.take_bytes(length);
  if (in.failed() || length == 0) return std::nullopt;
  head.end = size - in.left();
  head.body = format::Cursor(rest, section.order);
  // With a 64-bit length, the CIE pointer of .eh_frame has 4 bytes in the Linux Standard Base, but compilers
  // and unwinders use 8.
  head.id = head.is_wide ? head.body.u64() : head.body.u32();
  if (head.body.failed()) return std::nullopt;
  return head;
}

bool is_cie(const CfiSection& section, const EntryHead& head) {
  if (section.form == CfiForm::EhFrame) return head.id == 0;
  return head.id == (head.is_wide ? ~std::uint64_t{0} : 0xffffffff);
}

// The address of the cursor's end.
std::uint64_t end_address(const CfiSection& section, const format::Cursor& in) {
  const auto offset = static_cast<std::uint64_t>(in.rest().data() - section.bytes.data());
  return section.address + offset + in.left();
}

// Parses the augmentation ("zPLR") and its data. False: an unknown letter, so the rest cannot be parsed.
bool read_augmentation(const CfiSection& section, std::string_view letters, format::Cursor& in, Cie& cie) {
  if (letters.starts_with('z')) {
    cie.has_sized_augmentation = true;
    format::Cursor data(in.take_bytes(read_uleb128(in)), section.order);
    for (const char letter : letters.substr(1)) {
      if (letter == 'S') {
        cie.is_signal_frame = true;
      } else if (letter == 'R') {
        cie.pointer_encoding = data.u8();
      } else if (letter == 'L') {
        data.u8();
      } else if (letter == 'P') {
        const auto encoding = static_cast<std::uint8_t>(data.u8() & kFormMask);
        if (!read_form(data, encoding, section.address_size)) return false;
      } else if (letter != 'B' && letter != 'G') {  // arm64: which key signs; tagged stacks
        break;                                      // the size lets us skip it
      }
    }
    return !data.failed();
  }
  return letters.empty();
}

std::optional<Cie> parse_cie(const CfiSection& section, std::uint64_t offset) {
  auto head = read_head(section, offset);
  if (!head || !is_cie(section, *head) || head->body.left() > kLongestCie) return std::nullopt;
  format::Cursor& in = head->body;
  Cie cie;
  const std::uint8_t version = in.u8();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  const std::string_view letters = in.terminated();
  if (version == 4) {
    cie.address_size = in.u8();
    if (cie.address_size != section.address_size || in.u8() != 0) return std::nullopt;  // segments
  }
  cie.code_align = read_uleb128(in);
  cie.data_align = read_sleb128(in);
  cie.return_register = version == 1 ? in.u8() : read_uleb128(in);
  if (!read_augmentation(section, letters, in, cie)) return std::nullopt;
  if (in.failed() || cie.return_register >= kRegisterCount) return std::nullopt;
  cie.program = in.rest();
  return cie;
}

std::optional<std::uint64_t> cie_offset(const CfiSection& section, const EntryHead& head) {
  if (section.form == CfiForm::DebugFrame) return head.id;
  if (head.id > head.id_offset) return std::nullopt;
  return head.id_offset - head.id;
}

std::optional<Fde> parse_fde_body(const CfiSection& section, EntryHead head, const Cie& cie) {
  format::Cursor& in = head.body;
  const std::uint64_t end_of_entry = end_address(section, in);
  const auto start = read_encoded(in, cie.pointer_encoding, end_of_entry, 0, section.address_size);
  const auto size = read_form(in, cie.pointer_encoding & kFormMask, section.address_size);
  if (!start || !size) return std::nullopt;
  if (cie.has_sized_augmentation) in.skip(read_uleb128(in));
  if (in.failed()) return std::nullopt;
  return Fde{*start, format::end_of_range(*start, *size), cie, in.rest()};
}

// Executes the call frame instructions of a CIE and an FDE, and produces the rows in ascending order of
// addresses.
class Program {
 public:
  Program(const CfiSection& section, const Fde& fde) : section_(section), fde_(fde) {}

  std::optional<UnwindRow> row_at(std::uint64_t pc) {
    if (!run(fde_.cie.program, ~std::uint64_t{0})) return std::nullopt;
    initial_ = state_;
    location_ = fde_.start;
    if (!run(fde_.program, pc) || state_.cfa.kind == CfaRule::Kind::None) return std::nullopt;
    UnwindRow row;
    row.cfa = state_.cfa;
    for (std::size_t i = 0; i < state_.rules.size(); ++i) {
      if (state_.rules[i].kind != RuleKind::Same)
        row.saved.push_back({static_cast<std::uint8_t>(i), state_.rules[i]});
    }
    row.return_register = static_cast<std::uint8_t>(fde_.cie.return_register);
    row.is_signal_frame = fde_.cie.is_signal_frame;
    row.signs_returns = state_.signs_returns;
    return row;
  }

  // Every row, from the function's start on.
  CfiWalk walk(const std::function<void(const CfiRow&)>& take) {
    // Compilers write a few dozen bytes; a longer program could take much time without making rows.
    if (fde_.program.size() > kLongestProgram || fde_.cie.program.size() > kLongestProgram ||
        !run(fde_.cie.program, ~std::uint64_t{0}))
      return {false, fde_.start};
    initial_ = state_;
    location_ = fde_.start;
    std::uint64_t begin = fde_.start;
    const auto emit_row = [&] {
      if (location_ == begin) return;
      take({begin, std::min(location_, fde_.end), state_.cfa, state_.rules, fde_.cie.is_signal_frame});
      begin = location_;
    };
    format::Cursor in(fde_.program, section_.order);
    while (in.left() > 0 && location_ < fde_.end) {
      step(in);
      if (failed_ || in.failed()) return {false, begin};
      emit_row();
    }
    location_ = fde_.end;
    if (begin < fde_.end) emit_row();
    return {true, fde_.end};
  }

 private:
  struct State {
    CfaRule cfa;
    std::array<Rule, kRegisterCount> rules{};
    bool signs_returns = false;
  };

  // Stops at the first row after `pc`.
  bool run(format::Bytes program, std::uint64_t pc) {
    format::Cursor in(program, section_.order);
    while (in.left() > 0 && location_ <= pc && !failed_) step(in);
    return !failed_ && !in.failed();
  }

  void step(format::Cursor& in) {
    const std::uint8_t code = in.u8();
    const std::uint8_t operand = code & 0x3f;
    switch (code & 0xc0) {
      case 0x40:
        return advance(operand);
      case 0x80:
        return set(operand, RuleKind::AtCfa, factored(read_uleb128(in)));
      case 0xc0:
        return restore(operand);
      default:
        return extended(operand, in);
    }
  }

  void extended(std::uint8_t code, format::Cursor& operands) {
    struct Row {
      std::uint8_t code;
      void (*apply)(Program&, format::Cursor&);
    };
    static constexpr Row kRows[] = {
        {0x00, [](Program&, format::Cursor&) {}},
        {0x01, [](Program& p, format::Cursor& in) { p.set_location(in); }},
        {0x02, [](Program& p, format::Cursor& in) { p.advance(in.u8()); }},
        {0x03, [](Program& p, format::Cursor& in) { p.advance(in.u16()); }},
        {0x04, [](Program& p, format::Cursor& in) { p.advance(in.u32()); }},
        {0x05, [](Program& p, format::Cursor& in) { p.set_offset(in, RuleKind::AtCfa, Signed::No); }},
        {0x06, [](Program& p, format::Cursor& in) { p.restore(read_uleb128(in)); }},
        {0x07, [](Program& p, format::Cursor& in) { p.set(read_uleb128(in), RuleKind::Undefined, 0); }},
        {0x08, [](Program& p, format::Cursor& in) { p.set(read_uleb128(in), RuleKind::Same, 0); }},
        {0x09,
         [](Program& p, format::Cursor& in) {
           const std::uint64_t number = read_uleb128(in);
           p.set(number, RuleKind::Register, static_cast<std::int64_t>(read_uleb128(in)));
         }},
        {0x0a, [](Program& p, format::Cursor&) { p.remember(); }},
        {0x0b, [](Program& p, format::Cursor&) { p.recall(); }},
        {0x0c,
         [](Program& p, format::Cursor& in) {
           const std::uint64_t base = read_uleb128(in);
           p.set_cfa(base, static_cast<std::int64_t>(read_uleb128(in)));
         }},
        {0x0d, [](Program& p, format::Cursor& in) { p.set_cfa(read_uleb128(in), p.state_.cfa.offset); }},
        {0x0e, [](Program& p,
                  format::Cursor& in) { p.state_.cfa.offset = static_cast<std::int64_t>(read_uleb128(in)); }},
        {0x0f,
         [](Program& p, format::Cursor& in) {
           p.state_.cfa.kind = CfaRule::Kind::Expression;
           p.state_.cfa.expression = in.take_bytes(read_uleb128(in));
         }},
        {0x10, [](Program& p, format::Cursor& in) { p.set_expression(in, RuleKind::Expression); }},
        {0x11, [](Program& p, format::Cursor& in) { p.set_offset(in, RuleKind::AtCfa, Signed::Yes); }},
        {0x12,
         [](Program& p, format::Cursor& in) {
           const std::uint64_t base = read_uleb128(in);
           p.set_cfa(base, p.factored(static_cast<std::uint64_t>(read_sleb128(in))));
         }},
        {0x13,
         [](Program& p, format::Cursor& in) {
           p.state_.cfa.offset = p.factored(static_cast<std::uint64_t>(read_sleb128(in)));
         }},
        {0x14, [](Program& p, format::Cursor& in) { p.set_offset(in, RuleKind::IsCfa, Signed::No); }},
        {0x15, [](Program& p, format::Cursor& in) { p.set_offset(in, RuleKind::IsCfa, Signed::Yes); }},
        {0x16, [](Program& p, format::Cursor& in) { p.set_expression(in, RuleKind::ValueExpression); }},
        {0x1d, [](Program& p, format::Cursor& in) { p.advance(in.u64()); }},  // MIPS_advance_loc8
        // AARCH64_negate_ra_state; the same number is GNU_window_save on SPARC, which is not supported.
        {0x2d, [](Program& p, format::Cursor&) { p.state_.signs_returns = !p.state_.signs_returns; }},
        {0x2e, [](Program&, format::Cursor& in) { read_uleb128(in); }},  // GNU_args_size
        {0x2f,                                                           // GNU_negative_offset_extended
         [](Program& p, format::Cursor& in) {
           const std::uint64_t number = read_uleb128(in);
           p.set(number, RuleKind::AtCfa, p.factored(0 - read_uleb128(in)));
         }},
    };
    const auto row = std::ranges::find(kRows, code, &Row::code);
    if (row == std::end(kRows)) return fail();  // an unknown instruction, whose length is unknown too
    row->apply(*this, operands);
  }

  enum class Signed : std::uint8_t { No, Yes };

  void fail() { failed_ = true; }
  std::int64_t factored(std::uint64_t value) const {
    return static_cast<std::int64_t>(value * static_cast<std::uint64_t>(fde_.cie.data_align));
  }
  // Locations only increase: an overflow is damage.
  void advance(std::uint64_t steps) {
    std::uint64_t distance = 0;
    if (__builtin_mul_overflow(steps, fde_.cie.code_align, &distance) ||
        __builtin_add_overflow(location_, distance, &location_))
      fail();
  }
  void set_location(format::Cursor& in) {
    const auto location =
        read_encoded(in, fde_.cie.pointer_encoding, end_address(section_, in), 0, section_.address_size);
    if (!location || *location < location_) return fail();
    location_ = *location;
  }
  void set(std::uint64_t number, RuleKind kind, std::int64_t value, format::Bytes expression = {}) {
    if (number < kRegisterCount) state_.rules[static_cast<std::size_t>(number)] = {kind, value, expression};
  }
  void set_offset(format::Cursor& in, RuleKind kind, Signed is_signed) {
    const std::uint64_t number = read_uleb128(in);
    set(number, kind,
        factored(is_signed == Signed::Yes ? static_cast<std::uint64_t>(read_sleb128(in)) : read_uleb128(in)));
  }
  void set_expression(format::Cursor& in, RuleKind kind) {
    const std::uint64_t number = read_uleb128(in);
    set(number, kind, 0, in.take_bytes(read_uleb128(in)));
  }
  void restore(std::uint64_t number) {
    if (number >= kRegisterCount) return;
    state_.rules[static_cast<std::size_t>(number)] = initial_.rules[static_cast<std::size_t>(number)];
  }
  void set_cfa(std::uint64_t base, std::int64_t offset) {
    state_.cfa = {CfaRule::Kind::Register, base, offset, {}};
  }
  void remember() {
    if (remembered_.size() == kDeepestRemember) return fail();
    remembered_.push_back(state_);
  }
  void recall() {
    if (remembered_.empty()) return fail();
    state_ = remembered_.back();
    remembered_.pop_back();
  }

  const CfiSection& section_;
  const Fde& fde_;
  State state_, initial_;
  std::vector<State> remembered_;
  std::uint64_t location_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<std::uint64_t> read_encoded(format::Cursor& in, std::uint8_t encoding,
                                          std::uint64_t end_address, std::uint64_t data_base,
                                          std::uint8_t address_size) {
  if (encoding == kOmit) return std::nullopt;
  const std::uint64_t here = end_address - in.left();
  const auto value = read_form(in, encoding & kFormMask, address_size);
  if (!value || in.failed() || (encoding & kIndirect) != 0) return std::nullopt;
  switch (encoding & kBaseMask) {
    case kAbsolute:
      return value;
    case kPcRelative:
      return *value + here;
    case kDataRelative:
      return *value + data_base;
    default:
      return std::nullopt;
  }
}

std::optional<Fde> FdeParser::at(std::uint64_t offset) {
  const auto head = read_head(*section_, offset);
  if (!head || is_cie(*section_, *head)) return std::nullopt;
  const auto cie_at = cie_offset(*section_, *head);
  if (!cie_at) return std::nullopt;
  if (*cie_at != cie_offset_) {
    cie_ = parse_cie(*section_, *cie_at);
    cie_offset_ = *cie_at;
  }
  return cie_ ? parse_fde_body(*section_, *head, *cie_) : std::nullopt;
}

std::optional<Fde> parse_fde(const CfiSection& section, std::uint64_t offset) {
  return FdeParser(section).at(offset);
}

std::vector<FdeRange> list_fdes(const CfiSection& section, const std::function<bool()>& stop) {
  std::vector<FdeRange> found;
  std::pair<std::uint64_t, std::optional<Cie>> last{~std::uint64_t{0}, {}};  // consecutive FDEs share a CIE
  std::uint64_t offset = 0;
  while (found.size() < kMostFdes && !(stop && stop())) {
    const auto head = read_head(section, offset);
    if (!head) break;
    const auto cie_at = is_cie(section, *head) ? std::nullopt : cie_offset(section, *head);
    if (cie_at && *cie_at != last.first) last = {*cie_at, parse_cie(section, *cie_at)};
    if (cie_at && last.second) {
      const auto fde = parse_fde_body(section, *head, *last.second);
      const bool is_left_out = fde && section.form == CfiForm::DebugFrame && fde->start == 0;
      if (fde && fde->end > fde->start && !is_left_out)
        found.push_back({fde->start, fde->end, offset, last.second->is_signal_frame});
    }
    offset = head->end;
  }
  std::ranges::sort(found, {}, &FdeRange::start);
  return found;
}

CfiWalk walk_cfi(const CfiSection& section, const Fde& fde, const std::function<void(const CfiRow&)>& row) {
  return Program(section, fde).walk(row);
}

std::optional<UnwindRow> evaluate_cfi(const CfiSection& section, const Fde& fde, std::uint64_t pc) {
  return Program(section, fde).row_at(pc);
}

}  // namespace tacho::unwind
