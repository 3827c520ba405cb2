#include "record/stacks/stack_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "format/base/byte_writer.h"

namespace tacho::record {

namespace {

using StackWords = std::vector<std::uint64_t>;
constexpr std::uint64_t kSp = 0x7000;

class FinishUnwindTest : public testing::Test {
 protected:
  FinishUnwindTest() {
    copy_.sp = kSp;
    copy_.bp = 0;
    copy_.frames = 1;
    copy_.is_bp_known = true;
    walk_.frames = {0x1000};
    walk_.end = TACHO_END_NO_TABLE;
  }
  void stack(const StackWords& words) {
    const auto bytes = std::as_bytes(std::span(words));
    copy_.bytes.assign(bytes.begin(), bytes.end());
  }
  void row(std::uint64_t address, int kind, int cfa = 0, int rbp = 0, int rbx = 0) {
    rows_[address] = {
        {0, static_cast<std::int16_t>(cfa), static_cast<std::int8_t>(rbp), static_cast<std::uint8_t>(kind)},
        static_cast<std::int8_t>(rbx)};
  }
  // Frames, and how it ends after them.
  StackWords walked(std::size_t most = 100) {
    finish_unwind(walk_, copy_, most, [this](std::uint64_t address, bool is_return, std::uint16_t& end) {
      const auto found = rows_.find(address - (is_return ? 1 : 0));
      if (found == rows_.end()) end = end_;
      return found == rows_.end() ? std::nullopt : std::optional(found->second);
    });
    StackWords result = walk_.frames;
    result.push_back(walk_.end);
    return result;
  }

  StackCopy copy_;
  CallchainMerger::Walk walk_;
  std::map<std::uint64_t, unwind::RowFinder::Found> rows_;
  std::uint16_t end_ = TACHO_END_NO_MAPPING;
};

TEST_F(FinishUnwindTest, GoesByRowsToTheFirstFunction) {
  stack({0, 0x2001, 0x7028, 0x3001, 1, 0x7777, 0x4001});
  row(0x1000, TACHO_UNWIND_RSP, 2);
  row(0x2000, TACHO_UNWIND_RSP, 2, -2);  // its caller's rbp is 0x7028
  row(0x3000, TACHO_UNWIND_RBP, 2, TACHO_UNWIND_RBP_AT_RBP);
  row(0x4000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (StackWords{0x1000, 0x2001, 0x3001, 0x4001, TACHO_END_WHOLE}));
}

TEST_F(FinishUnwindTest, WhatTheKernelGuessedAfterTheCopyGoes) {
  walk_.frames = {0x500, 0x1000, 0xbad, 0xbad0};
  copy_.frames = 2;
  stack({0x2001});
  row(0x1000, TACHO_UNWIND_RSP, 1);
  row(0x2000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (StackWords{0x500, 0x1000, 0x2001, TACHO_END_WHOLE}));
}

TEST_F(FinishUnwindTest, AFrameThatIsAReturnIsLookedUpBeforeIt) {
  copy_.is_return = true;
  copy_.frames = 2;
  walk_.frames = {0x500, 0x1000};
  stack({0});
  row(0x0fff, TACHO_UNWIND_RSP, 1);
  EXPECT_EQ(walked(), (StackWords{0x500, 0x1000, TACHO_END_WHOLE})) << "nobody stands above";
}

TEST_F(FinishUnwindTest, TheSampledFunctionWasCalled) {
  stack({0});
  row(0x1000, TACHO_UNWIND_RSP, 1);
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_END_NO_RULE}));
}

// As the dynamic linker does when a function is called for the first time.
TEST_F(FinishUnwindTest, FramesThatRbxLeadsToAreFoundWhileItIsKnown) {
  stack({1, 0x7028, 0x2001, 2, 3, 4, 0x3001});
  row(0x1000, TACHO_UNWIND_RSP, 3, 0, -2);  // saved two words below what is above its frame
  row(0x2000, 3, 2);                        // 16 above rbx
  row(0x3000, TACHO_UNWIND_END);
  copy_.is_extra_known = true;
  EXPECT_EQ(walked(), (StackWords{0x1000, 0x2001, 0x3001, TACHO_END_WHOLE}));
  walk_.frames = {0x1000};
  row(0x1000, TACHO_UNWIND_RSP, 3);  // still the sampled function's
  copy_.extra = 0x7028;
  EXPECT_EQ(walked(), (StackWords{0x1000, 0x2001, 0x3001, TACHO_END_WHOLE}));
  walk_.frames = {0x1000};
  copy_.is_extra_known = false;
  EXPECT_EQ(walked(), (StackWords{0x1000, 0x2001, TACHO_END_ODD_RULE}));
}

TEST_F(FinishUnwindTest, SignalFramesTablesOfCallsAndChangedStacks) {
  StackWords words(64, 0);
  words[TACHO_UNWIND_SIGNAL_RIP] = 0x2000;
  words[TACHO_UNWIND_SIGNAL_RSP] = kSp + 8 * 30;
  words[TACHO_UNWIND_SIGNAL_RBP] = 0x99;
  words[30] = 0x4444;  // the entry has pushed a word
  words[31] = 0x300c;
  words[33] = kSp + 8 * 40;  // another stack, with what is returned to on top
  words[40] = 0x4001;
  stack(words);
  row(0x1000, TACHO_UNWIND_SIGNAL);
  row(0x2000, TACHO_UNWIND_PLT, 1, 0);
  row(0x300b, TACHO_UNWIND_AT_RSP, 1);
  row(0x4000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_INTERRUPTED, 0x2000, 0x300c, 0x4001, TACHO_END_WHOLE}))
      << "what follows the mark was interrupted, and is no return address";
}

TEST_F(FinishUnwindTest, ItEndsWhereTheCopyDoes) {
  stack({1, 2});
  row(0x1000, TACHO_UNWIND_RSP, 9);
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_END_COPY}));
}

TEST_F(FinishUnwindTest, TheCopyOfADeepStackHasParts) {
  stack({0, 1});
  copy_.number = 7;
  StackCopy part = copy_;
  part.sp = kSp + 8;
  EXPECT_FALSE(add_part(copy_, part)) << "it begins elsewhere";
  part.sp = kSp + 16;
  part.number = 8;
  EXPECT_FALSE(add_part(copy_, part));
  part.number = 7;
  part.bytes.assign(8, std::byte{0});
  part.bytes[0] = std::byte{1};
  part.bytes[1] = std::byte{0x20};
  ASSERT_TRUE(add_part(copy_, part));
  row(0x1000, TACHO_UNWIND_RSP, 3);
  row(0x2000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (StackWords{0x1000, 0x2001, TACHO_END_WHOLE}));
}

TEST_F(FinishUnwindTest, LoopsAndOddRulesEndIt) {
  stack({0x2001, 1, 2, 3});
  row(0x1000, TACHO_UNWIND_RSP, 0);
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_END_LOOP}));
  walk_.frames = {0x1000};
  row(0x1000, TACHO_UNWIND_OTHER);
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_END_ODD_RULE}));
  walk_.frames = {0x1000};
  row(0x1000, 10, 2);  // above r10, which no copy holds
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_END_ODD_RULE}));
  walk_.frames = {0x1000};
  row(0x1000, TACHO_UNWIND_RSP, -2);
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_END_LOOP}));
}

TEST_F(FinishUnwindTest, CodeWithoutRowsGoesByFramePointers) {
  const auto again = [this](std::uint64_t bp) {
    walk_.frames = {0x500, 0x1000};
    copy_.bp = bp;
    return walked();
  };
  copy_.frames = 2;
  stack({0, 0, 0, 0x2001});
  row(0x1000, TACHO_UNWIND_NOTHING);
  row(0x2000, TACHO_UNWIND_END);
  EXPECT_EQ(again(kSp + 16), (StackWords{0x500, 0x1000, 0x2001, TACHO_END_WHOLE}));
  EXPECT_EQ(again(kSp + 17), (StackWords{0x500, 0x1000, TACHO_END_NO_RULE}));
  EXPECT_EQ(again(0), (StackWords{0x500, 0x1000, TACHO_END_FRAME_ZERO}));
  copy_.is_bp_known = false;
  EXPECT_EQ(again(kSp + 16), (StackWords{0x500, 0x1000, TACHO_END_NO_RULE}));
}

// It may be anything that lay on the stack, and is nobody's to write down.
TEST_F(FinishUnwindTest, AGuessedWordThatIsNoCodeIsNoFrame) {
  copy_.frames = 2;
  walk_.frames = {0x500, 0x1000};
  copy_.bp = kSp + 16;
  stack({0, 0, 0, 0xdead});
  row(0x1000, TACHO_UNWIND_NOTHING);
  EXPECT_EQ(walked(), (StackWords{0x500, 0x1000, TACHO_END_NO_RULE}));
}

TEST_F(FinishUnwindTest, NoMoreFramesThanAskedFor) {
  StackWords words;
  for (int i = 0; i < 50; ++i) words.push_back(0x1001);
  stack(words);
  row(0x1000, TACHO_UNWIND_RSP, 1);
  const StackWords found = walked(7);
  EXPECT_EQ(found.size(), 8u);
  EXPECT_EQ(found.back(), std::uint64_t{TACHO_END_CUT});
}

TEST_F(FinishUnwindTest, AFileThatIsGoneLeavesWhatTheKernelFound) {
  walk_.frames = {0x1000, 0x2001, 0x3001};
  end_ = TACHO_END_NO_TABLE;
  EXPECT_EQ(walked(), (StackWords{0x1000, 0x2001, 0x3001, TACHO_END_NO_TABLE}));
}

TEST_F(FinishUnwindTest, ACopyOfAnotherWalkIsNotUsed) {
  copy_.frames = 2;
  row(0x1000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_END_NO_TABLE}));
  copy_.frames = 0;
  EXPECT_EQ(walked(), (StackWords{0x1000, TACHO_END_NO_TABLE}));
}

TEST(StackCopyOf, TakesApartWhatTheProgramWrote) {
  format::ByteWriter out;
  out.u64(5).u64(kSp).u64(0x7100).u64(0x7200).u32(3).u8(1).u8(0).u8(1).u8(0).u64(0xabc);
  const auto copy = stack_copy_of(out.view());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->number, 5u);
  EXPECT_EQ(copy->sp, kSp);
  EXPECT_EQ(copy->bp, 0x7100u);
  EXPECT_EQ(copy->frames, 3u);
  EXPECT_TRUE(copy->is_return);
  EXPECT_FALSE(copy->is_bp_known);
  EXPECT_TRUE(copy->is_extra_known);
  EXPECT_EQ(copy->extra, 0x7200u);
  EXPECT_EQ(copy->bytes.size(), 8u);
  EXPECT_EQ(sizeof(tacho_stack_copy) - sizeof(tacho_stack_copy::bytes), 40u)
      << "what stands before the bytes";
  EXPECT_FALSE(stack_copy_of(out.view().first(39)));
}

}  // namespace

}  // namespace tacho::record
