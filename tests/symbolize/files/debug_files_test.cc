#include "symbolize/files/debug_files.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

std::string text(const Result<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(format::as_text(*bytes)) : "error: " + bytes.error().what;
}

TEST(DebugFiles, CandidatesStandInPerfsOrder) {
  const auto id = format::BuildId::from_hex("0123456789abcdef0123456789abcdef01234567");
  const auto found = DebugFiles("").candidates("/opt/bin/x", *id, "x.dbg");
  std::string paths;
  for (const Candidate& one : found) paths += std::string(1, one.source) + " " + one.path + "\n";
  EXPECT_EQ(paths,
            "l /opt/bin/x.dbg\n"
            "l /opt/bin/.debug/x.dbg\n"
            "l /usr/lib/debug/opt/bin/x.dbg\n"
            "f /usr/lib/debug/opt/bin/x.debug\n"
            "u /usr/lib/debug/opt/bin/x\n"
            "b /usr/lib/debug/.build-id/01/23456789abcdef0123456789abcdef01234567.debug\n");
}

TEST(DebugFiles, WithoutABuildIdOrALinkOnlyThePathIsLeft) {
  EXPECT_EQ(DebugFiles("").candidates("/opt/x", {}, "").size(), 2u);
}

TEST(DebugFiles, ReadsBelowItsRoot) {
  const test::Folder root;
  root.write("/etc/x", "below");
  const DebugFiles files(root.path());
  EXPECT_EQ(text(files.read("/etc/x", 100)), "below");
  EXPECT_NE(text(files.read("/etc/passwd", 1 << 20)).find("No such file"), std::string::npos);
  EXPECT_NE(text(files.read("/etc/x", 2)).find("larger than 2 bytes"), std::string::npos);
}

// Opening is an act already: a device does something, and whoever waits at a FIFO goes on.
TEST(DebugFiles, WhatIsNoRegularFileIsNotEvenOpened) {
  const test::Folder root;
  root.write("/file", "x");
  ASSERT_EQ(::mkfifo((root.path() + "/fifo").c_str(), 0600), 0);
  const format::Fd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  for (const char* name : {"/fifo", "/file"}) {
    ASSERT_GE(::inotify_add_watch(watch.get(), (root.path() + name).c_str(), IN_OPEN), 0);
  }
  const auto was_opened = [&] {
    std::array<char, 4096> events{};
    return ::read(watch.get(), events.data(), events.size()) > 0;
  };
  for (const DebugFiles& files : {DebugFiles(root.path()), DebugFiles("")}) {
    const std::string folder = files.root().empty() ? root.path() : "";
    const auto fifo = files.open(folder + "/fifo");
    ASSERT_FALSE(fifo);
    EXPECT_NE(fifo.error().what.find("is not a regular file"), std::string::npos) << fifo.error().what;
    EXPECT_FALSE(was_opened());
    EXPECT_TRUE(files.open(folder + "/file"));
    EXPECT_TRUE(was_opened()) << "the test can see it";
  }
  EXPECT_FALSE(DebugFiles("").open("/proc/self/status")) << "made up by the kernel";
}

// The path comes out of a capture, and the links out of a tree that came with it.
TEST(DebugFiles, NothingLeadsOutOfTheRoot) {
  const test::Folder outside, root;
  outside.write("/secret", "secret");
  root.write("/x", "x");
  std::filesystem::create_symlink(outside.path() + "/secret", root.path() + "/absolute");
  std::filesystem::create_symlink("../" + outside.path().substr(5) + "/secret", root.path() + "/climbing");
  const DebugFiles files(root.path());
  for (const char* path : {"/absolute", "/climbing"}) EXPECT_FALSE(files.open(path)) << path;
  const std::string up = "/../../../../../.." + outside.path() + "/secret";
  EXPECT_FALSE(files.open(up));
}

TEST(DebugFiles, ALinkInsideTheRootIsFollowedAsTheHostWould) {
  const test::Folder root;
  root.write("/usr/lib/x", "found");
  std::filesystem::create_symlink("/usr/lib", root.path() + "/lib");
  EXPECT_EQ(text(DebugFiles(root.path()).read("/lib/x", 100)), "found");
}

TEST(DebugFiles, OnlyRegularFilesAreOpenedAndNothingIsWaitedFor) {
  const test::Folder root;
  ASSERT_EQ(mkfifo((root.path() + "/fifo").c_str(), 0600), 0);
  for (const auto& [base, path] : {std::pair(root.path(), std::string("/fifo")),
                                   {"", root.path() + "/fifo"},
                                   {root.path(), std::string("/")},
                                   {"", std::string("/dev/null")}}) {
    const auto file = DebugFiles(base).open(path);
    EXPECT_FALSE(file) << base << path;
  }
}

TEST(DebugFiles, ALineAboutAFileNamesItOnce) {
  const DebugFiles here{""}, below{"/sysroot"};
  EXPECT_EQ(here.message("/bin/x", "/bin/x: is empty"), "/bin/x: is empty");
  EXPECT_EQ(below.message("/bin/x", "/sysroot/bin/x: is empty", "no lines: "),
            "/sysroot/bin/x: no lines: is empty");
  EXPECT_EQ(below.message("/bin/x", "/cache/elf: is empty", "no lines: "),
            "/bin/x: no lines: /cache/elf: is empty");
  EXPECT_EQ(below.message("[vdso]", "it is not attached"), "[vdso]: it is not attached");
}

}  // namespace
}  // namespace tacho::symbolize
