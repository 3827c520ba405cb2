#include "record/list/listing.h"

#include <gtest/gtest.h>

namespace tacho::record {

namespace {

bpf::ListedProgram program() {
  bpf::ListedProgram made;
  made.id = 12;
  made.type = "tracing";
  made.name = "on_call";
  made.tag = "0123456789abcdef";
  made.attachments = {"tp_btf sys_enter", "tp_btf sys_exit"};
  made.holders = {"tacho-record (77)"};
  made.translated_bytes = 96;
  made.machine_bytes = 70;
  return made;
}

TEST(ProgramListing, ALineForEachAndOneForEachFurtherPlace) {
  auto counted = program();
  EXPECT_EQ(
      programs_in_lines({counted}, std::nullopt, 0, false, 0),
      "    id  type             tag              name                             runs   ns/run  where\n"
      "    12  tracing          0123456789abcdef on_call                             -        -  tp_btf "
      "sys_enter\n"
      "        also at: tp_btf sys_exit\n");
  counted.runs = 4;
  counted.nanoseconds = 1001;
  counted.attachments.clear();
  const std::string lines = programs_in_lines({counted}, std::nullopt, 0, false, 0);
  EXPECT_TRUE(lines.ends_with(
      "\n    12  tracing          0123456789abcdef on_call                             4      250  -\n"))
      << lines;
}

TEST(ProgramListing, ANameCannotPassForAnotherLineNorSteerATerminal) {
  auto hostile = program();
  hostile.name = "a\n    13  tracing";
  hostile.attachments = {
      "cgroup /x\x9b"
      "2J",
      "pin \x1b[2J"};
  hostile.holders = {"comm\nforged"};
  const std::string lines = programs_in_lines({hostile}, std::nullopt, 0, true, 0);
  EXPECT_NE(lines.find("a\\x0a    13  tracing"), std::string::npos) << lines;
  EXPECT_NE(lines.find("cgroup /x\\x9b2J\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("pin \\x1b[2J\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("held by: comm\\x0aforged\n"), std::string::npos) << lines;
}

TEST(ProgramListing, CostsAreOfASecondAndOfACpu) {
  const std::map<std::uint32_t, bpf::Cost> costs{{12, {3000, 30'000'000}}};
  const std::string lines = programs_in_lines({program()}, costs, 3, true, 0);
  EXPECT_NE(lines.find("      1000    10000   1.00 %  tp_btf sys_enter\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("        held by: tacho-record (77)\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("loaded by user 0; 96 bytes, 70 of machine code; 0 runs skipped"), std::string::npos)
      << lines;
  const std::string idle = programs_in_lines({program()}, std::map<std::uint32_t, bpf::Cost>{}, 1, false, 0);
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

TEST(JsonText, IsUtf8WhateverTheBytes) {
  EXPECT_EQ(json_text("plain \"quoted\""), "\"plain \\\"quoted\\\"\"");
  EXPECT_EQ(json_text("h\xc3\xa9llo"), "\"h\xc3\xa9llo\"") << "no byte is a letter of its own";
  EXPECT_EQ(json_text("\xff\n\x1b"), R"("\\xff\\x0a\\x1b")");
  EXPECT_EQ(json_text("a\\b"), R"("a\\\\b")") << "differs from an escape of a safe name";
}

TEST(ProgramListing, JsonHasAllThatIsKnown) {
  bpf::ListedProgram one;
  one.id = 7;
  one.type = "kprobe";
  one.name = "on\xff";
  one.attachments = {"kprobe vfs_read", "kprobe vfs_write"};
  one.runs = 3;
  const std::map<std::uint32_t, bpf::Cost> costs{{7, {20, 4000}}};
  EXPECT_EQ(
      programs_in_json({one}, {}, 0),
      R"({"id":7,"type":"kprobe","name":"on\\xff","tag":"","loaded_by":0,"translated_bytes":0,)"
      R"("machine_bytes":0,"runs":3,"run_ns":0,"skipped":0,"places":["kprobe vfs_read","kprobe vfs_write"],)"
      R"("holders":[]})"
      "\n");
  EXPECT_NE(programs_in_json({one}, costs, 2)
                .find(R"("measured_seconds":2,"measured_runs":20,"measured_ns":4000,)"),
            std::string::npos);
}

}  // namespace

}  // namespace tacho::record
