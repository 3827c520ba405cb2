#include "cli/message_text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace tacho::cli {
namespace {

TEST(ErrorAt, PointsAtAColumn) {
  EXPECT_EQ(error_at("--where", "a > 5x", 5, "no unit").what,
            "--where: column 6: no unit\n    a > 5x\n         ^");
  EXPECT_EQ(error_at("--where", "", 0, "empty").what, "--where: column 1: empty\n    \n    ^");
  EXPECT_EQ(error_at("--where", "ab", 9, "behind").what, "--where: column 3: behind\n    ab\n      ^");
}

TEST(ErrorAt, ShowsTheRestWhereACaretCannotPoint) {
  EXPECT_EQ(error_at("--where", "\xc3\xa9 > x", 5, "no name").what, "--where: column 6, 'x': no name");
  const std::string wide(200, 'a');
  EXPECT_EQ(error_at("--where", wide + "!", 200, "no name").what, "--where: column 201, '!': no name");
}

TEST(PrintableMessage, KeepsIndentedLinesOnly) {
  EXPECT_EQ(printable_message("a\033[2J: x\n    a\n    ^"), "a\\x1b[2J: x\n    a\n    ^");
  EXPECT_EQ(printable_message("a\ntacho: all is well"), "a\\x0atacho: all is well");
}

TEST(ShellWord, LeavesUsualNamesAlone) {
  for (const char* name : {"perf.data", "/tmp/a-b_c/x.data.2026", "a+b=c:d@e,f%g"})
    EXPECT_EQ(shell_word(name), name);
}

TEST(ShellWord, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("-rf"), "./-rf");
  EXPECT_EQ(shell_word("-"), "-") << "standard input";
  EXPECT_EQ(shell_word("a\033[2J"), "$'a\\x1b[2J'");
}

// What bash makes of the word.
std::string echoed(const std::string& word) {
  const std::string command = "bash -c \"$TACHO_TEST_SCRIPT\"";
  ::setenv("TACHO_TEST_SCRIPT", ("printf %s " + shell_word(word)).c_str(), 1);
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::array<char, 256> text{};
  const std::size_t size = std::fread(text.data(), 1, text.size(), pipe);
  EXPECT_EQ(::pclose(pipe), 0);
  return {text.data(), size};
}

TEST(ShellWord, AShellReadsTheSameWord) {
  for (const std::string word :
       {"a b", "it's", "$HOME `id` \"x\"", "new\nline", "back\\slash\001 and ' quote", "\xff\xfe", "*"})
    EXPECT_EQ(echoed(word), word);
}

TEST(MessageText, CountsAgreeWithTheirNouns) {
  EXPECT_EQ(counted(1, "event"), "1 event");
  EXPECT_EQ(counted(0, "event"), "0 events");
  EXPECT_EQ(counted(2, "address"), "2 addresses");
  EXPECT_EQ(counted(2, "entry"), "2 entries");
}

}  // namespace
}  // namespace tacho::cli
