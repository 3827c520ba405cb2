#include <gtest/gtest.h>

#include "format/base/byte_writer.h"
#include "report/decode/coded_values.h"
#include "report/decode/instructions.h"
#include "report/perf_text/sample_text.h"

namespace tacho::report {
namespace {

TEST(PageSize, IsDividedOnlyWhileMoreThanOneUnitIsLeft) {
  EXPECT_EQ(page_size_text(0), "N/A");
  EXPECT_EQ(page_size_text(1), "1B");
  EXPECT_EQ(page_size_text(1536), "1536B");
  EXPECT_EQ(page_size_text(4096), "4K");
  EXPECT_EQ(page_size_text(2 << 20), "2M");
  EXPECT_EQ(page_size_text(1 << 30), "1024M");
  EXPECT_EQ(page_size_text(~std::uint64_t{0}), "17179869183G");
}

TEST(RegisterNames, AreThoseOfTheRecordingMachine) {
  EXPECT_EQ(register_name("x86_64", 8), "IP");
  EXPECT_EQ(register_name("x86_64", 24), "unknown");
  EXPECT_EQ(register_name("x86_64", 33), "XMM0") << "both halves have one name";
  EXPECT_EQ(register_name("x86_64", 63), "XMM15");
  EXPECT_EQ(register_name("aarch64", 30), "lr");
  EXPECT_EQ(register_name("armv7l", 13), "sp");
  EXPECT_EQ(register_name("ppc64le", 32), "nip");
  EXPECT_EQ(register_name("s390x", 33), "PC");
  EXPECT_EQ(register_name("mips", 28), "$28");
  EXPECT_EQ(register_name("", 0), "unknown");
}

TEST(DataSource, NamesEachPartAndIsCutAtPerfsLength) {
  EXPECT_EQ(data_source_text(0x68100142),
            "        68100142 |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A");
  EXPECT_EQ(data_source_text(0), "               0 |OP No|LVL N/A|SNP N/A|TLB N/A|LCK No|BLK  N/A");
  EXPECT_EQ(data_source_text(~std::uint64_t{0}).size(), 99u) << "hops without a name read no other memory";
}

TEST(Synth, TooFewBytesAreNoText) {
  format::ByteWriter raw;
  raw.u32(1).u64(0x6f6c6c6568);
  TextBuffer out;
  write_synth(out, 0, raw.view(), std::endian::native);
  EXPECT_EQ(out.view(), " IP: 1 payload: 0x6f6c6c6568 hello ");
  out.clear();
  write_synth(out, 0, raw.view().first(11), std::endian::native);
  write_synth(out, 99, raw.view(), std::endian::native);
  EXPECT_EQ(out.view(), "");
}

TEST(Synth, TraceEventsStopWhereTheirBytesEnd) {
  format::ByteWriter raw;
  raw.u32(1U | 0xffffU << 16).u64(0).u64(5).u64(9);
  TextBuffer out;
  write_synth(out, 7, raw.view(), std::endian::native);
  EXPECT_EQ(out.view(), " cfe: INTR IP: 0 vector: 0 PFA: 0x5");
}

TEST(Times, CountFromTheFirstLineOrTheLineBefore) {
  TextBuffer out;
  TimeText since_first(TimeDigits::Microseconds, TimeBase::FirstLine, {});
  TimeText since_before(TimeDigits::Nanoseconds, TimeBase::LineBefore, {});
  for (const std::uint64_t time : {5'000'000'000, 5'000'001'999, 6'500'000'000}) {
    since_first.write(out, time);
    since_before.write(out, time);
  }
  EXPECT_EQ(out.view(),
            "    0.000000:     0.000000000:     0.000001:     0.000001999:     1.500000:     1.499998001: ");
}

TEST(Times, OfTheDayNeedTheInstantThatTheClockStoodFor) {
  TextBuffer out;
  TimeText(TimeDigits::Microseconds, TimeBase::Clock, {}).write_of_day(out, 1);
  EXPECT_EQ(out.view(), "");
  const format::ClockData clock{1, 1'700'000'000'000'000'000, 5'000'000'000};
  TimeText(TimeDigits::Nanoseconds, TimeBase::Clock, clock).write_of_day(out, 4'999'999'999);
  EXPECT_EQ(out.view().substr(out.size() - 11), ".999999999 ") << "before that instant as well";
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

TEST(Instructions, KnowTheirSizeAndWhetherTheyMayJump) {
  const Instructions wide("x86_64", WordSize::Bits64), narrow("x86_64", WordSize::Bits32);
  EXPECT_EQ(wide.first_of(bytes({0x48, 0x89, 0xe5, 0x90})).size, 3u);
  EXPECT_EQ(narrow.first_of(bytes({0x48, 0x89, 0xe5, 0x90})).size, 1u) << "48 is an instruction there";
  EXPECT_TRUE(wide.first_of(bytes({0xe8, 0, 0, 0, 0})).is_branch);
  EXPECT_TRUE(wide.first_of(bytes({0xc3})).is_branch);
  EXPECT_FALSE(wide.first_of(bytes({0x90})).is_branch);
  EXPECT_EQ(wide.first_of(bytes({0x48})).size, 0u) << "cut short";
  EXPECT_EQ(wide.first_of({}).size, 0u);
  EXPECT_EQ(Instructions("aarch64", WordSize::Bits64).first_of(bytes({0xc0, 0x03, 0x5f, 0xd6})).size, 4u);
  EXPECT_EQ(Instructions("riscv64", WordSize::Bits64).first_of(bytes({0x90})).size, 0u);
}

}  // namespace
}  // namespace tacho::report
