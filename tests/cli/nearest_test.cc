#include "cli/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace tacho::cli {
namespace {

const std::vector<std::string> kCommands{"record", "report", "script", "folded", "hist", "header"};

TEST(Nearest, FindsTheWordWithOneLetterWrongMissingOrTooMany) {
  EXPECT_EQ(nearest("scripr", kCommands), "script");
  EXPECT_EQ(nearest("scrit", kCommands), "script");
  EXPECT_EQ(nearest("foldedd", kCommands), "folded");
}

TEST(Nearest, CountsTwoSwappedLettersAsOne) { EXPECT_EQ(nearest("hsit", kCommands), "hist"); }

TEST(Nearest, TakesTheCloserOfTwo) {
  EXPECT_EQ(nearest("reportd", kCommands), "report");
  EXPECT_EQ(nearest("recort", kCommands), "record");
}

TEST(Nearest, MakesNoGuessForAWordThatIsLikeNone) {
  EXPECT_EQ(nearest("annotate", kCommands), "");
  EXPECT_EQ(nearest("x", kCommands), "");
  EXPECT_EQ(nearest("", kCommands), "");
  EXPECT_EQ(nearest("script", {}), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 's'), kCommands), "");
}

TEST(Nearest, SuggestionIsTheEndOfAMessageOrNothing) {
  EXPECT_EQ(suggestion("scirpt", kCommands), "; did you mean 'script'?");
  EXPECT_EQ(suggestion("xyzzy", kCommands), "");
}

}  // namespace
TEST(Nearest, WhereNothingIsNearTheNamesAreListed) {
  const std::vector<std::string> names{"read", "write"};
  EXPECT_EQ(suggestion_or_all("raed", names), "; did you mean 'read'?");
  EXPECT_EQ(suggestion_or_all("sync", names), "; it has read, write");
  EXPECT_EQ(suggestion_or_all("sync", {}), "");
  std::vector<std::string> many{"read", "read"};  // named once
  for (int i = 0; i < 41; ++i) many.push_back("call" + std::to_string(i));
  EXPECT_TRUE(suggestion_or_all("sync", many).starts_with("; it has read, call0"));
  EXPECT_TRUE(suggestion_or_all("sync", many).ends_with(", call38 and 2 more"));
  EXPECT_EQ(suggestion_or_all("sync", std::vector{std::string(1 << 20, 'x')}),
            "; it has " + std::string(97, 'x') + "...");
}

}  // namespace tacho::cli
