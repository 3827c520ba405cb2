#include "format/records/cpu_map.h"

#include <gtest/gtest.h>

#include "format/base/byte_writer.h"

namespace tacho::format {
namespace {

using Cpus = std::vector<std::int64_t>;

CpuMap parsed(const ByteWriter& body) {
  Cursor in(body.view());
  return parse_cpu_map(in);
}

TEST(CpuMap, EachFormHasItsCpus) {
  ByteWriter list, narrow, wide, range;
  list.u16(0).u16(2).u16(5).u16(0xffff);
  narrow.u16(1).u16(2).u16(4).u32(0x3).u32(0x80000000);
  wide.u16(1).u16(1).u16(8).u32(0xdddddddd).u64(0x8000000000000001);
  range.u16(2).u8(1).u8(0).u16(1).u16(3);
  EXPECT_EQ(cpus_in(parsed(list)), (Cpus{5, -1}));
  EXPECT_EQ(cpus_in(parsed(narrow)), (Cpus{0, 1, 63}));
  EXPECT_EQ(cpus_in(parsed(wide)), (Cpus{0, 63})) << "words of 8 bytes come after 4 bytes of padding";
  EXPECT_EQ(cpus_in(parsed(range)), (Cpus{-1, 1, 2, 3}));
}

TEST(CpuMap, ItsSizeIsWithoutThePaddingOfTheRecord) {
  ByteWriter list, narrow, wide, range;
  list.u16(0).u16(2).u16(5).u16(6).u64(0);
  narrow.u16(1).u16(1).u16(4).u32(1).u16(0);
  wide.u16(1).u16(1).u16(8).u32(0).u64(1).u32(0).u16(0);
  range.u16(2).u8(1).u8(0).u16(1).u16(3).u64(0);
  EXPECT_EQ(parsed(list).size, 8u);
  EXPECT_EQ(parsed(narrow).size, 10u);
  EXPECT_EQ(parsed(wide).size, 18u);
  EXPECT_EQ(parsed(range).size, 8u);
}

TEST(CpuMap, ACutOneHasWhatIsThere) {
  ByteWriter list, wide;
  list.u16(0).u16(3).u16(5);
  wide.u16(1).u16(2).u16(8).u32(0).u64(2).u32(0);
  EXPECT_EQ(cpus_in(parsed(list)), (Cpus{5}));
  EXPECT_EQ(parsed(list).size, 10u) << "more than the record has";
  EXPECT_EQ(cpus_in(parsed(wide)), (Cpus{1}));
}

}  // namespace
}  // namespace tacho::format
