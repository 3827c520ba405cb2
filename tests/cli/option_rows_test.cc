#include "cli/option_rows.h"

#include <gtest/gtest.h>

#include "cli/absent_options.h"
#include "cli/exit_status.h"

namespace tacho::cli {
namespace {

constexpr AbsentOption kAbsent[] = {
    {"-D,--dump-raw-trace", Takes::Nothing, "tacho dump prints every record"},
    {"-C,--cpu", Takes::Value, "all processors are shown"},
    {"-o,--old", Takes::Nothing, "there is nothing old"},
};

struct TypedProgram {
  bool is_loud = false;
  std::string file;
  std::uint64_t step = 0;
  CommandLine line;

  TypedProgram() {
    line.program = "tacho try";
    line.options = {flag("-l,--loud", "say more", is_loud), text("-o,--output", "FILE", "where to", file),
                    number("-s,--step", "N", "how wide", 1, 10, step),
                    accepted("--stdio", Takes::Nothing, "what is done anyway")};
    add_absent_options(line.options, kAbsent);
  }
  std::string message(const std::vector<std::string>& arguments) {
    const auto parsed = parse(line, arguments);
    if (parsed) return "no error";
    EXPECT_EQ(status_of(parsed.error()), kWrongUse);
    return parsed.error().what;
  }
};

TEST(OptionRows, EachSetsItsTarget) {
  TypedProgram program;
  ASSERT_TRUE(parse(program.line, {"-l", "-o", "a.txt", "--step=7", "--stdio"}));
  EXPECT_TRUE(program.is_loud);
  EXPECT_EQ(program.file, "a.txt");
  EXPECT_EQ(program.step, 7u);
}

TEST(OptionRows, ANumberOutOfItsRangeNamesTheOption) {
  EXPECT_EQ(TypedProgram().message({"-s", "11"}), "--step: 11 is not between 1 and 10");
  EXPECT_EQ(TypedProgram().message({"--step", "wide"}), "--step: 'wide' is not a number");
}

TEST(AbsentOptions, SayWhatToDoInsteadAndNeverGuess) {
  EXPECT_EQ(TypedProgram().message({"-D"}), "--dump-raw-trace: tacho dump prints every record");
  EXPECT_EQ(TypedProgram().message({"--dump-raw-trace"}), "--dump-raw-trace: tacho dump prints every record");
  EXPECT_EQ(TypedProgram().message({"-C", "3"}), "--cpu: all processors are shown");
  EXPECT_EQ(TypedProgram().message({"--cpu=3"}), "--cpu: all processors are shown");
}

TEST(AbsentOptions, ASpellingThatIsAnOptionHereKeepsItsMeaning) {
  TypedProgram program;
  ASSERT_TRUE(parse(program.line, {"-o", "a.txt"}));
  EXPECT_EQ(program.file, "a.txt");
  EXPECT_EQ(program.message({"--old"}), "--old: there is nothing old");
}

TEST(AbsentOptions, AreNotListedByHelp) {
  const std::string help = help_text(TypedProgram().line);
  EXPECT_EQ(help.find("--dump-raw-trace"), std::string::npos);
  EXPECT_NE(help.find("--loud"), std::string::npos);
}

}  // namespace
}  // namespace tacho::cli
