#include "record/stacks/code_maps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tacho::record {
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
  EXPECT_EQ(maps.ranges_at(kParent, 5), nullptr);
  maps.map(kParent, range_of(100, 200, 1), 1);
  maps.exec(kParent, 10);
  maps.map(kParent, range_of(300, 400, 2), 11);
  ASSERT_NE(maps.ranges_at(kParent, 9), nullptr);
  EXPECT_EQ(maps.ranges_at(kParent, 9)->front().start, 100u);
  EXPECT_EQ(maps.ranges_at(kParent, 12)->front().start, 300u);
  EXPECT_EQ(maps.ranges_at(kParent, 0)->front().start, 300u) << "an event without time";
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

TEST(CodeMaps, WhatIsOlderThanAnExecIsNoNews) {
  CodeMaps maps;
  maps.map(kParent, range_of(100, 200, 1), 1);
  maps.exec(kChild, 10);
  maps.map(kChild, range_of(300, 400, 2), 11);
  maps.fork(kChild, kParent, 9);
  maps.map(kChild, range_of(500, 600, 3), 8);
  EXPECT_EQ(text_of(maps, kChild), "300-400:2");
}

TEST(CodeMaps, ChangesAreToldOnce) {
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
