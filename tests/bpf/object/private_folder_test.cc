#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "bpf/object/compile.h"

namespace tacho::bpf {
namespace {

TEST(PrivateFolder, IsOursAloneAndLeavesNothingBehind) {
  std::string path;
  {
    auto folder = PrivateFolder::create();
    ASSERT_TRUE(folder) << folder.error().what;
    path = folder->path();
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    std::ofstream(path + "/file") << "content";
    const PrivateFolder moved = std::move(*folder);
    EXPECT_EQ(moved.path(), path);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(PrivateFolder, TakesItsFinalNameOnceOnly) {
  auto parent = PrivateFolder::create();
  ASSERT_TRUE(parent);
  const std::string name = parent->path() + "/kept";
  auto first = PrivateFolder::create(parent->path());
  auto second = PrivateFolder::create(parent->path());
  ASSERT_TRUE(first && second);
  std::ofstream(first->path() + "/file") << "first";
  std::ofstream(second->path() + "/file") << "second";
  EXPECT_TRUE(first->rename_to(name));
  EXPECT_FALSE(second->rename_to(name));
  std::string content;
  std::ifstream(name + "/file") >> content;
  EXPECT_EQ(content, "first");
}

TEST(PrivateFolder, SaysWhereItCouldNotBeMade) {
  const auto folder = PrivateFolder::create("/nonexistent");
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().what.find("/nonexistent"), std::string::npos);
}

}  // namespace
}  // namespace tacho::bpf
