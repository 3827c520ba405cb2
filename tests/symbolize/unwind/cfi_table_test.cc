#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

#include "symbolize/unwind/unwind_module.h"
#include "tests/unwind/cfi_image.h"

namespace tacho::symbolize {
namespace {

namespace images = unwind::test;
using images::Function;
using images::kBase;

class CfiTableTest : public testing::Test {
 protected:
  static CfiTable table(images::Search search, images::Headers headers = images::Headers::Sections) {
    const std::string file = images::elf_image(kFunctions, search, headers);
    const auto bytes = std::as_bytes(std::span(file));
    auto image = ElfImage::in_memory({bytes.begin(), bytes.end()});
    EXPECT_TRUE(image);
    auto made = CfiTable::from_eh_frame(*image);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  static inline const std::vector<Function> kFunctions{
      {.start = 0x1080, .size = 0x20, .program = {0x41, 0x0e, 24}},
      {.start = 0x1000, .size = 0x40, .program = {0x41, 0x0e, 16}},
      {.start = 0x1100, .size = 0x10, .program = {0x3f}},
  };
};

TEST_F(CfiTableTest, TheSearchTableAndTheIndexFindTheSame) {
  CfiTable by_table = table(images::Search::Table), by_index = table(images::Search::Index),
           by_segment = table(images::Search::Table, images::Headers::SegmentsOnly);
  for (std::uint64_t pc = kBase + 0xff0; pc < kBase + 0x1120; ++pc) {
    for (CfiTable* const other : {&by_index, &by_segment}) {
      const auto a = by_table.find_rules(pc), b = other->find_rules(pc);
      ASSERT_EQ(a.row == nullptr, b.row == nullptr) << std::hex << pc;
      EXPECT_EQ(a.is_damaged, b.is_damaged) << std::hex << pc;
      if (a.row) {
        EXPECT_EQ(a.row->cfa.offset, b.row->cfa.offset);
      }
    }
  }
}

TEST_F(CfiTableTest, BetweenFunctionsThereIsNothing) {
  CfiTable found = table(images::Search::Table);
  EXPECT_EQ(found.find_rules(kBase + 0x1001).row->cfa.offset, 16);
  EXPECT_EQ(found.find_rules(kBase + 0x109f).row->cfa.offset, 24);
  EXPECT_FALSE(found.find_rules(kBase + 0xfff).row);
  EXPECT_FALSE(found.find_rules(kBase + 0x1040).row);
  EXPECT_FALSE(found.find_rules(kBase + 0x10a0).is_damaged);
  EXPECT_TRUE(found.find_rules(kBase + 0x1100).is_damaged) << "a function with an unknown instruction";
}

// As lld's where code lies before the table: the distances are sorted as unsigned numbers.
TEST_F(CfiTableTest, ATableThatIsNotAscendingIsNotSearched) {
  std::string bytes = images::elf_image(kFunctions, images::Search::Table);
  constexpr std::size_t kPairs = images::kHeader + 12, kPair = 8;
  std::rotate(bytes.begin() + kPairs, bytes.begin() + kPairs + kPair, bytes.begin() + kPairs + 3 * kPair);
  const auto view = std::as_bytes(std::span(bytes));
  const auto image = ElfImage::in_memory({view.begin(), view.end()});
  ASSERT_TRUE(image);
  auto found = CfiTable::from_eh_frame(*image);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->find_rules(kBase + 0x1001).row->cfa.offset, 16);
  EXPECT_EQ(found->find_rules(kBase + 0x109f).row->cfa.offset, 24);
}

}  // namespace
}  // namespace tacho::symbolize
