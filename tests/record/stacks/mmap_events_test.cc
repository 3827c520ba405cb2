#include "record/stacks/mmap_events.h"

#include <gtest/gtest.h>

namespace tacho::record {

namespace {

TEST(MmapHistory, TheLatestMappingHoldsAndTheOldestGoFirst) {
  MmapHistory told(2);
  told.note({1, 0x1000}, 7);
  told.note({1, 0x1000}, 8);
  told.note({2, 0x1000}, 9);
  EXPECT_EQ(told.module_at({1, 0x1000}), 8u);
  told.note({2, 0x2000}, 10);
  EXPECT_EQ(told.module_at({1, 0x1000}), std::nullopt);
  EXPECT_EQ(told.module_at({2, 0x1000}), 9u);
  EXPECT_EQ(told.module_at({2, 0x2000}), 10u);
}

// A process that runs another program, whose mappings often begin where the old one's did.
TEST(MmapHistory, AMappingThatIsNotedAgainOutlivesItsFirstTurn) {
  MmapHistory told(3);
  told.note({1, 0x1000}, 7);
  told.forget(1);
  EXPECT_EQ(told.module_at({1, 0x1000}), std::nullopt);
  told.note({2, 0x1000}, 9);
  told.note({1, 0x1000}, 8);
  told.note({3, 0x1000}, 10);  // the first turn ends
  EXPECT_EQ(told.module_at({1, 0x1000}), 8u);
  told.note({4, 0x1000}, 11);
  EXPECT_EQ(told.module_at({2, 0x1000}), std::nullopt);
  EXPECT_EQ(told.module_at({1, 0x1000}), 8u);
  told.note({5, 0x1000}, 12);
  EXPECT_EQ(told.module_at({1, 0x1000}), std::nullopt);
}

TEST(MmapHistory, ModulesThatAreGivenUpAreForgottenInAllProcesses) {
  MmapHistory told(10);
  told.note({1, 0x1000}, 7);
  told.note({2, 0x1000}, 7);
  told.note({2, 0x2000}, 8);
  told.forget_modules({7});
  EXPECT_EQ(told.module_at({1, 0x1000}), std::nullopt);
  EXPECT_EQ(told.module_at({2, 0x1000}), std::nullopt);
  EXPECT_EQ(told.module_at({2, 0x2000}), 8u);
}

}  // namespace

}  // namespace tacho::record
