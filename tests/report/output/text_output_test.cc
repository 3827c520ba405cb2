#include "report/output/text_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "report/output/svg_text.h"

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

std::string printed(const char* format, int width, std::uint64_t value) {
  char text[128];
  std::snprintf(text, sizeof text, format, width, value);
  return text;
}

// Digits are made eight at a time, so lengths around 8 and 16 and every length of each are what could be
// wrong.
TEST(TextBuffer, FormatsNumbersOfEveryLengthAndWidthAsPrintfDoes) {
  std::vector<std::uint64_t> values{0, ~std::uint64_t{0}};
  for (std::uint64_t power = 1, last = 0; power > last; last = power, power *= 10)
    values.insert(values.end(),
                  {power - 1, power, power + 1, power * 9, power / 7 * 5, power * 3 + power / 3});
  for (int bit = 0; bit < 64; ++bit)
    values.insert(values.end(),
                  {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1, 0x9abcdef012345678 >> bit});
  for (const std::uint64_t value : values) {
    for (const int width : {0, 1, 3, 5, 7, 8, 9, 10, 15, 16, 17, 20, 24, 40}) {
      const auto columns = static_cast<std::size_t>(width);
      const auto number = static_cast<std::int64_t>(value);
      ASSERT_EQ(written([&](TextBuffer& out) { out.decimal(value, columns); }),
                printed("%*lu", width, value));
      ASSERT_EQ(written([&](TextBuffer& out) { out.signed_decimal(number, columns); }),
                printed("%*ld", width, value));
      ASSERT_EQ(written([&](TextBuffer& out) { out.zero_filled(value, columns); }),
                printed("%0*lu", width, value));
      ASSERT_EQ(written([&](TextBuffer& out) { out.hex(value, columns); }), printed("%*lx", width, value));
    }
  }
}

TEST(TextBuffer, FormatsEveryNumberOfFiveDigitsAsPrintfDoes) {
  for (std::uint64_t value = 0; value < 100'000; ++value) {
    ASSERT_EQ(written([&](TextBuffer& out) { out.decimal(value); }), std::to_string(value));
    ASSERT_EQ(written([&](TextBuffer& out) { out.hex(value, 5); }), printed("%*lx", 5, value));
  }
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

namespace {

TEST(SvgText, WhatXmlWouldTakeForMoreThanTextIsEscaped) {
  EXPECT_EQ(xml_text("</script><![CDATA[\"&'\x01]]>"), "&lt;/script&gt;&lt;![CDATA[&quot;&amp;'\\x01]]&gt;");
  EXPECT_EQ(xml_text("a\xef\xbf\xbf\xef\xbf\xbd"), "a\\xef\\xbf\\xbf\xef\xbf\xbd")
      << "U+FFFF may not stand in XML";
}

TEST(SvgText, LongTextsAreCutBetweenLetters) {
  EXPECT_EQ(fitting_text("abcdef", 6 + 41), "abcdef");
  EXPECT_EQ(fitting_text("abcdef", 6 + 36), "abc…");
  EXPECT_EQ(fitting_text("abcdef", 30), "") << "a letter alone says nothing";
  EXPECT_EQ(fitting_text("iiiiiiiiiiii", 6 + 40), "iiiiiiiiiiii") << "letters have their own widths";
  EXPECT_EQ(fitting_text("iiiiiiiiiiii", 6 + 39), "iiiiiii…");
  EXPECT_EQ(fitting_text("WWWWWW", 6 + 39), "WW…");
  EXPECT_EQ(fitting_text("名名名名", 6 + 40), "名名…") << "letters of other scripts are wide";
}

TEST(SvgText, TemplatesLoseTheirArgumentsAndLongNamesTheirMiddle) {
  for (const auto& [name, shown] :
       {std::pair{"f<a, b<c>>::g<d>(X<3> const&)", "f<...>::g<...>(X<...> const&)"},
        {"std::operator<< <char>", "std::operator<< <char>"},
        {"A::operator->", "A::operator->"},
        {"f<decltype(a->b)>::g", "f<...>::g"},
        {"<lambda(int)>", "<lambda(int)>"},
        {"a<b", "a<b"},
        {"", ""}})
    EXPECT_EQ(without_template_arguments(name), shown);
  EXPECT_EQ(fitting_name("push<int>::back", 6 + 110), "push<int>::back");
  EXPECT_EQ(fitting_name("push<unsigned>::back", 6 + 110), "push<...>::back");
  EXPECT_EQ(fitting_name("push<unsigned>::everything_back", 6 + 130), "push<>::eve…_back");
  EXPECT_EQ(fitting_name("push_everything_back", 6 + 57), "push_e…") << "short ones lose their end";
  EXPECT_EQ(fitting_name("名名名名名名名名名名名名", 6 + 93), "名名名名…名名");
  EXPECT_EQ(fitting_name("abc", 12), "");
}

TEST(SvgText, NumbersHaveCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(12345.6), "12,346");
  EXPECT_EQ(with_commas(0.75), "0.75");
  EXPECT_EQ(with_commas(0.00012345), "0.000123");
}

TEST(SvgText, WhereACaptureComesFromIsSaidAsFarAsItIsKnown) {
  format::Environment environment;
  EXPECT_EQ(with_origin("cycles", environment), "cycles");
  environment.command_line = {"tacho", "record", "--", "./a\x1b"};
  EXPECT_EQ(with_origin("cycles", environment), "cycles: tacho record -- ./a\\x1b");
  environment.hostname = "h\xff";
  EXPECT_EQ(with_origin("", environment), "on h\\xff: tacho record -- ./a\\x1b");
  environment.command_line = {std::string(500, 'x')};
  EXPECT_EQ(with_origin("e", environment), "e on h\\xff: " + std::string(200, 'x') + "...");
}

}  // namespace

namespace {

// Pieces of different lengths, which take different times.
void make_piece(std::size_t piece, unsigned, TextBuffer& text) {
  for (std::size_t i = 0; i <= piece % 7; ++i) {
    text.decimal(piece);
    text.character(' ');
  }
  for (std::size_t i = 0; i < piece % 5; ++i) std::this_thread::yield();
}

std::string expected(std::size_t count) {
  TextBuffer text;
  for (std::size_t piece = 0; piece < count; ++piece) make_piece(piece, 0, text);
  return std::string(text.view());
}

std::string content(int fd) {
  std::string text(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return text;
}

TEST(TextPieces, LeaveInTheirOrder) {
  for (const unsigned workers : {1U, 2U, 5U}) {
    format::WorkerPool pool(workers);
    for (const std::size_t count : {0, 1, 2, 7, 8, 9, 1000}) {
      const format::Fd file(memfd_create("pieces", MFD_CLOEXEC));
      ASSERT_TRUE(file);
      TextOutput out(file.get());
      out.text("head ");
      write_pieces(out, pool, count, make_piece);
      EXPECT_TRUE(out.finish());
      EXPECT_EQ(content(file.get()), "head " + expected(count)) << count;
    }
  }
}

TEST(TextPieces, AreMadeOnceEach) {
  constexpr std::size_t kCount = 500;
  format::WorkerPool pool(3);
  std::vector<std::atomic<int>> made(kCount);
  const format::Fd file(memfd_create("pieces", MFD_CLOEXEC));
  TextOutput out(file.get());
  write_pieces(out, pool, kCount, [&](std::size_t piece, unsigned, TextBuffer&) { ++made[piece]; });
  for (std::size_t piece = 0; piece < kCount; ++piece) EXPECT_EQ(made[piece], 1) << piece;
}

TEST(TextPieces, EndWhenNobodyReads) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const format::Fd to(ends[1]);
  close(ends[0]);
  std::signal(SIGPIPE, SIG_IGN);
  format::WorkerPool pool(2);
  std::atomic<std::size_t> begun = 0;
  TextOutput out(to.get());
  write_pieces(out, pool, 100'000, [&](std::size_t, unsigned, TextBuffer& text) {
    ++begun;
    text.fill('x', 100'000);
  });
  EXPECT_LT(begun.load(), 1000U);
}

}  // namespace

}  // namespace tacho::report
