#include "cli/options.h"

#include <gtest/gtest.h>

#include "cli/exit_status.h"

namespace tacho::cli {
namespace {

using Words = std::vector<std::string>;

// A program with one row of each kind. Every call is noted as "names=value", so a test reads the order as
// well.
struct Program {
  Words calls;
  CommandLine line;

  Program() {
    line.program = "tacho try";
    line.synopsis = "[OPTIONS] [WORD...]";
    line.description = "Tries the option table.";
    add("-a,--all", Takes::Nothing, "");
    add("-g", Takes::Nothing, "");
    add("-F,--fields", Takes::Value, "LIST");
    add("-o,--output", Takes::Value, "FILE");
    add("-z,--compress", Takes::Optional, "LEVEL");
    add("-G,--graph", Takes::LastArg, "FORM");
    line.words = [this](Words words) -> Result<> {
      for (const std::string& word : words) calls.push_back("word:" + word);
      return Done{};
    };
  }
  void add(const std::string& names, Takes takes, const std::string& value) {
    line.options.push_back(
        {names, takes, value, "help of " + names, [this, names](std::string_view text) -> Result<> {
           calls.push_back(names.substr(0, 2) + "=" + std::string(text));
           return Done{};
         }});
  }
  // The calls, or the message of the error alone.
  Words run(const Words& arguments) {
    const auto parsed = parse(line, arguments);
    if (parsed) return calls;
    EXPECT_EQ(status_of(parsed.error()), kWrongUse) << parsed.error().what;
    return {parsed.error().what};
  }
};

TEST(Options, CallsRowsInTheOrderOfTheCommandLineOnceForEachOccurrence) {
  EXPECT_EQ(Program().run({"-F", "a", "-a", "--fields=b", "-o", "x", "-Fc", "--fields", "d"}),
            (Words{"-F=a", "-a=", "-F=b", "-o=x", "-F=c", "-F=d"}));
}

TEST(Options, AValueMayBeginWithASignOrLookLikeAnOption) {
  EXPECT_EQ(Program().run({"-F", "+payload", "-F", "-ip", "-o", "--all", "-F", "--"}),
            (Words{"-F=+payload", "-F=-ip", "-o=--all", "-F=--"}));
  EXPECT_EQ(Program().run({"--fields=-sym", "-F-ip"}), (Words{"-F=-sym", "-F=-ip"}));
}

TEST(Options, AValueIsTakenAsItIs) {
  EXPECT_EQ(Program().run(
                {"-F", "[a,b]", "-F", "a,b", "-F", "{}", "-F", "", "--fields=", "-F", "a=b", "--fields=c=d"}),
            (Words{"-F=[a,b]", "-F=a,b", "-F={}", "-F=", "-F=", "-F=a=b", "-F=c=d"}));
}

TEST(Options, AnOptionalValueIsAttachedAndNeverTheNextWord) {
  EXPECT_EQ(Program().run({"-z"}), (Words{"-z="}));
  EXPECT_EQ(Program().run({"-z3", "-z0"}), (Words{"-z=3", "-z=0"}));
  EXPECT_EQ(Program().run({"-z", "3"}), (Words{"-z=", "word:3"}));
  EXPECT_EQ(Program().run({"--compress", "--compress=5", "-z", "-a"}), (Words{"-z=", "-z=5", "-z=", "-a="}));
}

TEST(Options, ALastArgTakesTheNextWordUnlessItIsAnOption) {
  EXPECT_EQ(Program().run({"-G", "none", "-G", "-a", "-Gcaller", "-G"}),
            (Words{"-G=none", "-G=", "-a=", "-G=caller", "-G="}));
}

TEST(Options, ShortOptionsMayStandInOneWord) {
  EXPECT_EQ(Program().run({"-agF", "ip", "-gaFsym", "-gz3", "-gao", "-x"}),
            (Words{"-a=", "-g=", "-F=ip", "-g=", "-a=", "-F=sym", "-g=", "-z=3", "-g=", "-a=", "-o=-x"}));
}

TEST(Options, WordsMayStandBetweenOptions) {
  EXPECT_EQ(Program().run({"one", "-a", "two", "-", "-o", "x"}),
            (Words{"-a=", "-o=x", "word:one", "word:two", "word:-"}));
}

TEST(Options, ACommandToRunKeepsItsOwnOptions) {
  Program program;
  program.line.stop_at_first_word = true;
  EXPECT_EQ(program.run({"-z", "-a", "-o", "x", "dd", "-a", "--", "--bs=2M"}),
            (Words{"-z=", "-a=", "-o=x", "word:dd", "word:-a", "word:--", "word:--bs=2M"}));
}

TEST(Options, AfterTwoDashesAllAreWords) {
  EXPECT_EQ(Program().run({"-a", "--", "-a", "--nonsense", "--"}),
            (Words{"-a=", "word:-a", "word:--nonsense", "word:--"}));
  Program program;
  program.line.stop_at_first_word = true;
  EXPECT_EQ(program.run({"--", "-x"}), (Words{"word:-x"}));
}

TEST(Options, AMissingValueIsNamedWithWhatItShouldBe) {
  EXPECT_EQ(Program().run({"-a", "-o"}), (Words{"option '-o' needs a value: -o FILE"}));
  EXPECT_EQ(Program().run({"--output"}), (Words{"option '--output' needs a value: --output FILE"}));
}

TEST(Options, AnUnknownOptionIsNamedWithTheNearestRightOne) {
  EXPECT_EQ(Program().run({"--ouptut=x"}), (Words{"unknown option '--ouptut'; did you mean '--output'?"}));
  EXPECT_EQ(Program().run({"--hepl"}), (Words{"unknown option '--hepl'; did you mean '--help'?"}));
  EXPECT_EQ(Program().run({"--nonsense"}), (Words{"unknown option '--nonsense'; see tacho try --help"}));
  EXPECT_EQ(Program().run({"-gQ"}), (Words{"unknown option '-Q'; see tacho try --help"}));
}

TEST(Options, AnUnknownOptionKeepsTheOthersFromActing) {
  Program program;
  program.run({"-a", "-o", "x", "--nonsense"});
  EXPECT_TRUE(program.calls.empty());
}

TEST(Options, AFlagRefusesAValue) {
  EXPECT_EQ(Program().run({"--all=7"}), (Words{"option '-a,--all' takes no value, not '7'"}));
}

TEST(Options, AnErrorOfARowEndsTheParsing) {
  Program program;
  program.line.options[2].set = [](std::string_view) -> Result<> { return use_error("-F: no such field"); };
  EXPECT_EQ(program.run({"-a", "-F", "x", "-g"}), (Words{"-F: no such field"}));
  EXPECT_EQ(program.calls, (Words{"-a="}));
}

TEST(Options, WordsWhereNoneBelongAreAnError) {
  Program program;
  program.line.words = nullptr;
  EXPECT_EQ(program.run({"-a", "surplus"}), (Words{"unexpected word 'surplus'; see tacho try --help"}));
}

TEST(Options, HelpIsPrintedAndNothingElseDone) {
  Program program;
  testing::internal::CaptureStdout();
  const auto parsed = parse(program.line, {"-a", "--help", "--nonsense"});
  const std::string shown = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, Parsed::HelpShown);
  EXPECT_EQ(shown, help_text(program.line));
  EXPECT_TRUE(program.calls.empty());
}

TEST(Options, HelpOfTheCommandToRunIsNotOurs) {
  Program program;
  program.line.stop_at_first_word = true;
  EXPECT_EQ(program.run({"ls", "--help"}), (Words{"word:ls", "word:--help"}));
}

TEST(Options, ARowWithoutHelpIsParsedAndNotListed) {
  CommandLine line;
  line.program = "x";
  line.options.push_back({"--known", Takes::Nothing, "", "",
                          [](std::string_view) -> Result<> { return use_error("--known: not here"); }});
  const auto parsed = parse(line, {"--known"});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().what, "--known: not here");
  EXPECT_EQ(help_text(line).find("--known"), std::string::npos);
}

TEST(Options, HelpShowsEveryRowAsItIsSpelled) {
  Program program;
  program.line.epilog = "Example:\n  tacho try -a";
  program.line.options[3].help = std::string(150, 'x') + " and a second line";
  const std::string text = help_text(program.line);
  EXPECT_TRUE(
      text.starts_with("Usage: tacho try [OPTIONS] [WORD...]\n\nTries the option table.\n\nOptions:\n"))
      << text;
  EXPECT_NE(text.find("\n  -a, --all                   help of -a,--all\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  -F, --fields LIST           help"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  -z, --compress[=LEVEL]      help"), std::string::npos) << text;
  EXPECT_NE(text.find("x\n                              and a second line\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  -h, --help                  show this text\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\nExample:\n  tacho try -a\n")) << text;
}

TEST(Options, HelpShowsCommonOptionsAfterTheCommandsOwn) {
  Program program;
  program.line.options[1].is_common = true;
  program.line.epilog = "Notes.";
  const std::string text = help_text(program.line);
  EXPECT_GT(text.find("\n\nCommon options:\n  -g                          help of -g\n\nNotes.\n"),
            text.find("  -h, --help "))
      << text;
  EXPECT_TRUE(text.ends_with("help of -g\n\nNotes.\n")) << text;
}

TEST(Options, ANumberIsReadWholeAndWithinItsLimits) {
  EXPECT_EQ(*parse_number("-F", "99", 1, 100), 99u);
  EXPECT_EQ(*parse_number("-F", "18446744073709551615", 0, UINT64_MAX), UINT64_MAX);
  const auto message = [](std::string_view text) { return parse_number("-F", text, 1, 100).error().what; };
  EXPECT_EQ(message("abc"), "-F: 'abc' is not a number");
  EXPECT_EQ(message("12x"), "-F: '12x' is not a number");
  EXPECT_EQ(message(""), "-F: '' is not a number");
  EXPECT_EQ(message("-1"), "-F: '-1' is not a number");
  EXPECT_EQ(message("0"), "-F: 0 is not between 1 and 100");
  EXPECT_EQ(message("18446744073709551616"), "-F: 18446744073709551616 is not between 1 and 100");
}

}  // namespace
}  // namespace tacho::cli
