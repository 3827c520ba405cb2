#include "record/host/function_types.h"

#include <gtest/gtest.h>

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
  EXPECT_TRUE(texts_of_functions("function\t1\nargument\t6\tt8\tchar *\ta\nargument\t-\tt8\tchar *\tb\n").empty());
  EXPECT_TRUE(texts_of_functions("function\t1\nargument\n\targument\t0\n\n").empty());
}

}  // namespace
}  // namespace tacho::record
