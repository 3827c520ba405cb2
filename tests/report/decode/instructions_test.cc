#include "report/decode/instructions.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

using namespace tacho;
using namespace tacho::report;

namespace {

std::vector<std::byte> code(std::initializer_list<int> bytes) {
  std::vector<std::byte> made;
  for (const int byte : bytes) made.push_back(static_cast<std::byte>(byte));
  return made;
}

std::vector<DisassembledInstruction> disassembled(const std::vector<std::byte>& bytes,
                                                  AsmSyntax syntax = AsmSyntax::Att,
                                                  std::string_view arch = "x86_64") {
  return Disassembler(arch, WordSize::Bits64, syntax).disassemble(bytes, 0x1000);
}

TEST(Disassembler, WritesX86InBothSyntaxes) {
  const auto bytes = code({0x48, 0x8d, 0x3c, 0xb7});
  const auto att = disassembled(bytes), intel = disassembled(bytes, AsmSyntax::Intel);
  ASSERT_EQ(att.size(), 1u);
  ASSERT_EQ(intel.size(), 1u);
  EXPECT_EQ(att[0].mnemonic + " " + att[0].operands, "leaq (%rdi, %rsi, 4), %rdi");
  EXPECT_EQ(intel[0].mnemonic + " " + intel[0].operands, "lea rdi, [rdi + rsi*4]");
  EXPECT_EQ(att[0].size, 4u);
}

TEST(Disassembler, KnowsWhereJumpsAndCallsLead) {
  const auto lines = disassembled(code({0x7e, 0x10, 0xe8, 0xf9, 0xff, 0xff, 0xff, 0xeb, 0xf7, 0xc3}));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].kind, InstructionKind::Jump);
  EXPECT_TRUE(lines[0].is_conditional);
  EXPECT_EQ(lines[0].target, 0x1012u);
  EXPECT_EQ(lines[0].operands, "") << "the target stands after the operands";
  EXPECT_EQ(lines[1].kind, InstructionKind::Call);
  EXPECT_EQ(lines[1].target, 0x1000u);
  EXPECT_EQ(lines[2].kind, InstructionKind::Jump);
  EXPECT_FALSE(lines[2].is_conditional);
  EXPECT_EQ(lines[2].target, 0x1000u);
  EXPECT_EQ(lines[3].kind, InstructionKind::Return);
  EXPECT_FALSE(lines[3].target.has_value());
}

TEST(Disassembler, GivesTheAddressOfWhatCountsFromTheProgramCounter) {
  const auto lines = disassembled(code({0x48, 0x89, 0x05, 0x10, 0x00, 0x00, 0x00, 0xff, 0xe0}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].memory, 0x1017u);
  EXPECT_EQ(lines[1].kind, InstructionKind::Jump);
  EXPECT_FALSE(lines[1].target.has_value()) << "*%rax may lead anywhere";
}

TEST(Disassembler, GoesOnAfterBytesThatAreNoInstruction) {
  const auto lines = disassembled(code({0x06, 0x90}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].kind, InstructionKind::Bad);
  EXPECT_EQ(lines[0].size, 1u);
  EXPECT_EQ(lines[1].mnemonic, "nop");
}

TEST(Disassembler, KnowsTheSizeOfInstructionsThatCapstoneLacks) {
  // vpminub (%rsi),%ymm18,%ymm20; vpcmpub $0x4,%ymm17,%ymm18,%k1; nop
  const auto lines = disassembled(
      code({0x62, 0xe1, 0x6d, 0x20, 0xda, 0x26, 0x62, 0xb3, 0x6d, 0x20, 0x3e, 0xc9, 0x04, 0x90}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].size, 6u);
  EXPECT_EQ(lines[1].size, 7u);
  EXPECT_EQ(lines[2].mnemonic, "nop");
}

TEST(Disassembler, EndsWhereTheCodeEndsWithinAnInstruction) {
  const auto lines = disassembled(code({0xe8, 0x00}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].kind, InstructionKind::Bad);
  std::uint64_t bytes = 0;
  for (const auto& line : lines) bytes += line.size;
  EXPECT_EQ(bytes, 2u);
}

TEST(Disassembler, TellsCallsFromJumpsOnArm64) {
  const auto lines = disassembled(
      code({0x10, 0x00, 0x00, 0x94, 0x80, 0x00, 0x00, 0x36, 0x04, 0x00, 0x00, 0x14, 0xc0, 0x03, 0x5f, 0xd6}),
      AsmSyntax::Att, "aarch64");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].kind, InstructionKind::Call);
  EXPECT_EQ(lines[0].target, 0x1040u);
  EXPECT_EQ(lines[1].kind, InstructionKind::Jump);
  EXPECT_TRUE(lines[1].is_conditional);
  EXPECT_EQ(lines[1].operands, "w0, #0, ");
  EXPECT_EQ(lines[1].target, 0x1014u);
  EXPECT_FALSE(lines[2].is_conditional);
  EXPECT_EQ(lines[3].kind, InstructionKind::Return);
}

TEST(Disassembler, TakesAnUnknownArm64WordForData) {
  const auto lines = disassembled(code({0xff, 0xff, 0xff, 0xff, 0x01}), AsmSyntax::Att, "aarch64");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].operands, "0xffffffff");
  EXPECT_EQ(lines[0].size, 4u);
  EXPECT_EQ(lines[1].size, 1u) << "the end of the code is no whole word";
}

TEST(Disassembler, KnowsNoOtherMachine) {
  const Disassembler other("riscv64", WordSize::Bits64, AsmSyntax::Att);
  EXPECT_FALSE(other.knows_machine());
  EXPECT_TRUE(other.disassemble(code({0x90}), 0).empty());
}

}  // namespace
