#include "report/output/packed_data.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tacho::report {
namespace {

TEST(PackedData, NumbersStandByteByByteAndSignsAreZigzag) {
  PackedColumn numbers("n", ColumnForm::Numbers), signs("s", ColumnForm::Signed),
      steps("d", ColumnForm::Differences);
  numbers.add_number(127);
  numbers.add_number(300);
  EXPECT_EQ(numbers.packed(), std::string("\x7f\x2c\0\1", 4));
  EXPECT_EQ(PackedColumn("none", ColumnForm::Wide).packed(), "");
  for (const std::int64_t number : {0, -1, 1}) signs.add_signed(number);
  EXPECT_EQ(signs.packed(), std::string("\0\1\2", 3));
  for (const std::int64_t number : {5, 4, 6}) steps.add_signed(number);
  EXPECT_EQ(steps.packed(), std::string("\x0a\x01\x04"));
  PackedColumn far("f", ColumnForm::Signed);
  far.add_signed(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(far.packed(), std::string(8, '\xff'));
  far.add_signed(0);
  EXPECT_EQ(far.packed_size(), far.packed().size());
}

TEST(PackedData, Base64HasItsPadding) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace tacho::report
