#include "report/output/output_parts.h"

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
#include <vector>

namespace tacho::report {
namespace {

constexpr mode_t kRights = 0666;

class OutputPartsTest : public testing::Test {
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
  std::vector<OutputFile> create_all() const {
    std::vector<OutputFile> files;
    for (const char* const name : {"text", "second", "third"}) files.push_back(std::move(*create(name)));
    return files;
  }
  std::string contents() const { return content("text") + "|" + content("second") + "|" + content("third"); }
  std::filesystem::path folder_;
};

TEST_F(OutputPartsTest, EachFileGetsItsPart) {
  for (const std::string_view first : {"", "a text", "a text that is longer than what follows it"}) {
    TextOutput out(output_of_parts(create_all()));
    write_part(out, first);
    write_part(out, "the second");
    out.text("the third");
    ASSERT_TRUE(out.finish());
    EXPECT_EQ(contents(), std::string(first) + "|the second|the third");
  }
}

TEST_F(OutputPartsTest, PartsMayBeTornAnywhere) {
  TextBuffer whole;
  whole.text({"\4\0\0\0\0\0\0\0text\0\0\0\0\0\0\0\0third", 25});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    OutputFile all = output_of_parts(create_all());
    for (std::size_t at = 0; at < whole.size(); at += size)
      ASSERT_TRUE(all.write(whole.view().substr(at, size)));
    ASSERT_TRUE(all.finish());
    EXPECT_EQ(contents(), "text||third") << size;
  }
}

TEST_F(OutputPartsTest, WhatIsNotFinishedIsNotThere) {
  { OutputFile all = output_of_parts(create_all()); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace tacho::report
