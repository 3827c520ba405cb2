#include "record/options/output_options.h"

#include <gtest/gtest.h>

#include "record/options/options.h"

namespace tacho::record {
namespace {

TEST(OutputOptions, AMinusOrAnUnnamedPipeIsThePipe) {
  struct Row {
    const char* name;  // nothing: no -o
    StandardOutput standard_output;
    bool to_pipe;
  };
  for (const Row& row :
       {Row{"-", StandardOutput::Pipe, true}, Row{"-", StandardOutput::Other, true},
        Row{nullptr, StandardOutput::Pipe, true}, Row{"x.data", StandardOutput::Pipe, false},
        Row{nullptr, StandardOutput::Other, false}, Row{nullptr, StandardOutput::Terminal, false}}) {
    std::string path = row.name != nullptr ? row.name : "perf.data";
    OutputOptions files;
    files.is_named = row.name != nullptr;
    ASSERT_TRUE(choose_output(path, files, row.standard_output));
    EXPECT_EQ(files.to_pipe, row.to_pipe) << path;
    EXPECT_EQ(path == "-", row.to_pipe);
  }
  std::string path = "-";
  OutputOptions files;
  files.is_named = true;
  EXPECT_FALSE(choose_output(path, files, StandardOutput::Terminal)) << "nobody reads captures there";
}

TEST(OutputOptions, WhatMakesNoSenseTogetherIsRefused) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"-D", "-1"}, {"--duration", "1", "ls"}, {"-o", ""}, {"--control", "pipe:1"}}) {
    EXPECT_FALSE(parse_options(words)) << words.front();
  }
  EXPECT_TRUE(parse_options({"-D", "-1", "--control", "fd:0", "ls"}));
  EXPECT_EQ(parse_options({"--duration", "2"})->options.time.duration, std::chrono::seconds(2));
}

TEST(OutputOptions, SizesHaveUnits) {
  EXPECT_EQ(*parse_size("--max-size", "4096"), 4096u);
  EXPECT_EQ(*parse_size("--max-size", "1.5K"), 1536u);
  EXPECT_EQ(*parse_size("--max-size", "10M"), 10u << 20);
  EXPECT_EQ(*parse_size("--max-size", "1KB"), 1024u);
  for (const char* text : {"", "M", "0", "-1", "1X", "1Kb", "inf", "nan", "99999999999999999999", "0.1"})
    EXPECT_FALSE(parse_size("--max-size", text)) << text;
}

TEST(OutputOptions, OneFileIsRedacted) {
  const auto parsed = parse_options({"--redact=comm,paths"});
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->options.files.redacts);
  EXPECT_EQ(parsed->options.files.redacted_classes, "comm,paths");
  EXPECT_FALSE(parse_options({"--redact=comm,nothing"}));
  const auto is_refused = [](const std::vector<std::string>& words) {
    auto with = parse_options(words);
    if (!with) return true;
    return !choose_output(with->options.output, with->options.files, StandardOutput::Pipe);
  };
  EXPECT_FALSE(is_refused({"--redact", "-o", "x.data"}));
  EXPECT_TRUE(is_refused({"--redact", "-o", "-"}));
  EXPECT_TRUE(is_refused({"--redact", "--switch-output", "-o", "x.data"}));
  EXPECT_TRUE(is_refused({"--redact", "--overwrite", "-o", "x.data"}));
}

TEST(OutputOptions, FilesAreSwitchedBySignalSizeOrTime) {
  const auto rule = [](const std::string& word) {
    const auto parsed = parse_options({word});
    EXPECT_TRUE(parsed) << word;
    return parsed ? parsed->options.files.switch_rule : SwitchRule{};
  };
  EXPECT_TRUE(rule("--switch-output").is_on);
  EXPECT_TRUE(rule("--switch-output=signal").is_on);
  EXPECT_EQ(rule("--switch-output=10M").bytes, 10u << 20);
  EXPECT_EQ(rule("--switch-output=15m").period, std::chrono::minutes(15)) << "m is minutes, M megabytes";
  EXPECT_EQ(rule("--switch-output=2h").period, std::chrono::hours(2));
  EXPECT_FALSE(rule("-a").is_on);
  for (const char* word : {"--switch-output=5", "--switch-output=K", "--switch-output=10B",
                           "--switch-output=1x", "--switch-max-files=0"})
    EXPECT_FALSE(parse_options({word})) << word;
}

TEST(OutputOptions, OptionsOfSeveralFilesNeedThem) {
  const auto refused = [](const std::vector<std::string>& words) {
    auto parsed = parse_options(words);
    EXPECT_TRUE(parsed);
    return parsed && !choose_output(parsed->options.output, parsed->options.files, StandardOutput::Other);
  };
  EXPECT_TRUE(refused({"--switch-max-files", "3"}));
  EXPECT_TRUE(refused({"--switch-output=10M", "--max-size", "10M"}));
  EXPECT_TRUE(refused({"--switch-output=10M", "-o", "-"}));
  EXPECT_TRUE(refused({"--min-free", "1G", "-o", "-"}));
  EXPECT_FALSE(refused({"--switch-output=10M", "--switch-max-files", "3", "--min-free", "1G"}));
}

}  // namespace
}  // namespace tacho::record
