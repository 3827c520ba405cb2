#include "record/output_options.h"

#include <gtest/gtest.h>

#include "record/options.h"

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

}  // namespace
}  // namespace tacho::record
