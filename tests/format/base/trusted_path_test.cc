#include "format/base/trusted_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "format/base/output.h"
#include "tests/support/named_output.h"

namespace tacho::format {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kOther = 54321;

class TrustedPath : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, whom others could trick";
    std::string name = (fs::temp_directory_path() / "tacho-trust.XXXXXX").string();
    folder = ::mkdtemp(name.data());
    fs::create_directories(folder + "/a/b");
    file = folder + "/a/b/file";
    std::ofstream(file) << "content";
  }
  void TearDown() override {
    if (!folder.empty()) fs::remove_all(folder);
  }
  static std::string refusal(const std::string& path) {
    const auto checked = check_trusted_path(path);
    return checked ? "" : checked.error().what;
  }
  void expect_refused(const std::string& path, const std::string& because) {
    EXPECT_NE(refusal(path).find(because), std::string::npos) << refusal(path);
    EXPECT_EQ(check_trusted_path(path).error().code, EPERM);
  }
  std::string folder, file;
};

TEST_F(TrustedPath, WhatOnlyRootCanChangeIsFine) {
  EXPECT_EQ(refusal(file), "");
  EXPECT_EQ(refusal(folder + "/a/../a/./b//file"), "");
  fs::create_symlink("b/file", folder + "/a/near");
  fs::create_symlink(folder + "/a", folder + "/far");
  EXPECT_EQ(refusal(folder + "/a/near"), "");
  EXPECT_EQ(refusal(folder + "/far/near"), "");
  EXPECT_NE(refusal(folder + "/a/none").find("No such file"), std::string::npos);
}

TEST_F(TrustedPath, TheFileAndEveryFolderAboveAreLookedAt) {
  ASSERT_EQ(::chown(file.c_str(), kOther, 0), 0);
  expect_refused(file, file + " belongs to user 54321");
  ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown((folder + "/a").c_str(), kOther, 0), 0);
  expect_refused(file, folder + "/a belongs to user 54321");
  ASSERT_EQ(::chown((folder + "/a").c_str(), 0, 0), 0);
  ::chmod((folder + "/a").c_str(), 0777);
  expect_refused(file, "all users");
  ::chmod((folder + "/a").c_str(), 01777);
  EXPECT_EQ(refusal(file), "") << "the sticky bit";
  ::chmod((folder + "/a").c_str(), 0775);
  EXPECT_EQ(refusal(file), "") << "root's own group";
  ASSERT_EQ(::chown((folder + "/a").c_str(), 0, kOther), 0);
  ::chmod((folder + "/a").c_str(), 0775);
  expect_refused(file, "group 54321");
  ::chmod(file.c_str(), 0666);
  ::chmod((folder + "/a").c_str(), 0755);
  expect_refused(file, file + " may be changed by all users");
}

TEST_F(TrustedPath, LinksOfOthersAreNotFollowed) {
  fs::create_symlink(folder + "/a/b", folder + "/link");
  ASSERT_EQ(::lchown((folder + "/link").c_str(), kOther, 0), 0);
  expect_refused(folder + "/link/file", "link belongs to user 54321");
  fs::create_symlink("loop", folder + "/loop");
  EXPECT_NE(refusal(folder + "/loop"), "") << "ends";
}

TEST_F(TrustedPath, TheCallerOfSudoIsTrusted) {
  ASSERT_EQ(::chown(file.c_str(), kOther, kOther), 0);
  ::setenv("SUDO_UID", "54321", 1);
  EXPECT_EQ(refusal(file), "");
  ::setenv("SUDO_UID", "54321x", 1);
  EXPECT_NE(refusal(file), "");
  ::unsetenv("SUDO_UID");
}

TEST_F(TrustedPath, RootWritesNeitherIntoFoldersOfOthersNorMovesTheirFiles) {
  const std::string out = folder + "/a/b/out";
  ASSERT_EQ(::chown((folder + "/a/b").c_str(), kOther, 0), 0);
  const auto foreign = test::named_output(out);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().fault, Fault::Output);
  EXPECT_NE(foreign.error().what.find("belongs to user 54321"), std::string::npos) << foreign.error().what;

  ASSERT_EQ(::chown((folder + "/a/b").c_str(), 0, kOther), 0);
  ::chmod((folder + "/a/b").c_str(), 0770);
  EXPECT_FALSE(test::named_output(out)) << "a group that root is not in";
  ::chmod((folder + "/a/b").c_str(), 01777);
  EXPECT_TRUE(test::named_output(out));
  ASSERT_EQ(::chown(out.c_str(), kOther, 0), 0);
  const auto theirs = test::named_output(out);
  ASSERT_FALSE(theirs);
  EXPECT_NE(theirs.error().what.find("does not rename it"), std::string::npos) << theirs.error().what;
  EXPECT_FALSE(fs::exists(out + ".old"));
}

TEST_F(TrustedPath, EveryFolderAndLinkOnTheWayToAnOutputCounts) {
  const std::string theirs = folder + "/theirs";
  fs::create_directories(theirs);
  fs::create_symlink(folder + "/a/b", theirs + "/link");
  fs::create_symlink(folder + "/a/b/file", theirs + "/last");
  for (const char* const name : {"", "/link", "/last"})
    ASSERT_EQ(::lchown((theirs + name).c_str(), kOther, kOther), 0);
  for (const char* const path : {"/out", "/link/out", "/last"}) {
    const auto out = test::named_output(theirs + path);
    ASSERT_FALSE(out) << path;
    EXPECT_EQ(out.error().fault, Fault::Output);
    EXPECT_NE(out.error().what.find(theirs + " belongs to user 54321; name a file elsewhere"),
              std::string::npos)
        << out.error().what;
  }
  EXPECT_FALSE(fs::exists(folder + "/a/b/out"));
  // A link of theirs in a sticky folder.
  ::chmod(folder.c_str(), 01777);
  fs::create_symlink(folder + "/a/b", folder + "/near");
  EXPECT_TRUE(test::named_output(folder + "/near/mine"));
  ASSERT_EQ(::lchown((folder + "/near").c_str(), kOther, kOther), 0);
  EXPECT_FALSE(test::named_output(folder + "/near/out"));
  EXPECT_TRUE(check_output_way(folder + "/a/b/missing"));
  EXPECT_TRUE(check_output_way("/dev/null"));
}

// The variable as long as this lives.
class Path {
 public:
  explicit Path(const std::string& value) : before_(std::getenv("PATH")) {
    ::setenv("PATH", value.c_str(), 1);
  }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST_F(TrustedPath, RootRunsNoProgramThatOthersMayChange) {
  fs::create_directories(folder + "/open");
  fs::create_directories(folder + "/own");
  for (const char* const place : {"/open/prog", "/own/prog"}) {
    std::ofstream(folder + place) << "#!/bin/sh\n";
    ::chmod((folder + place).c_str(), 0755);
  }
  ::chmod((folder + "/open").c_str(), 0777);
  {
    const Path both(folder + "/open:" + folder + "/own");
    const auto found = find_program("prog");
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_EQ(*found, folder + "/own/prog");
  }
  {
    const Path open("::" + folder + "/open");
    const auto found = find_program("prog");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, EPERM);
    EXPECT_NE(found.error().what.find("root runs no program that other users may change: " + folder +
                                      "/open may be changed by all users"),
              std::string::npos)
        << found.error().what;
    EXPECT_EQ(find_program("absent").error().code, ENOENT);
  }
  ASSERT_EQ(::seteuid(kOther), 0);
  const Path open(folder + "/open");
  const auto found = find_program("prog");
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_FALSE(found) << "the folder around is root's alone";
}

TEST_F(TrustedPath, AShellOfRootSearchesTrustedFoldersOnly) {
  fs::create_directories(folder + "/open");
  ::chmod((folder + "/open").c_str(), 0777);
  const Path all(folder + "/open:" + folder + "/a:.:" + folder + "/missing:/usr/bin");
  EXPECT_EQ(trusted_search_path(), folder + "/a:/usr/bin");
}

TEST_F(TrustedPath, AProgramBesideIsRefusedWhereOthersCouldPutOne) {
  fs::create_directories(folder + "/sticky");
  ::chmod((folder + "/sticky").c_str(), 01777);
  const std::string self = folder + "/sticky/tacho", beside = folder + "/sticky/tacho-report";
  for (const std::string& one : {self, beside}) std::ofstream(one) << "x";
  EXPECT_TRUE(check_beside(self, beside));
  ASSERT_EQ(::chown(beside.c_str(), kOther, 0), 0);
  EXPECT_FALSE(check_beside(self, beside));
  // Who could put that one there could change this one.
  ASSERT_EQ(::chown(self.c_str(), kOther, 0), 0);
  EXPECT_TRUE(check_beside(self, beside));
}

}  // namespace
}  // namespace tacho::format
