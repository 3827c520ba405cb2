#include "format/records/event_attr.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tacho::format {
namespace {

// Every field with a value of its own, so that a swapped or misplaced one shows.
EventAttr full_attr() {
  EventAttr attr;
  attr.type = 1;
  attr.size = 144;
  attr.config = 3;
  attr.sample_period = 4;
  attr.sample_type = 5;
  attr.read_format = 6;
  attr.flags = abi::kInherit | abi::kMmap | abi::kSampleIdAll | abi::kBuildId;
  attr.wakeup = 7;
  attr.bp_type = 8;
  attr.config1 = 9;
  attr.config2 = 10;
  attr.branch_sample_type = 11;
  attr.sample_regs_user = 12;
  attr.sample_stack_user = 13;
  attr.clockid = -14;
  attr.sample_regs_intr = 15;
  attr.aux_watermark = 16;
  attr.sample_max_stack = 17;
  attr.aux_sample_size = 18;
  attr.aux_action = 19;
  attr.sig_data = 20;
  attr.config3 = 21;
  attr.config4 = 22;
  return attr;
}

TEST(EventAttr, ComesBackAsItWasWritten) {
  const EventAttr attr = full_attr();
  ByteWriter out;
  write_event_attr(out, attr, 144);
  ASSERT_EQ(out.size(), 144u);
  const auto back = parse_event_attr(Cursor(out.view()));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, attr);
}

TEST(EventAttr, FieldsAfterAnOldSizeAreZero) {
  ByteWriter out;
  write_event_attr(out, full_attr(), 64);
  const auto back = parse_event_attr(Cursor(out.view()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->config1, 9u);
  EXPECT_EQ(back->config2, 0u);
  EXPECT_EQ(back->sample_regs_user, 0u);
}

TEST(EventAttr, SizeZeroMeansTheFirstVersion) {
  ByteWriter out;
  write_event_attr(out, full_attr(), 64);
  out.patch<std::uint32_t>(4, 0);
  const auto back = parse_event_attr(Cursor(out.view()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->config1, 9u);
}

TEST(EventAttr, BytesAfterWhatWeKnowAreKept) {
  EventAttr attr = full_attr();
  attr.tail.assign(16, std::byte{0xab});
  attr.size = 160;
  ByteWriter out;
  ASSERT_EQ(size_to_write(attr), 160u);
  write_event_attr(out, attr, 160);
  const auto back = parse_event_attr(Cursor(out.view()));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, attr);
}

TEST(EventAttr, IsWrittenSmallEnoughForOldPerfUnlessALaterFieldIsUsed) {
  EventAttr attr = full_attr();
  EXPECT_EQ(size_to_write(attr), 144u);
  attr.config4 = 0;
  EXPECT_EQ(size_to_write(attr), 136u);
  attr.config3 = 0;
  EXPECT_EQ(size_to_write(attr), kCompatibleAttrSize);
}

TEST(EventAttr, OtherByteOrderMirrorsTheFlagBits) {
  ByteWriter out;
  write_event_attr(out, full_attr(), 128);
  // The same attr as a big-endian machine lays it out: fields swapped, bit n of the flags counted from the
  // other end of its byte.
  std::vector<std::byte> bytes(out.view().begin(), out.view().end());
  const auto swap = [&](std::size_t at, std::size_t size) {
    std::reverse(bytes.begin() + at, bytes.begin() + at + size);
  };
  for (const std::size_t at : {0, 4, 48, 52, 88, 92, 104, 112, 116}) swap(at, 4);
  for (const std::size_t at : {8, 16, 24, 32, 56, 64, 72, 80, 96, 120}) swap(at, 8);
  swap(108, 2);
  for (std::size_t i = 40; i < 48; ++i) {
    unsigned mirrored = 0;
    for (unsigned bit = 0; bit < 8; ++bit)
      if ((static_cast<unsigned>(bytes[i]) >> bit & 1) != 0) mirrored |= 1U << (7 - bit);
    bytes[i] = static_cast<std::byte>(mirrored);
  }
  const auto back = parse_event_attr(Cursor(bytes, std::endian::big));
  ASSERT_TRUE(back);
  EventAttr expected = full_attr();
  expected.size = 128;
  expected.config3 = expected.config4 = 0;
  EXPECT_EQ(*back, expected);
}

TEST(EventAttr, ASizeBeyondWhatIsThereIsRefused) {
  ByteWriter out;
  write_event_attr(out, full_attr(), 128);
  out.patch<std::uint32_t>(4, 4096);
  const auto back = parse_event_attr(Cursor(out.view()));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().what, "event attribute says it has 4096 bytes, between 64 and 128 were expected");
}

}  // namespace
}  // namespace tacho::format
