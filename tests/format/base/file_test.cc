#include "format/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/capture_builder.h"
#include "tests/support/named_output.h"

namespace tacho::format {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-file.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ / name; }
  void put(const std::string& name, std::string_view text) { std::ofstream(name) << text; }

  std::filesystem::path folder_;
};

TEST_F(FileTest, AMissingInputIsNamed) {
  const auto file = open_input(path("none"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().what, path("none") + ": No such file or directory");
}

TEST_F(FileTest, AFifoIsRefusedWithoutWaitingForItsWriter) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const auto file = open_input(path("fifo"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().what, path("fifo") + ": is not a regular file");
}

TEST_F(FileTest, AFolderIsRefused) {
  const auto file = open_input(folder_.string(), Streams::Allow);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().what, folder_.string() + ": is a directory");
}

TEST_F(FileTest, FilesWithoutASizeAreReadWhole) {
  const auto content = read_file("/proc/self/maps");
  ASSERT_TRUE(content);
  EXPECT_GT(content->size(), 100u);
}

TEST_F(FileTest, AFileAboveTheLimitIsRefused) {
  put(path("big"), std::string(1000, 'x'));
  EXPECT_FALSE(read_file(path("big"), 999));
  EXPECT_TRUE(read_file(path("big"), 1000));
}

TEST_F(FileTest, AnOutputIsPrivateAndKeepsTheOldOne) {
  put(path("out"), "old");
  ::chmod(path("out").c_str(), 0644);
  auto out = test::named_output(path("out"));
  ASSERT_TRUE(out) << out.error().what;
  ASSERT_TRUE(write_at(out->get(), 0, std::as_bytes(std::span(std::string_view("new")))));
  struct stat status {};
  ASSERT_EQ(::stat(path("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_size, 3);
  const auto old = read_file(path("out.old"));
  ASSERT_TRUE(old);
  EXPECT_EQ(as_text(*old), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2)
      << "no temporary file is left";
}

TEST_F(FileTest, AnOutputNeverFollowsALink) {
  put(path("target"), "precious");
  ASSERT_EQ(::symlink(path("target").c_str(), path("out").c_str()), 0);
  auto out = test::named_output(path("out"));
  ASSERT_TRUE(out) << out.error().what;
  ASSERT_TRUE(write_at(out->get(), 0, std::as_bytes(std::span(std::string_view("new")))));
  const auto target = read_file(path("target"));
  ASSERT_TRUE(target);
  EXPECT_EQ(as_text(*target), "precious");
}

TEST_F(FileTest, ALinkToWhatIsOpenOrIsNoFileStays) {
  ASSERT_EQ(::symlink("/proc/self/fd/1", path("stdout").c_str()), 0);
  ASSERT_EQ(::symlink("/dev/null", path("null").c_str()), 0);
  for (const char* const name : {"stdout", "null"}) {
    EXPECT_FALSE(test::named_output(path(name))) << name;
    struct stat status {};
    ASSERT_EQ(::lstat(path(name).c_str(), &status), 0);
    EXPECT_TRUE(S_ISLNK(status.st_mode)) << name;
  }
}

TEST_F(FileTest, AnOutputThatIsAFifoIsRefused) {
  ASSERT_EQ(::mkfifo(path("out").c_str(), 0600), 0);
  const auto out = test::named_output(path("out"));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().fault, Fault::Output);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "no temporary file is left";
}

TEST_F(FileTest, AnOutputMayHaveTheLongestName) {
  for (const std::size_t length : {246, 247, 251, 252, 255}) {
    const std::string name(length, 'n');
    EXPECT_TRUE(test::named_output(path(name.c_str()))) << length;
    const auto again = test::named_output(path(name.c_str()));
    EXPECT_EQ(static_cast<bool>(again), length <= 251) << "NAME.old has 255 bytes at most";
    if (again) continue;
    EXPECT_NE(again.error().what.find("is too long"), std::string::npos) << again.error().what;
  }
}

TEST_F(FileTest, AFolderThatDoesNotExistIsAnOutputError) {
  const auto out = test::named_output(path("none/out"));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().fault, Fault::Output);
  EXPECT_NE(out.error().what.find("No such file or directory"), std::string::npos);
}

}  // namespace
}  // namespace tacho::format
