#include "cli/completion.h"

#include <gtest/gtest.h>

#include "cli/option_rows.h"

namespace tacho::cli {
namespace {

// A command with a row of each kind; `asked`: the place that its own completion got.
struct Completed {
  std::string out;
  ValuePlace asked;
};

Completed complete_try(std::vector<std::string> words, bool runs_a_command = false) {
  Completed result;
  CommandLine line;
  line.program = "tacho try";
  const auto ignore = [](std::string_view) -> Result<> { return Done{}; };
  line.options = {{"-a,--all", Takes::Nothing, "", "all of them; more words", ignore},
                  {"-F,--fields", Takes::Value, "LIST", "the fields", ignore},
                  {"-m,--mode", Takes::Value, "MODE", "the mode", ignore},
                  {"-z,--compress", Takes::Optional, "LEVEL", "compressed", ignore},
                  {"-G,--graph", Takes::LastArg, "FORM", "graphs", ignore},
                  {"--accepted", Takes::Nothing, "", "", ignore}};
  line.stop_at_first_word = runs_a_command;
  line.words = [](const std::vector<std::string>&) -> Result<> { return Done{}; };
  const std::vector<Choices> choices{{"--mode", {"fast", "slow", "flat"}}, {"--graph", {"flat", "tree"}}};
  const auto complete_value = [&](const ValuePlace& place) {
    result.asked = place;
    return print_choices(place, choices) || place.is_of("--fields");
  };
  words.insert(words.begin(), std::string(kCompleteOption));
  testing::internal::CaptureStdout();
  const auto parsed = parse_or_complete(line, words, complete_value);
  result.out = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(parsed && *parsed == Parsed::HelpShown);
  return result;
}

TEST(Completion, OffersTheOptionsThatHelpLists) {
  EXPECT_EQ(complete_try({"--a"}).out, "--all\tall of them\n");
  EXPECT_EQ(complete_try({"-a", "--f"}).out, "--fields\tthe fields\n");
  EXPECT_EQ(complete_try({"--nothing"}).out, "");
}

TEST(Completion, OffersTheChoicesOfAnOptionInEverySpellingOfItsValue) {
  EXPECT_EQ(complete_try({"--mode", "f"}).out, "fast\nflat\n");
  EXPECT_EQ(complete_try({"--mode=s"}).out, "--mode=slow\n");
  EXPECT_EQ(complete_try({"-m", ""}).out, "fast\nslow\nflat\n");
  EXPECT_EQ(complete_try({"-ams"}).out, "-amslow\n");
  EXPECT_EQ(complete_try({"-m", "fast,s"}).out, "fast,slow\n");
}

TEST(Completion, AValueThatMayBeLeftOutIsOfferedBesideWords) {
  EXPECT_TRUE(complete_try({"-G", "t"}).out.starts_with("tree\n"));
  EXPECT_EQ(complete_try({"-G", "--all"}).out, "--all\tall of them\n");
}

TEST(Completion, AsksTheCommandWithAllThatStandsBefore) {
  const auto [out, asked] = complete_try({"-a", "-m", "fast", "one", "--fields", "a,b"});
  EXPECT_EQ(asked.option, "-F,--fields");
  EXPECT_EQ(asked.text, "a,b");
  EXPECT_EQ(asked.words, std::vector<std::string>{"one"});
  EXPECT_EQ(asked.given, (std::vector<std::pair<std::string, std::string>>{{"-m,--mode", "fast"}}));
  EXPECT_EQ(complete_try({"-Fx"}).asked.prefix, "-F");
}

TEST(Completion, AfterTheFirstWordOfACommandToRunThereAreNoOptions) {
  EXPECT_EQ(complete_try({"dd", "--a"}, true).out, "");
  EXPECT_EQ(complete_try({"--", "--a"}, true).out, "");
  EXPECT_EQ(complete_try({"dd", "--a"}).out, "--all\tall of them\n");
}

TEST(Completion, TheLastElementOfAListKeepsWhatStandsBefore) {
  const ValuePlace place = last_element({.prefix = "--sort=", .text = "comm,sy"});
  EXPECT_EQ(candidate_lines(place, std::vector<Candidate>{{"sym", "functions"}, {"pid"}}),
            "--sort=comm,sym\tfunctions\n");
}

TEST(Completion, LeavesOutNamesThatATerminalCannotShow) {
  EXPECT_EQ(candidate_lines({}, std::vector<Candidate>{{"a\033[2J"}, {"b\nc"}, {"d", "e\nf"}}),
            "d\te\\x0af\n");
}

}  // namespace
}  // namespace tacho::cli
