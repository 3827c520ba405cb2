#include "record/stacks/file_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "format/build_id.h"
#include "format/file.h"

namespace tacho::record {
namespace {

// This program, as the kernel would tell of it.
MappedFile own_program() {
  struct stat info {};
  EXPECT_EQ(stat("/proc/self/exe", &info), 0);
  MappedFile file;
  file.inode = info.st_ino;
  file.name = std::filesystem::read_symlink("/proc/self/exe").string();
  file.process = static_cast<std::uint32_t>(getpid());
  return file;
}

TEST(TableOfFile, AProgramHasOneThatCountsFromItsBegin) {
  const auto table = table_of_file(own_program(), {});
  ASSERT_TRUE(table) << table.error().what;
  EXPECT_GT(table->rows.rows.size(), 1000u);
  struct stat info {};
  ASSERT_EQ(stat("/proc/self/exe", &info), 0);
  EXPECT_LT(table->rows.base, static_cast<std::uint64_t>(info.st_size));
}

TEST(TableOfFile, AnotherFileUnderTheNameIsNotTaken) {
  MappedFile file = own_program();
  ++file.inode;
  EXPECT_FALSE(table_of_file(file, {}));
  file = own_program();
  file.build_id = *format::BuildId::from_hex("00112233445566778899aabbccddeeff00112233");
  EXPECT_FALSE(table_of_file(file, {}));
}

// The inode of a removed file is given to another one.
TEST(TableOfFile, SizeAndGenerationTellFilesOfOneInodeApart) {
  MappedFile file = own_program();
  struct stat info {};
  ASSERT_EQ(stat("/proc/self/exe", &info), 0);
  const std::string before = identity(file);
  file.size = static_cast<std::uint64_t>(info.st_size) + 1;
  EXPECT_NE(identity(file), before);
  EXPECT_FALSE(table_of_file(file, {}));
  MappedFile known = own_program();
  const auto opened = format::open_input("/proc/self/exe");
  ASSERT_TRUE(opened);
  know(known, *opened);
  known.build_id = {};
  EXPECT_TRUE(table_of_file(known, {}));
  if (known.size == 0) GTEST_SKIP() << "this file system tells no generations";
  ++known.changed;
  EXPECT_FALSE(table_of_file(known, {})) << "it was written anew in place";
  --known.changed;
  ++known.generation;
  EXPECT_FALSE(table_of_file(known, {}));
}

TEST(TableOfFile, WhatIsNoBinaryHasNone) {
  const std::string path = testing::TempDir() + "no_binary";
  std::ofstream(path) << "#!/bin/sh\n";
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  MappedFile file;
  file.inode = info.st_ino;
  file.name = path;
  EXPECT_FALSE(table_of_file(file, {}));
  unlink(path.c_str());
}

TEST(TableOfFile, TheVdsoNeedsNoFile) {
  const auto table = table_of_file({.name = "[vdso]"}, {});
#if defined(__x86_64__)
  ASSERT_TRUE(table) << table.error().what;
  EXPECT_GT(table->rows.functions, 3u);
#endif
}

}  // namespace
}  // namespace tacho::record
