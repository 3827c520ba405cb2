#include "record/stacks/mmap_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

namespace {

constexpr std::uint32_t kParent = 10, kChild = 11;

// "start-end:module" of each range.
std::string text_of(const CodeMaps& maps, std::uint32_t process) {
  const auto ranges = maps.ranges(process);
  if (!ranges) return "unknown";
  std::string text;
  for (const tacho_code_range& range : *ranges) {
    text += (text.empty() ? "" : " ") + std::to_string(range.start) + "-" + std::to_string(range.end) + ":" +
            std::to_string(range.module);
  }
  return text;
}
tacho_code_range range_of(std::uint64_t start, std::uint64_t end, std::uint32_t module) {
  return {start, end, 0, module, 0};
}

TEST(CodeMaps, WhatRanBeforeAnExecHadOtherMappings) {
  CodeMaps maps;
  EXPECT_EQ(maps.ranges_at(kParent, 5).ranges, nullptr);
  EXPECT_TRUE(maps.ranges_at(kParent, 5).is_now) << "there was no exec";
  maps.map(kParent, range_of(100, 200, 1), 1);
  maps.exec(kParent, 10);
  maps.map(kParent, range_of(300, 400, 2), 11);
  const auto before = maps.ranges_at(kParent, 9);
  ASSERT_NE(before.ranges, nullptr);
  EXPECT_EQ(before.ranges->front().start, 100u);
  EXPECT_FALSE(before.is_now);
  EXPECT_EQ(maps.ranges_at(kParent, 12).ranges->front().start, 300u);
  EXPECT_TRUE(maps.ranges_at(kParent, 12).is_now);
  EXPECT_EQ(maps.ranges_at(kParent, 0).ranges->front().start, 300u) << "an event without time";
}

// A shell that runs env that runs Python, between two looks at the rings.
TEST(CodeMaps, EachOfSeveralProgramsHadItsOwnMappings) {
  CodeMaps maps;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    maps.exec(kParent, 10 * i);
    maps.map(kParent, range_of(100 * i, 100 * i + 50, 1), 10 * i + 1);
  }
  EXPECT_EQ(maps.ranges_at(kParent, 15).ranges->front().start, 100u);
  EXPECT_EQ(maps.ranges_at(kParent, 25).ranges->front().start, 200u);
  EXPECT_EQ(maps.ranges_at(kParent, 35).ranges->front().start, 300u);
  for (std::uint64_t time = 40; time < 50; ++time) maps.exec(kParent, time);
  EXPECT_EQ(maps.ranges_at(kParent, 42).ranges, nullptr) << "too long ago: not those of a later program";
  EXPECT_FALSE(maps.ranges_at(kParent, 42).is_now);
}

// Its samples were finished by the mappings of the program that it became.
TEST(CodeMaps, WhatRanBeforeAnExecIsNotKnownWithoutRecords) {
  CodeMaps maps;
  maps.exec(kParent, 10);
  maps.map(kParent, range_of(300, 400, 2), 11);
  EXPECT_EQ(maps.ranges_at(kParent, 9).ranges, nullptr);
  EXPECT_FALSE(maps.ranges_at(kParent, 9).is_now) << "to look at it now would show another program";
}

TEST(CodeMaps, WhatRunsAlreadyIsInheritedToo) {
  CodeMaps maps(2);
  maps.running(kParent, {range_of(100, 200, 1), range_of(300, 400, 2)});
  maps.fork(kChild, kParent, 5);
  EXPECT_EQ(text_of(maps, kChild), "100-200:1 300-400:2");
  maps.running(kParent, {range_of(500, 600, 3)});
  EXPECT_EQ(text_of(maps, kParent), "100-200:1 300-400:2") << "the record is newer";
  maps.running(12, {range_of(1, 2, 1), range_of(3, 4, 1), range_of(5, 6, 1)});
  EXPECT_EQ(text_of(maps, 12), "unknown") << "a part of them would pass for all";
}

TEST(CodeMaps, ANumberThatIsGivenOutAgainHasNothingOfItsFormerProcess) {
  CodeMaps maps;
  maps.map(kChild, range_of(100, 200, 1), 1);
  maps.fork(kChild, 99, 5);
  EXPECT_EQ(text_of(maps, kChild), "unknown");
}

// A JIT maps and unmaps, and only the first has a record.
TEST(CodeMaps, CodeOfNoFileMakesRoomForNewer) {
  CodeMaps maps(5);
  maps.map(kParent, range_of(10, 20, 1), 1);
  for (std::uint64_t i = 1; i <= 4; ++i) maps.map(kParent, range_of(100 * i, 100 * i + 50, 0), 1 + i);
  maps.map(kParent, range_of(500, 550, 0), 6);
  EXPECT_EQ(text_of(maps, kParent), "10-20:1 300-350:0 400-450:0 500-550:0");
  maps.map(kParent, range_of(600, 650, 2), 7);
  maps.map(kParent, range_of(700, 750, 2), 8);
  EXPECT_EQ(text_of(maps, kParent), "10-20:1 500-550:0 600-650:2 700-750:2");
}

TEST(CodeMaps, ANewMappingTakesThePlaceOfWhatItCovers) {
  CodeMaps maps;
  maps.map(kParent, range_of(100, 200, 1), 1);
  maps.map(kParent, range_of(300, 400, 2), 1);
  EXPECT_EQ(text_of(maps, kParent), "100-200:1 300-400:2");
  maps.map(kParent, range_of(150, 350, 3), 2);
  EXPECT_EQ(text_of(maps, kParent), "100-150:1 150-350:3 350-400:2");
  maps.map(kParent, range_of(200, 210, 4), 3);
  EXPECT_EQ(text_of(maps, kParent), "100-150:1 150-200:3 200-210:4 210-350:3 350-400:2");
  maps.map(kParent, range_of(0, 1000, 5), 4);
  EXPECT_EQ(text_of(maps, kParent), "0-1000:5");
  maps.map(kParent, range_of(0, 1000, 6), 5);
  EXPECT_EQ(text_of(maps, kParent), "0-1000:6");
}

TEST(CodeMaps, NoMoreRangesThanAProcessMayHave) {
  CodeMaps maps(3);
  maps.map(kParent, range_of(100, 200, 1), 1);
  maps.map(kParent, range_of(300, 400, 2), 1);
  maps.map(kParent, range_of(350, 360, 3), 2);
  EXPECT_EQ(text_of(maps, kParent), "100-200:1 300-400:2") << "it would leave two parts of one";
  maps.map(kParent, range_of(500, 600, 3), 2);
  const auto full = maps.ranges(kParent);
  maps.map(kParent, range_of(700, 800, 4), 3);
  EXPECT_EQ(maps.ranges(kParent), full);
  maps.map(kParent, range_of(150, 350, 5), 4);
  EXPECT_EQ(text_of(maps, kParent), "100-200:1 300-400:2 500-600:3") << "with its parts these were four";
  maps.map(kParent, range_of(100, 400, 6), 5);
  EXPECT_EQ(text_of(maps, kParent), "100-400:6 500-600:3");
}

TEST(CodeMaps, AChildHasItsParentsMappingsUntilOneOfThemChanges) {
  CodeMaps maps;
  maps.map(kParent, range_of(100, 200, 1), 1);
  maps.fork(kChild, kParent, 2);
  EXPECT_EQ(maps.ranges(kChild), maps.ranges(kParent)) << "one copy";
  maps.map(kChild, range_of(300, 400, 2), 3);
  EXPECT_EQ(text_of(maps, kChild), "100-200:1 300-400:2");
  EXPECT_EQ(text_of(maps, kParent), "100-200:1");
  maps.exec(kChild, 4);
  EXPECT_EQ(text_of(maps, kChild), "");
  maps.remove(kChild);
  EXPECT_EQ(text_of(maps, kChild), "unknown");
  EXPECT_EQ(text_of(maps, kParent), "100-200:1");
}

TEST(CodeMaps, WhatIsOlderThanAnExecIsIgnored) {
  CodeMaps maps;
  maps.map(kParent, range_of(100, 200, 1), 1);
  maps.exec(kChild, 10);
  maps.map(kChild, range_of(300, 400, 2), 11);
  maps.fork(kChild, kParent, 9);
  maps.map(kChild, range_of(500, 600, 3), 8);
  EXPECT_EQ(text_of(maps, kChild), "300-400:2");
}

TEST(CodeMaps, ChangesAreReportedOnce) {
  CodeMaps maps;
  maps.map(kParent, range_of(100, 200, 1), 1);
  maps.fork(kChild, kParent, 2);
  auto changed = maps.take_changed();
  std::ranges::sort(changed);
  EXPECT_EQ(changed, (std::vector<std::uint32_t>{kParent, kChild}));
  EXPECT_TRUE(maps.take_changed().empty());
  maps.remove(kChild);
  maps.remove(kChild);
  EXPECT_EQ(maps.take_changed(), std::vector<std::uint32_t>{kChild});
  maps.fork(12, 99, 1);
  EXPECT_EQ(text_of(maps, 12), "unknown") << "of a parent that nobody knows";
}

}  // namespace

}  // namespace tacho::record
