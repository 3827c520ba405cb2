#include "record/host/report_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace tacho::record {

namespace {

Result<std::string> ask_shell(const std::string& script, std::chrono::seconds longest,
                              std::function<bool()> stop = {}) {
  return ask_report_program("/bin/sh",
                            {.arguments = {"-c", script}, .longest = longest, .stop = std::move(stop)});
}

TEST(ReportProgram, GivesWhatItPrinted) {
  const auto said = ask_shell("echo one; echo two", std::chrono::seconds(60));
  ASSERT_TRUE(said) << said.error().what;
  EXPECT_EQ(*said, "one\ntwo\n");
}

TEST(ReportProgram, ItsFailureIsReported) {
  EXPECT_EQ(ask_shell("exit 3", std::chrono::seconds(60)).error().what, "tacho-report ended with status 3");
  EXPECT_EQ(ask_shell("kill -9 $$", std::chrono::seconds(60)).error().what, "tacho-report died of signal 9");
}

// Each would last longer than any test may.
TEST(ReportProgram, IsNotWaitedForWithoutEnd) {
  for (const char* script : {"sleep 100000", "exec >&-; sleep 100000"}) {
    const auto late = ask_shell(script, std::chrono::seconds(1));
    ASSERT_FALSE(late) << script;
    EXPECT_EQ(late.error().what, "tacho-report took more than 1 s") << script;
    int asked = 0;
    const auto stopped = ask_shell(script, std::chrono::seconds(100000), [&asked] { return ++asked > 3; });
    ASSERT_FALSE(stopped) << script;
    EXPECT_EQ(stopped.error().code, EINTR) << script;
  }
}

}  // namespace

namespace {

using Source = bpf::ProbeArgument::Source;
using Shape = bpf::ProbeArgument::Shape;

std::string refused_program(std::string_view lines, std::vector<std::string> names = {"a"}) {
  const auto found = parse_user_arguments(lines, names);
  return found ? "" : found.error().what;
}

TEST(UserArguments, AreWhatTheLinesSay) {
  const std::vector<std::string> names{"size", "at.y", "request->text", "name"};
  const auto found = parse_user_arguments(
      "value rdx 0 4 signed register 0\nvalue rcx 32 4 signed register 0\nvalue rdi 0 8 text address 20 40\n"
      "value rsp 0 8 pointer memory 16\n",
      names);
  ASSERT_TRUE(found) << found.error().what;
  ASSERT_EQ(found->size(), 4U);
  const bpf::ProbeArgument& size = (*found)[0].value;
  EXPECT_TRUE((*found)[0].source == "size" && size.register_offset == 12 * 8 && size.size == 4 &&
              size.is_signed);
  EXPECT_EQ((*found)[1].value.shift, 32);
  const bpf::ProbeArgument& text = (*found)[2].value;
  EXPECT_TRUE(text.source == Source::Address && text.shape == Shape::UserText && text.displacement == 20);
  EXPECT_EQ(text.pointers, std::vector<std::int32_t>{40});
  const bpf::ProbeArgument& name = (*found)[3].value;
  EXPECT_TRUE(name.source == Source::Memory && name.shape == Shape::Hex && name.displacement == 16);
}

TEST(UserArguments, AReasonIsHandedOn) {
  EXPECT_EQ(refused_program("error 'x': there is no such argument\n"), "'x': there is no such argument");
}

// The lines come from a process that read a file of others.
TEST(UserArguments, WhatIsNoAnswerIsRefused) {
  EXPECT_NE(refused_program(""), "");
  EXPECT_NE(refused_program("value rdi 0 8 pointer register 0\n", {"a", "b"}), "") << "one is missing";
  EXPECT_NE(refused_program("value rdi 0 8 pointer register 0\nvalue rdi 0 8 pointer register 0\n"), "");
  for (const char* line :
       {"value xmm0 0 8 pointer register 0", "value edi 0 4 signed register 0",
        "value rdi 64 8 signed register 0", "value rdi 0 3 signed register 0",
        "value rdi 0 8 signed memory 99999999999", "value rdi 0 8 signed",
        "value rdi 0 8 signed memory 1 2 3 4 5 6 7 8 9 10", "value rdi 0 8 signed memory 1 x", "hello"})
    EXPECT_NE(refused_program(line), "") << line;
}

}  // namespace

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
  EXPECT_EQ(types.missing_reason, "of 1 functions they are too long");
  EXPECT_LT(asked, 30U);
}

TEST(FunctionTypes, StayAsFarAsTheyAreKnown) {
  const std::vector<std::uint64_t> offsets(5000, 7);
  std::size_t asked = 0;
  const auto types = gather_types(offsets, [&](std::span<const std::uint64_t>) -> Result<std::string> {
    return ++asked == 2 ? Result<std::string>(Error{"it died"}) : std::string("function\t7\tt8\tchar *\n");
  });
  EXPECT_EQ(asked, 2U);
  EXPECT_EQ(types.missing_reason, "it died");
  EXPECT_EQ(types.text, "function\t7\tt8\tchar *\n");
  EXPECT_EQ(types.texts.at(7), kReturnsText);
}

}  // namespace

}  // namespace tacho::record
