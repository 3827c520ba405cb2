#include "record/stacks/file_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "format/base/file.h"
#include "format/records/build_id.h"

namespace tacho::record {

namespace {

using std::chrono::milliseconds;

const IdRangeAllocator::Clock::time_point kStart{};
const auto kLater = kStart + IdRangeAllocator::kQuarantine;

TEST(IdRangeAllocator, RunsAreGivenOutOnce) {
  IdRangeAllocator runs(10);
  EXPECT_EQ(runs.take_range(4, kStart), 0u);
  EXPECT_EQ(runs.take_range(6, kStart), 4u);
  EXPECT_EQ(runs.take_range(1, kStart), std::nullopt);
  EXPECT_EQ(runs.taken(), 10u);
}

TEST(IdRangeAllocator, WhatIsGivenBackRestsFirst) {
  IdRangeAllocator runs(10);
  runs.take_range(10, kStart);
  runs.give_back(2, 3, kStart);
  EXPECT_EQ(runs.take_range(1, kLater - milliseconds(1)), std::nullopt);
  EXPECT_EQ(runs.take_range(3, kLater), 2u);
  EXPECT_EQ(runs.taken(), 10u);
}

TEST(IdRangeAllocator, WhatRestsIsForeseen) {
  IdRangeAllocator runs(10);
  runs.take_range(10, kStart);
  EXPECT_FALSE(runs.will_have(1));
  runs.give_back(2, 3, kStart);
  runs.give_back(6, 2, kStart);
  EXPECT_TRUE(runs.will_have(3));
  EXPECT_FALSE(runs.will_have(4)) << "no two of them touch";
  runs.give_back(5, 1, kStart);
  EXPECT_TRUE(runs.will_have(6));
  EXPECT_EQ(runs.take_range(1, kStart), std::nullopt) << "it rests all the same";
}

// Tables that no stack led through for long lie anywhere among the others.
TEST(IdRangeAllocator, RoomForThoseThatComeNextMayLieApart) {
  constexpr std::uint32_t kTables = 160, kEach = 10, kApart = 37;
  IdRangeAllocator runs(kTables * kEach);
  for (std::uint32_t i = 0; i < kTables; ++i) runs.take_range(kEach, kStart);
  std::uint32_t evicted = 0;
  for (; !runs.will_have(kEach, 100); ++evicted)
    runs.give_back(evicted * kApart % kTables * kEach, kEach, kStart);
  EXPECT_EQ(evicted, 10u);
  EXPECT_FALSE(runs.will_have(100)) << "no two of them touch";
  EXPECT_TRUE(runs.take_range(kEach, kLater));
  EXPECT_TRUE(runs.will_have(kEach, 90)) << "what rested is counted once";
  EXPECT_FALSE(runs.will_have(kEach, 91));
}

TEST(IdRangeAllocator, NeighboursGrowTogetherAgain) {
  IdRangeAllocator runs(9);
  for (int i = 0; i < 3; ++i) runs.take_range(3, kStart);
  runs.give_back(0, 3, kStart);
  runs.give_back(6, 3, kStart);
  EXPECT_EQ(runs.take_range(4, kLater), std::nullopt);
  runs.give_back(3, 3, kStart);
  EXPECT_EQ(runs.take_range(9, kLater), 0u);
}

TEST(IdRangeAllocator, MoreNumbersFollowTheLast) {
  IdRangeAllocator runs(2);
  EXPECT_EQ(runs.take_range(1, kStart), 0u);
  runs.grow(3);
  EXPECT_EQ(runs.take_range(4, kStart), 1u);
  EXPECT_EQ(runs.size(), 5u);
}

}  // namespace

namespace {

std::shared_ptr<ForeignReader> reader() { return ForeignReader::start(); }
Result<FileTable> table_of(const MappedFile& file) { return table_of_file(file, *reader(), {}); }

// This program, as in a PERF_RECORD_MMAP2.
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
  const auto table = table_of(own_program());
  ASSERT_TRUE(table) << table.error().what;
  EXPECT_GT(table->rows.rows.size(), 1000u);
  struct stat info {};
  ASSERT_EQ(stat("/proc/self/exe", &info), 0);
  EXPECT_LT(table->rows.base, static_cast<std::uint64_t>(info.st_size));
}

TEST(TableOfFile, AnotherFileUnderTheNameIsNotTaken) {
  MappedFile file = own_program();
  ++file.inode;
  EXPECT_FALSE(table_of(file));
  file = own_program();
  file.build_id = *format::BuildId::from_hex("00112233445566778899aabbccddeeff00112233");
  EXPECT_FALSE(table_of(file));
}

// The inode of a removed file is given to another one.
TEST(TableOfFile, SizeAndGenerationDistinguishFilesOfOneInode) {
  MappedFile file = own_program();
  struct stat info {};
  ASSERT_EQ(stat("/proc/self/exe", &info), 0);
  const std::string before = identity(file);
  file.size = static_cast<std::uint64_t>(info.st_size) + 1;
  EXPECT_NE(identity(file), before);
  EXPECT_FALSE(table_of(file));
  MappedFile known = own_program();
  const auto own = reader();
  auto opened = open_binary(known, *own);
  ASSERT_TRUE(opened);
  know(known, *opened);
  known.build_id = {};
  EXPECT_TRUE(table_of(known));
  if (known.size == 0) GTEST_SKIP() << "this file system has no generation numbers";
  ++known.changed;
  EXPECT_FALSE(table_of(known)) << "it was written anew in place";
  --known.changed;
  ++known.generation;
  EXPECT_FALSE(table_of(known));
}

TEST(TableOfFile, WhatIsNoBinaryHasNone) {
  const std::string path = testing::TempDir() + "no_binary";
  std::ofstream(path) << "#!/bin/sh\n";
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  MappedFile file;
  file.inode = info.st_ino;
  file.name = path;
  EXPECT_FALSE(table_of(file));
  unlink(path.c_str());
}

TEST(TableOfFile, TheVdsoNeedsNoFile) {
  const auto table = table_of({.name = "[vdso]"});
#if defined(__x86_64__)
  ASSERT_TRUE(table) << table.error().what;
  EXPECT_GT(table->rows.functions, 3u);
#endif
}

}  // namespace

}  // namespace tacho::record
