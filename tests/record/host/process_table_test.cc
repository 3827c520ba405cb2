#include "record/host/process_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

TEST(ProcessTable, NumbersAreThoseOfEachNamespace) {
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\nNSpid:\t812\t7\t1\nNSpgid:\t812\n"), "812,7,1");
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\nNSpid:\t812\n"), "812");
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\n"), "") << "kernels before 4.1";
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\nNSpid:\t8;rm\n"), "");
}

TEST(ProcessTable, AStartIsFoundBehindANameOfAnyKind) {
  const std::string middle = " S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 ";
  EXPECT_EQ(start_of("812 (a) b) (c)" + middle + "1234 99 5", 100), 12'340'000'000ULL);
  EXPECT_EQ(start_of("812 (a)" + middle + "18446744073709551615 99", 100), 0U) << "too large to be true";
  EXPECT_EQ(start_of("812 (a) S", 100), 0U);
  EXPECT_EQ(start_of("", 100), 0U);
}

TEST(ProcessTable, TheCgroupIsThatOfPerfEvents) {
  EXPECT_EQ(cgroup_path("0::/system.slice/x.service\n"), "/system.slice/x.service");
  EXPECT_EQ(cgroup_path("5:cpu:/a\n4:net_cls,perf_event:/docker/4f:1\n0::/b\n"), "/docker/4f:1");
  EXPECT_EQ(cgroup_path("garbage"), "");
}

TEST(ProcessTable, WhatNamesHoldStaysInItsField) {
  std::string pattern = (fs::temp_directory_path() / "tacho-proc-XXXXXX").string();
  const fs::path root = mkdtemp(pattern.data());
  fs::create_directories(root / "42");
  std::ofstream(root / "42/status") << "Name:\tx\nNSpid:\t42\t3\n";
  std::ofstream(root / "42/cgroup") << "0::/a\tb\\c\n";
  fs::create_symlink("/bin/od\nd", root / "42/exe");
  ProcessTable table(root.string());
  table.add(42);
  table.add(43);  // ended
  const std::string& text = table.text();
  EXPECT_EQ(text.substr(text.find('\n') + 1), "42\t42,3\t0\t0\t0\t/a\\011b\\134c\t/bin/od\\012d\n");
  fs::remove_all(root);
}

}  // namespace
}  // namespace tacho::record
