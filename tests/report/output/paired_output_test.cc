#include "report/output/paired_output.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace tacho::report {
namespace {

constexpr mode_t kRights = 0666;

class PairedOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tacho-pair-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Result<OutputFile> create(const std::string& name) const {
    return OutputFile::create(folder_ / name, kRights);
  }
  std::string content(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path folder_;
};

TEST_F(PairedOutputTest, EachFileGetsItsPart) {
  for (const std::string_view first : {"", "a text", "a text that is longer than what follows it"}) {
    TextOutput out(paired_output(std::move(*create("text")), std::move(*create("second"))));
    begin_pair(out, first);
    out.text("the second");
    ASSERT_TRUE(out.finish());
    EXPECT_EQ(content("text"), first);
    EXPECT_EQ(content("second"), "the second");
  }
}

TEST_F(PairedOutputTest, PartsMayBeTornAnywhere) {
  TextBuffer whole;
  whole.text({"\4\0\0\0\0\0\0\0textsecond", 18});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    OutputFile pair = paired_output(std::move(*create("text")), std::move(*create("second")));
    for (std::size_t at = 0; at < whole.size(); at += size)
      ASSERT_TRUE(pair.write(whole.view().substr(at, size)));
    ASSERT_TRUE(pair.finish());
    EXPECT_EQ(content("text") + "|" + content("second"), "text|second") << size;
  }
}

TEST_F(PairedOutputTest, WhatIsNotFinishedIsNotThere) {
  { OutputFile pair = paired_output(std::move(*create("text")), std::move(*create("second"))); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace tacho::report
