#include "tests/bpf/unwinder/arm64_walk.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "bpf/programs/stack_maps.h"

namespace tacho::bpf {
namespace {

constexpr std::uint64_t kStack = 0x7000'0000, kSignature = 0x2a'0000'0000'0000;
// Functions, each of 0x100 bytes.
constexpr std::uint64_t kLeaf = 0x1000, kSorts = 0x1100, kFramed = 0x1200, kLarge = 0x1300, kStart = 0x1400,
                        kLibrary = 0x1500, kSignalReturn = 0x1600, kApart = 0x1700;
constexpr std::uint64_t kFunctionBytes = 0x100;

using Words = std::vector<std::uint64_t>;

tacho_unwind_row arm64_row_of(int kind, int cfa = 0, int place = 0) {
  return {0, static_cast<std::int16_t>(cfa), static_cast<std::int8_t>(place),
          static_cast<std::uint8_t>(kind)};
}
arm64_code function_at(std::uint64_t start, tacho_unwind_row row) {
  return {start, kFunctionBytes, row, false};
}

class Arm64Walk : public testing::Test {
 protected:
  // Frames, leaf first, and how the walk ended.
  Words walked(std::uint64_t pc, const Words& stack, std::uint64_t x29 = 0, std::uint64_t x30 = 0) const {
    arm64_walk walk{};
    walk.stack = stack.data();
    walk.words = stack.size();
    walk.stack_at = walk.sp = kStack;
    walk.code = code_.data();
    walk.functions = code_.size();
    walk.pc = pc;
    walk.x29 = x29;
    walk.x30 = x30;
    walk_arm64_stack(&walk);
    Words result(walk.frames, walk.frames + walk.count);
    result.push_back(walk.end);
    return result;
  }

  std::vector<arm64_code> code_{
      function_at(kLeaf, arm64_row_of(TACHO_UNWIND_RSP)),
      function_at(kSorts, arm64_row_of(TACHO_UNWIND_LINK_RSP, 6, -5)),  // stp x19, x30, [sp, -48]!
      function_at(kFramed, arm64_row_of(TACHO_UNWIND_RSP, 4, -4)),  // stp x29, x30, [sp, -32]!; mov x29, sp
      function_at(kLarge,
                  arm64_row_of(TACHO_UNWIND_LINK_RSP, 640, 2)),  // sub sp, sp, 5120; stp x19, x30, [sp]
      function_at(kStart, arm64_row_of(TACHO_UNWIND_END)),
      {kLibrary, kFunctionBytes, {}, true},
      function_at(kSignalReturn, arm64_row_of(TACHO_UNWIND_SIGNAL)),
  };
};

TEST_F(Arm64Walk, GoesBySavedReturnAddressesSignedOrNot) {
  const Words stack{19, (kFramed + 8) | kSignature,
                    1,  2,
                    3,  4,            // sorts
                    0,  kStart + 8};  // framed
  EXPECT_EQ(walked(kLeaf, stack, 0, (kSorts + 8) | kSignature),
            (Words{kLeaf, kSorts + 8, kFramed + 8, kStart + 8, TACHO_END_WHOLE}));
}

TEST_F(Arm64Walk, ALargeFrameKeepsTheReturnAddressAtItsBottom) {
  Words stack(640, 0);
  stack[1] = kSorts + 8;
  stack.insert(stack.end(), {19, kStart + 8, 0, 0, 0, 0});
  EXPECT_EQ(walked(kLarge, stack), (Words{kLarge, kSorts + 8, kStart + 8, TACHO_END_WHOLE}));
}

// The library's frame is larger than its record, and kSorts has no record.
TEST_F(Arm64Walk, AFrameFoundByFramePointerDoesNotSayWhereTheNextOneBegins) {
  const Words stack{0x1, kSorts + 8, 7, kStart + 8, 9, kStart + 8,  // library; x29 points to its record
                    19,  kStart + 8, 0, 0,          0, 0};          // sorts
  EXPECT_EQ(walked(kLibrary + 4, stack, kStack), (Words{kLibrary + 4, kSorts + 8, TACHO_END_NO_RULE}));
}

TEST_F(Arm64Walk, AFunctionWithAFrameRecordSaysItAgain) {
  const std::uint64_t framed_at = kStack + 8 * 6;
  const Words stack{framed_at, kFramed + 8, 7, 8, 9, 10,  // library
                    0,         kSorts + 8,  0, 0,         // framed; the library's x29 points to its record
                    19,        kStart + 8,  0, 0, 0, 0};  // sorts
  EXPECT_EQ(walked(kLibrary + 4, stack, kStack),
            (Words{kLibrary + 4, kFramed + 8, kSorts + 8, kStart + 8, TACHO_END_WHOLE}));
}

TEST_F(Arm64Walk, WhereX29IsNoFramePointerItIsSavedApart) {
  code_.push_back(function_at(kApart, arm64_row_of(TACHO_UNWIND_SIDE_BY_SIDE + 2, 4, -4)));
  const std::uint64_t framed_at = kStack + 8 * 4;
  const Words stack{framed_at, 28,         kFramed + 8, 19,  // x29, x28, x30, x19
                    0,         kStart + 8, 0,           0};  // framed
  code_[2].row = arm64_row_of(TACHO_UNWIND_RBP, 4, -4);
  EXPECT_EQ(walked(kApart, stack), (Words{kApart, kFramed + 8, kStart + 8, TACHO_END_WHOLE}));
}

TEST_F(Arm64Walk, AllRegistersAreKnownWhereASignalCame) {
  Words stack(80, 0);
  const std::uint64_t interrupted_at = kStack + 8 * stack.size();
  stack[68] = 5;
  stack[69] = kSorts + 8;
  stack[70] = interrupted_at;
  stack[71] = kLeaf + 4;
  stack.insert(stack.end(), {19, kStart + 8, 0, 0, 0, 0});
  const Words expected{kSignalReturn, TACHO_INTERRUPTED, kLeaf + 4, kSorts + 8, kStart + 8, TACHO_END_WHOLE};
  EXPECT_EQ(walked(kSignalReturn, stack), expected);
}

TEST_F(Arm64Walk, EndsWhereTheCallersFrameIsNotAbove) {
  EXPECT_EQ(walked(kLeaf, {}, 0, kLeaf + 8), (Words{kLeaf, kLeaf + 8, TACHO_END_LOOP})) << "x30 is used once";
  EXPECT_EQ(walked(kSorts, {1}), (Words{kSorts, TACHO_END_UNREADABLE}));
}

}  // namespace
}  // namespace tacho::bpf
