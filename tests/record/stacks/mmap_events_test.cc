#include "record/stacks/mmap_events.h"

#include <gtest/gtest.h>

namespace tacho::record {

namespace {

TEST(MmapHistory, TheLatestMappingHoldsAndTheOldestGoFirst) {
  MmapHistory history(2);
  history.note({1, 0x1000}, 7);
  history.note({1, 0x1000}, 8);
  history.note({2, 0x1000}, 9);
  EXPECT_EQ(history.module_at({1, 0x1000}), 8u);
  history.note({2, 0x2000}, 10);
  EXPECT_EQ(history.module_at({1, 0x1000}), std::nullopt);
  EXPECT_EQ(history.module_at({2, 0x1000}), 9u);
  EXPECT_EQ(history.module_at({2, 0x2000}), 10u);
}

// A process that runs another program, whose mappings often begin where the old one's did.
TEST(MmapHistory, AMappingThatIsNotedAgainOutlivesItsFirstTurn) {
  MmapHistory history(3);
  history.note({1, 0x1000}, 7);
  history.forget(1);
  EXPECT_EQ(history.module_at({1, 0x1000}), std::nullopt);
  history.note({2, 0x1000}, 9);
  history.note({1, 0x1000}, 8);
  history.note({3, 0x1000}, 10);  // the first turn ends
  EXPECT_EQ(history.module_at({1, 0x1000}), 8u);
  history.note({4, 0x1000}, 11);
  EXPECT_EQ(history.module_at({2, 0x1000}), std::nullopt);
  EXPECT_EQ(history.module_at({1, 0x1000}), 8u);
  history.note({5, 0x1000}, 12);
  EXPECT_EQ(history.module_at({1, 0x1000}), std::nullopt);
}

TEST(MmapHistory, ModulesThatAreGivenUpAreForgottenInAllProcesses) {
  MmapHistory history(10);
  history.note({1, 0x1000}, 7);
  history.note({2, 0x1000}, 7);
  history.note({2, 0x2000}, 8);
  history.forget_modules({7});
  EXPECT_EQ(history.module_at({1, 0x1000}), std::nullopt);
  EXPECT_EQ(history.module_at({2, 0x1000}), std::nullopt);
  EXPECT_EQ(history.module_at({2, 0x2000}), 8u);
}

}  // namespace

}  // namespace tacho::record
