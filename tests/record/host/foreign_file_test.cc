// What a watched process can make a recorder open.

#include "record/host/foreign_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>

namespace tacho::record {

namespace {

class ForeignFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-foreign.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    root_ = folder_ / "root";
    std::filesystem::create_directories(root_ / "etc");
    put("outside", "of the host");
    put("root/file", "of the process");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void put(std::string_view name, std::string_view text) const { std::ofstream(folder_ / name) << text; }
  void link(const std::string& to, const char* name) const {
    std::filesystem::create_symlink(to, root_ / name);
  }
  static std::string text_of(const ForeignPath& path) {
    const auto file = open_foreign(path);
    if (!file) return "refused: " + file.error().what;
    const auto bytes = format::read_at(file->get(), 0, 100);
    return bytes ? std::string(format::as_text(*bytes)) : "not read";
  }
  std::string text_in_root(const std::string& path) const { return text_of({root_.string(), path}); }

  std::filesystem::path folder_, root_;
};

TEST_F(ForeignFileTest, AFileIsTakenWithItsInode) {
  EXPECT_EQ(text_in_root("/file"), "of the process");
  struct stat info {};
  ASSERT_EQ(::stat((root_ / "file").c_str(), &info), 0);
  EXPECT_EQ(text_of({root_.string(), "/file", info.st_ino}), "of the process");
  EXPECT_TRUE(text_of({root_.string(), "/file", info.st_ino + 1}).ends_with("is another file"));
  EXPECT_FALSE(open_foreign({root_.string(), "/none"}));
  EXPECT_FALSE(open_foreign({(folder_ / "none").string(), "/file"}));
}

TEST_F(ForeignFileTest, NoLinkLeadsOutOfTheRoot) {
  const std::string outside = (folder_ / "outside").string();
  link(outside, "link");
  link(folder_.string(), "folder");
  EXPECT_TRUE(text_in_root("/link").ends_with("is not a regular file"));
  EXPECT_TRUE(text_in_root("/folder/outside").starts_with("refused"))
      << "an absolute link in a folder's place";
  EXPECT_TRUE(text_in_root("/../outside").starts_with("refused"));
  // The same path inside is what the process sees.
  std::filesystem::create_directories(root_.string() + folder_.string());
  std::ofstream(root_.string() + outside) << "seen there";
  EXPECT_EQ(text_in_root("/folder/outside"), "seen there");
}

TEST_F(ForeignFileTest, AFifoIsNotOpened) {
  const std::string fifo = (root_ / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  auto writer = std::async(std::launch::async, [&] { return format::Fd(::open(fifo.c_str(), O_WRONLY)); });
  using std::chrono::milliseconds;
  (void)writer.wait_for(milliseconds(50));  // it waits for a reader by now
  EXPECT_TRUE(text_in_root("/fifo").ends_with("is not a regular file"));
  EXPECT_EQ(writer.wait_for(milliseconds(100)), std::future_status::timeout) << "it had a reader";
  const format::Fd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_TRUE(writer.get());
}

TEST_F(ForeignFileTest, DevicesAndFilesOfTheKernelAreRefused) {
  EXPECT_TRUE(text_of({"/", "/dev/null"}).ends_with("is not a regular file"));
  EXPECT_TRUE(text_in_root("/etc").ends_with("is not a regular file"));
  const std::string own = "/proc/" + std::to_string(::getpid());
  EXPECT_TRUE(text_of({"/", own + "/maps"}).ends_with("is the kernel's own"));
  EXPECT_TRUE(text_of({"/", "/sys/kernel/notes"}).ends_with("is the kernel's own"));
  EXPECT_TRUE(text_of({"", own + "/maps"}).ends_with("is the kernel's own"));
  EXPECT_TRUE(text_of({"/", own + "/root" + folder_.string() + "/outside"}).starts_with("refused"))
      << "a link that only the kernel can make";
}

TEST_F(ForeignFileTest, TheKernelsLinkToAFileIsFollowed) {
  const format::Fd file(::open((root_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
  std::filesystem::remove(root_ / "file");
  EXPECT_EQ(text_of({"", "/proc/self/fd/" + std::to_string(file.get())}), "of the process");
}

TEST(View, OneOfOurOwnIsOurs) {
  EXPECT_EQ(view_of("/proc/self"), View::Ours);
  EXPECT_EQ(view_of("/proc/none"), View::Unknown);
}

TEST(ScopeOfFile, ADiskIsSlowWhereANetworkHangs) {
  EXPECT_EQ(scope_of_file(8, 1, "/srv/file", "/proc/self"), "/srv/file");
  EXPECT_EQ(scope_of_file(0, 50, "/srv/file", "/proc/self"), "0:50");
  const std::string folder = testing::TempDir() + "tacho_mounts";
  ASSERT_TRUE(mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST);
  std::ofstream(folder + "/mountinfo") << "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                          "21 20 0:31 / /net/a\\040b rw - nfs host:/x rw\n"
                                          "22 20 0:32 / /net/c rw - nfs host:/y rw\n"
                                          "23 20 0:33 / /net/c rw - nfs host:/z rw\n";
  EXPECT_EQ(scope_of_file(0, 0, "/net/a b/lib/x", folder), "0:31");
  EXPECT_EQ(scope_of_file(0, 0, "/net/c/x", folder), "0:33") << "the one that lies above";
  EXPECT_EQ(scope_of_file(0, 0, "/net/cd/x", folder), "/net/cd/x");
}

}  // namespace

}  // namespace tacho::record
