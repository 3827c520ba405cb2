#include "record/program_listing.h"

#include <gtest/gtest.h>

namespace tacho::record {
namespace {

bpf::ListedProgram program() {
  bpf::ListedProgram made;
  made.id = 12;
  made.type = "tracing";
  made.name = "on_call";
  made.tag = "0123456789abcdef";
  made.places = {"tp_btf sys_enter", "tp_btf sys_exit"};
  made.holders = {"tacho-record (77)"};
  made.translated_bytes = 96;
  made.machine_bytes = 70;
  return made;
}

TEST(ProgramListing, ALineForEachAndOneForEachFurtherPlace) {
  auto counted = program();
  EXPECT_EQ(
      programs_in_lines({counted}, std::nullopt, 0, false),
      "    id  type             tag              name                             runs   ns/run  where\n"
      "    12  tracing          0123456789abcdef on_call                             -        -  tp_btf "
      "sys_enter\n"
      "        also at: tp_btf sys_exit\n");
  counted.runs = 4;
  counted.nanoseconds = 1001;
  counted.places.clear();
  const std::string lines = programs_in_lines({counted}, std::nullopt, 0, false);
  EXPECT_TRUE(lines.ends_with(
      "\n    12  tracing          0123456789abcdef on_call                             4      250  -\n"))
      << lines;
}

TEST(ProgramListing, ANameCannotPassForAnotherLineNorSteerATerminal) {
  auto hostile = program();
  hostile.name = "a\n    13  tracing";
  hostile.places = {
      "cgroup /x\x9b"
      "2J",
      "pin \x1b[2J"};
  hostile.holders = {"comm\nforged"};
  const std::string lines = programs_in_lines({hostile}, std::nullopt, 0, true);
  EXPECT_NE(lines.find("a\\x0a    13  tracing"), std::string::npos) << lines;
  EXPECT_NE(lines.find("cgroup /x\\x9b2J\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("pin \\x1b[2J\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("held by: comm\\x0aforged\n"), std::string::npos) << lines;
}

TEST(ProgramListing, CostsAreOfASecondAndOfACpu) {
  const std::map<std::uint32_t, bpf::Cost> costs{{12, {3000, 30'000'000}}};
  const std::string lines = programs_in_lines({program()}, costs, 3, true);
  EXPECT_NE(lines.find("      1000    10000   1.00 %  tp_btf sys_enter\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("        held by: tacho-record (77)\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("loaded by user 0; 96 bytes, 70 of machine code; 0 runs skipped"), std::string::npos)
      << lines;
  const std::string idle = programs_in_lines({program()}, std::map<std::uint32_t, bpf::Cost>{}, 1, false);
  EXPECT_NE(idle.find("         0        -   0.00 %"), std::string::npos) << idle;
}

TEST(ProgramListing, TheWordBpfStandsBeforeThePattern) {
  const auto options = parse_list_options({"bpf", "on_*", "--cost=5", "-v"});
  ASSERT_TRUE(options) << options.error().what;
  EXPECT_TRUE(options->programs && options->fields);
  EXPECT_EQ(options->pattern, "on_*");
  EXPECT_EQ(options->cost_seconds, 5u);
  EXPECT_EQ(parse_list_options({"bpf", "--cost"})->cost_seconds, 1u);
  EXPECT_FALSE(parse_list_options({"sched:*"})->programs);
  EXPECT_FALSE(parse_list_options({"sched:*", "--cost"}));
  EXPECT_FALSE(parse_list_options({"bpf", "a", "b"}));
  EXPECT_FALSE(parse_list_options({"bpf", "--cost=0"}));
}

}  // namespace
}  // namespace tacho::record
