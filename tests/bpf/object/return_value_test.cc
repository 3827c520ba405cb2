#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <span>
#include <vector>

#include "bpf/object/kernel_btf.h"

namespace tacho::bpf {
namespace {

using Code = std::vector<bpf_insn>;

bpf_insn set(unsigned to, int value) {
  return {BPF_ALU64 | BPF_MOV | BPF_K, static_cast<__u8>(to & 15U), 0, 0, value};
}
bpf_insn add(unsigned to, int value) {
  return {BPF_ALU64 | BPF_ADD | BPF_K, static_cast<__u8>(to & 15U), 0, 0, value};
}
bpf_insn jump(int distance) { return {BPF_JMP | BPF_JA, 0, 0, static_cast<__s16>(distance), 0}; }
bpf_insn jump_if_zero(unsigned what, int distance) {
  return {BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u8>(what & 15U), 0, static_cast<__s16>(distance), 0};
}
bpf_insn call(int function) { return {BPF_JMP | BPF_CALL, 0, 0, 0, function}; }
const bpf_insn kExit{BPF_JMP | BPF_EXIT, 0, 0, 0, 0};

bool may_drop(const Code& code) { return may_drop_events(std::as_bytes(std::span(code))); }

TEST(ReturnValue, OneIsKeptAndZeroDrops) {
  EXPECT_FALSE(may_drop({set(0, 1), kExit}));
  EXPECT_TRUE(may_drop({set(0, 0), kExit}));
  EXPECT_TRUE(may_drop({set(0, 2), kExit})) << "the kernel joins results bit by bit, beginning with 1";
  EXPECT_FALSE(may_drop({set(0, -1), kExit}));
}

TEST(ReturnValue, EveryWayThroughTheProgramCounts) {
  EXPECT_TRUE(may_drop({set(0, 1), jump_if_zero(6, 1), set(0, 0), kExit}));
  EXPECT_FALSE(may_drop({set(0, 0), jump_if_zero(6, 1), set(1, 0), set(0, 1), kExit}));
  EXPECT_TRUE(may_drop({set(0, 1), jump(1), kExit, set(0, 0), jump(-3)})) << "a way back";
}

TEST(ReturnValue, WhatAFunctionReturnedIsNotKnown) {
  EXPECT_TRUE(may_drop({set(0, 1), call(14), kExit}));
  EXPECT_FALSE(may_drop({call(14), set(0, 1), kExit}));
  EXPECT_TRUE(may_drop({set(0, 1), add(0, 1), kExit}));
  EXPECT_TRUE(may_drop({call(12), set(0, 1), kExit})) << "a tail call: another program returns";
}

TEST(ReturnValue, ConstantsOfTwoInstructionsAreSteppedOver) {
  const bpf_insn wide{BPF_LD | BPF_IMM | BPF_DW, 1, 0, 0, 0};
  const bpf_insn rest{0, 0, 0, 0, 0};
  EXPECT_FALSE(may_drop({set(0, 1), wide, rest, kExit}));
  EXPECT_TRUE(may_drop({set(0, 1), {BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 1}, rest, kExit}));
}

TEST(ReturnValue, WhatIsNoProgramEndsTheWalk) {
  EXPECT_TRUE(may_drop({}));
  EXPECT_TRUE(may_drop({set(0, 1)}));
  EXPECT_TRUE(may_drop({set(0, 1), jump(-3)})) << "jumps in front of itself";
  EXPECT_FALSE(may_drop({set(0, 1), jump(-1)})) << "never ends";
  EXPECT_TRUE(may_drop({set(0, 1), jump(1000), kExit}));
}

}  // namespace
}  // namespace tacho::bpf
