// The compact rows of real binaries against the interpreter that reports unwind with: for each function of a
// binary both must find the same caller, on a stack of made-up words.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "format/base/file.h"
#include "symbolize/unwind/dwarf_expression.h"
#include "unwind/arm64_caller.h"
#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/row_table.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kRbp = 6, kRsp = 7, kRip = 16;
constexpr std::uint64_t kX29 = 29, kX30 = 30, kArm64Sp = 31;

// A word for every address, the same each time.
std::uint64_t word_at(std::uint64_t address) { return address * 0x9e3779b97f4a7c15U + 8; }

struct AgreedFrame final : ExpressionContext {
  explicit AgreedFrame(std::uint64_t pc) : ip(pc) {}
  std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    return number == kRip ? ip : 0x7ffc00001000 + 0x1000 * number;
  }
  std::optional<std::uint64_t> memory(std::uint64_t address) const override { return word_at(address); }
  std::uint64_t value(std::uint64_t number) const { return *register_value(number); }
  std::uint64_t ip;
};

struct Caller {
  std::uint64_t rsp = 0, rip = 0;
  std::optional<std::uint64_t> rbp;  // nothing: lost
  bool operator==(const Caller&) const = default;
};

std::optional<std::uint64_t> saved_value(const unwind::Rule& rule, std::uint64_t number, std::uint64_t cfa,
                                         const AgreedFrame& frame) {
  switch (rule.kind) {
    case unwind::RuleKind::Same:
      return frame.value(number);
    case unwind::RuleKind::AtCfa:
      return word_at(cfa + static_cast<std::uint64_t>(rule.value));
    case unwind::RuleKind::Expression: {
      const auto place = evaluate_expression(rule.expression, cfa, frame);
      return place ? std::optional(word_at(place->value)) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// On arm64, whose return address may be in a register.
std::optional<Caller> by_rules(const unwind::UnwindRow& row, const AgreedFrame& frame) {
  if (row.cfa.kind != unwind::CfaRule::Kind::Register || row.is_signal_frame) return std::nullopt;
  unwind::Rule x29, link;
  for (const unwind::SavedRegister& saved : row.saved) {
    if (saved.number == kX29) x29 = saved.rule;
    if (saved.number == kX30) link = saved.rule;
  }
  const std::uint64_t cfa = frame.value(row.cfa.base) + static_cast<std::uint64_t>(row.cfa.offset);
  const auto back = saved_value(link, kX30, cfa, frame);
  return back ? std::optional(Caller{cfa, *back, saved_value(x29, kX29, cfa, frame)}) : std::nullopt;
}

std::optional<Caller> by_arm64_row(const unwind::Row& row, const AgreedFrame& frame) {
  if (!tacho_has_arm64_caller(row.kind)) return std::nullopt;
  const tacho_arm64_frame known{frame.value(kArm64Sp), frame.value(kX29), true};
  tacho_arm64_caller found{};
  if (!tacho_find_arm64_caller(row.kind, row.cfa, row.rbp, &known, &found)) return std::nullopt;
  return Caller{found.sp, found.link_at == 0 ? frame.value(kX30) : word_at(found.link_at),
                found.frame_at == 0 ? known.x29 : word_at(found.frame_at)};
}

std::optional<Caller> by_interpreter(const unwind::UnwindRow& row, const AgreedFrame& frame) {
  Caller caller;
  if (row.cfa.kind == unwind::CfaRule::Kind::Expression) {
    const auto cfa = evaluate_expression(row.cfa.expression, 0, frame);
    if (!cfa) return std::nullopt;
    caller.rsp = cfa->value;
  } else {
    caller.rsp = frame.value(row.cfa.base) + static_cast<std::uint64_t>(row.cfa.offset);
  }
  unwind::Rule rbp, rip;
  for (const unwind::SavedRegister& saved : row.saved) {
    if (saved.number == kRbp) rbp = saved.rule;
    if (saved.number == kRip) rip = saved.rule;
  }
  const auto back = saved_value(rip, kRip, caller.rsp, frame);
  if (!back || rip.kind == unwind::RuleKind::Same) return std::nullopt;
  caller.rip = *back;
  caller.rbp = saved_value(rbp, kRbp, caller.rsp, frame);
  return caller;
}

std::optional<Caller> by_row(const unwind::Row& row, const AgreedFrame& frame) {
  const auto offset = static_cast<std::uint64_t>(std::int64_t{row.cfa} * 8);
  const std::uint64_t rsp = frame.value(kRsp), rbp = frame.value(kRbp);
  if (row.kind == TACHO_UNWIND_SIGNAL)
    return Caller{word_at(rsp + 160), word_at(rsp + 168), word_at(rsp + 120)};
  std::uint64_t cfa = 0;
  if (row.kind <= TACHO_UNWIND_LAST_REGISTER) {
    cfa = frame.value(row.kind) + offset;
  } else if (row.kind == TACHO_UNWIND_AT_RBP) {
    cfa = word_at(rbp + offset);
  } else if (row.kind == TACHO_UNWIND_AT_RSP) {
    cfa = word_at(rsp + offset) + 8;
  } else if (row.kind == TACHO_UNWIND_PLT) {
    return Caller{rsp + offset + (static_cast<std::int8_t>(frame.ip & 15) >= row.rbp ? 8U : 0U),
                  word_at(rsp + offset + (static_cast<std::int8_t>(frame.ip & 15) >= row.rbp ? 0U : ~7ULL)),
                  rbp};
  } else {
    return std::nullopt;
  }
  Caller caller{cfa, word_at(cfa - 8), rbp};
  if (row.rbp == TACHO_UNWIND_RBP_AT_RBP) caller.rbp = word_at(rbp);
  if (row.rbp == TACHO_UNWIND_RBP_LOST) caller.rbp.reset();
  if (row.rbp < 0) caller.rbp = word_at(cfa + static_cast<std::uint64_t>(std::int64_t{row.rbp} * 8));
  return caller;
}

struct Agreement {
  std::size_t places = 0, unsaid = 0;
};

void compare(const unwind::CfiSection& section, const unwind::RowTable& table, Agreement& agreement) {
  std::uint64_t described = 0;  // up to here
  for (const unwind::FdeRange& range : unwind::list_fdes(section)) {
    const auto fde = unwind::parse_fde(section, range.offset);
    if (!fde || range.start < described) continue;
    described = range.end;
    const std::uint64_t size = range.end - range.start;
    for (std::uint64_t at = 0; at < size; at += std::max<std::uint64_t>(size / 13, 1)) {
      const std::uint64_t pc = range.start + at;
      const auto rules = unwind::evaluate_cfi(section, *fde, pc);
      const unwind::Row* const row = table.find_row(pc);
      ASSERT_NE(row, nullptr) << std::hex << pc;
      ++agreement.places;
      if (!rules || row->kind == TACHO_UNWIND_OTHER) {
        ++agreement.unsaid;
        continue;
      }
      const AgreedFrame frame(pc);
      const bool is_arm64 = section.machine == unwind::CfiMachine::Arm64;
      const auto wanted = is_arm64 ? by_rules(*rules, frame) : by_interpreter(*rules, frame);
      const auto found = is_arm64 ? by_arm64_row(*row, frame) : by_row(*row, frame);
      ASSERT_EQ(wanted.has_value(), found.has_value()) << std::hex << pc << " kind " << int{row->kind};
      if (!wanted) continue;
      EXPECT_EQ(wanted->rsp, found->rsp) << std::hex << pc;
      EXPECT_EQ(wanted->rip, found->rip) << std::hex << pc;
      if (found->rbp) {
        EXPECT_EQ(wanted->rbp, found->rbp) << std::hex << pc;
      }
    }
  }
}

class RowAgreement : public testing::TestWithParam<const char*> {};

TEST_P(RowAgreement, RowsFindTheCallersThatTheInterpreterFinds) {
  auto file = format::open_input(GetParam());
  if (!file) GTEST_SKIP() << file.error().what;
  const auto image = unwind::ElfImage::open(std::move(*file));
  if (!image) GTEST_SKIP() << image.error().what;
  const auto frames = image->section(".eh_frame");
  if (!frames) GTEST_SKIP() << "it has no .eh_frame";
  const auto machine = unwind::machine_of(*image);
  ASSERT_TRUE(machine);
  const unwind::CfiSection section{
      frames->bytes, frames->address, unwind::CfiForm::EhFrame, image->order(), 8, *machine};
  const auto table = unwind::row_table_of(*image);
  ASSERT_TRUE(table) << table.error().what;
  Agreement agreement;
  compare(section, *table, agreement);
  EXPECT_GT(agreement.places, 0u);
  // What rows cannot say; the most of it is in the dynamic loader, whose entries are written by hand.
  EXPECT_LE(agreement.unsaid * 500, agreement.places) << agreement.unsaid << " of " << agreement.places;
}

INSTANTIATE_TEST_SUITE_P(Arm64, RowAgreement, testing::Values(TACHO_TEST_DATA "/arm64.so"));
#if defined(__x86_64__)
INSTANTIATE_TEST_SUITE_P(Binaries, RowAgreement,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
                                         "/lib/x86_64-linux-gnu/libm.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/perf",
                                         "/usr/bin/python3", "/usr/bin/perl", "/usr/bin/bash",
                                         "/usr/bin/node", "/proc/self/exe"));
#endif

}  // namespace
}  // namespace tacho::symbolize
