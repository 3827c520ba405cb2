#include "record/host/function_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

namespace tacho::record {
namespace {

TEST(FunctionTypes, SayWhichRegistersPointToText) {
  const auto texts = texts_of_functions(
      "enum\t0\tNONE\n"
      "function\t4096\ti4\tint\n"
      "argument\t0\tt8\tconst char *\ta\nargument\t1\ti4\tint\tn\nargument\t5\tt8\tchar *\tb\n"
      "function\t8192\tt8\tchar *\n"
      "function\t12288\nargument\t0\tp8\tvoid *\tt\n");
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(texts.at(4096), 0x21U);
  EXPECT_EQ(texts.at(8192), kReturnsText);
}

TEST(FunctionTypes, IgnoreWhatCannotBe) {
  EXPECT_TRUE(texts_of_functions("").empty());
  EXPECT_TRUE(texts_of_functions("argument\t0\tt8\tchar *\ta\n").empty());
  EXPECT_TRUE(texts_of_functions("function\tx\tt8\tchar *\nargument\t0\tt8\tchar *\ta\n").empty());
  EXPECT_TRUE(
      texts_of_functions("function\t1\nargument\t6\tt8\tchar *\ta\nargument\t-\tt8\tchar *\tb\n").empty());
  EXPECT_TRUE(texts_of_functions("function\t1\nargument\n\targument\t0\n\n").empty());
}

// Answers as long as `most` functions' types, one of which is endless.
TEST(FunctionTypes, AreAskedForInPartsWhereTheyAreTooLong) {
  std::vector<std::uint64_t> offsets(1000);
  std::iota(offsets.begin(), offsets.end(), 1);
  std::size_t asked = 0;
  const auto types = gather_types(offsets, [&](std::span<const std::uint64_t> some) -> Result<std::string> {
    ++asked;
    if (some.size() > 300 || std::ranges::find(some, 1000U) != some.end()) return Error{"too long", EFBIG};
    std::string lines;
    for (const std::uint64_t offset : some) lines += "function\t" + std::to_string(offset) + "\tt8\tchar *\n";
    return lines;
  });
  EXPECT_EQ(types.texts.size(), 999U);
  EXPECT_EQ(types.texts.at(999), kReturnsText);
  EXPECT_NE(types.text.find("begin\nfunction\t251\t"), std::string::npos);
  EXPECT_EQ(types.lack, "of 1 functions they are too long");
  EXPECT_LT(asked, 30U);
}

TEST(FunctionTypes, StayAsFarAsTheyAreKnown) {
  const std::vector<std::uint64_t> offsets(5000, 7);
  std::size_t asked = 0;
  const auto types = gather_types(offsets, [&](std::span<const std::uint64_t>) -> Result<std::string> {
    return ++asked == 2 ? Result<std::string>(Error{"it died"}) : std::string("function\t7\tt8\tchar *\n");
  });
  EXPECT_EQ(asked, 2U);
  EXPECT_EQ(types.lack, "it died");
  EXPECT_EQ(types.text, "function\t7\tt8\tchar *\n");
  EXPECT_EQ(types.texts.at(7), kReturnsText);
}

}  // namespace
}  // namespace tacho::record
