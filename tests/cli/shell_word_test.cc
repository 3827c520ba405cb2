#include "cli/shell_word.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace tacho::cli {
namespace {

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

}  // namespace
}  // namespace tacho::cli
