#include "symbolize/files/archive.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tacho::symbolize {
namespace {

// The block of a file in a tar.
std::string header(const std::string& name, unsigned long size) {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  char digits[13];
  std::snprintf(digits, sizeof digits, "%011lo", size);
  block.replace(124, 11, digits, 11);
  block[156] = '0';
  block.replace(257, 5, "ustar");
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char one : block) sum += static_cast<unsigned char>(one);
  std::snprintf(digits, sizeof digits, "%06o", sum);
  block.replace(148, 7, digits, 7);
  return block;
}

class ArchiveTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "archive.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& content, unsigned long size) {
    const std::string path = folder_ / "a.tar";
    std::ofstream(path) << content;
    std::filesystem::resize_file(path, size);
    return path;
  }
  std::filesystem::path folder_;
};

constexpr unsigned long kMegabyte = 1UL << 20;

TEST_F(ArchiveTest, WhatUnpacksToMoreThanItMayIsStopped) {
  // A terabyte of zeros, of which the file system keeps nothing.
  const std::string path = write(header("zeros", 1000 * kMegabyte * 1000), 1001 * kMegabyte * 1000);
  const auto archive = read_archive(path, kMegabyte);
  ASSERT_FALSE(archive);
  EXPECT_NE(archive.error().what.find("its contents exceed the limit"), std::string::npos)
      << archive.error().what;
}

TEST_F(ArchiveTest, WhatIsAsLargeAsItMayBeIsRead) {
  const std::string path = write(header("zeros", kMegabyte), kMegabyte + 3 * 512);
  const auto archive = read_archive(path, kMegabyte + 3 * 512);
  ASSERT_TRUE(archive) << archive.error().what;
  EXPECT_TRUE(archive->files.empty());
  EXPECT_TRUE(archive->ignored.empty());
  EXPECT_FALSE(read_archive(path, kMegabyte));
}

}  // namespace
}  // namespace tacho::symbolize
