#include "format/base/result.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace tacho {
namespace {

TEST(Result, TheOutermostPlaceStandsFirst) {
  Result<int> failed = Error{"cut short"}.in("total_mem").in("a.data");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "a.data: total_mem: cut short");
}

TEST(Result, AValueIsAResult) {
  Result<std::string> result = std::string("text");
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, "text");
  EXPECT_EQ(result->size(), 4u);
}

TEST(Error, OfTheSystemNamesTheReasonInWords) {
  const Error error = system_error("a.data", ENOENT);
  EXPECT_EQ(error.what, "a.data: No such file or directory");
  EXPECT_EQ(error.code, ENOENT);
  EXPECT_EQ(error.fault, Fault::Input);
}

}  // namespace
}  // namespace tacho
