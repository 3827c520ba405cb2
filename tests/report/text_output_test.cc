#include "report/text_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <limits>

namespace tacho::report {
namespace {

template <class Write>
std::string written(Write&& write) {
  TextBuffer out;
  write(out);
  return std::string(out.view());
}

TEST(TextBuffer, FormatsNumbersAsPrintfDoes) {
  EXPECT_EQ(written([](TextBuffer& out) { out.decimal(42, 5); }), "   42");
  EXPECT_EQ(written([](TextBuffer& out) { out.decimal(123456, 3); }), "123456");
  EXPECT_EQ(written([](TextBuffer& out) { out.decimal(std::numeric_limits<std::uint64_t>::max()); }),
            "18446744073709551615");
  EXPECT_EQ(written([](TextBuffer& out) { out.signed_decimal(-1, 5); }), "   -1");
  EXPECT_EQ(written([](TextBuffer& out) { out.signed_decimal(std::numeric_limits<std::int64_t>::min()); }),
            "-9223372036854775808");
  EXPECT_EQ(written([](TextBuffer& out) { out.zero_filled(7, 6); }), "000007");
  EXPECT_EQ(written([](TextBuffer& out) { out.hex(0xffffffff81000000, 16); }), "ffffffff81000000");
  EXPECT_EQ(written([](TextBuffer& out) { out.hex(0, 4); }), "   0");
  EXPECT_EQ(written([](TextBuffer& out) { out.hex_byte(0x0f); }), "0f");
}

TEST(TextBuffer, PadsOnEitherSideAndNeverCuts) {
  EXPECT_EQ(written([](TextBuffer& out) { out.padded("ab", 4); }), "  ab");
  EXPECT_EQ(written([](TextBuffer& out) { out.left("ab", 4); }), "ab  ");
  EXPECT_EQ(written([](TextBuffer& out) { out.padded("abcdef", 4); }), "abcdef");
}

TEST(TextOutput, WritesEverythingInOrderWhateverTheSize) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  std::string read_back;
  {
    TextOutput out(ends[1]);
    for (int i = 0; i < 1000; ++i) {
      out.decimal(static_cast<std::uint64_t>(i));
      out.character('\n');
      out.line_end();
    }
    EXPECT_TRUE(out.finish());
  }
  ::close(ends[1]);
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], piece, sizeof piece)) > 0;)
    read_back.append(piece, static_cast<std::size_t>(got));
  ::close(ends[0]);
  EXPECT_TRUE(read_back.starts_with("0\n1\n2\n"));
  EXPECT_TRUE(read_back.ends_with("998\n999\n"));
}

TEST(TextOutput, AReaderWhoWentAwayIsNoErrorAndStopsTheWork) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  TextOutput out(ends[1]);
  out.text("lost");
  out.flush();
  EXPECT_TRUE(out.is_done());
  EXPECT_TRUE(out.finish());
  ::close(ends[1]);
}

TEST(TextOutput, AFullDiskIsAnErrorOfTheOutput) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full here";
  TextOutput out(full);
  out.text("text");
  const auto finished = out.finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().fault, Fault::Output);
  EXPECT_TRUE(out.is_done());
  ::close(full);
}

}  // namespace
}  // namespace tacho::report
