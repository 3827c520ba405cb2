// Files that are read, and files that never answer.
#include "record/host/file_heads.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>

namespace tacho::record {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
constexpr const char *kDisk = "8:1", *kNetwork = "0:50";

TEST(FileHeads, TheFirstPathThatIsTheFileIsRead) {
  struct stat info {};
  ASSERT_EQ(stat("/proc/self/exe", &info), 0);
  FileHeads heads;
  const auto head = heads.head_of({{"/", "/nowhere", info.st_ino},
                                   {"/", "/etc/passwd", info.st_ino},
                                   {"", "/proc/self/exe", info.st_ino}},
                                  kDisk);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->at(1), std::byte{'E'});
  EXPECT_FALSE(heads.head_of({{"", "/proc/self/exe", info.st_ino + 1}}, kDisk)) << "another file";
  EXPECT_FALSE(heads.head_of({}, kDisk));
  EXPECT_TRUE(heads.answers({{"/", "/nowhere"}}, kDisk)) << "it is not there, for sure";
}

TEST(FileHeads, AFileThatNeverAnswersCostsItsPatienceAndADeviceTwiceThat) {
  std::promise<void> answer;
  const auto answered = answer.get_future().share();
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const auto reader = [answered, asked](const ForeignPath& path) -> FileHeads::Bytes {
    ++*asked;
    if (path.path.starts_with("/network")) answered.wait();
    return std::vector<std::byte>(1);
  };
  const auto begin = steady_clock::now();
  {
    FileHeads heads(milliseconds(50), reader);
    for (int i = 0; i < 5; ++i) {
      EXPECT_FALSE(heads.head_of({{"/", "/network/a"}}, kNetwork));
      EXPECT_TRUE(FileHeads(std::chrono::seconds(30), reader).head_of({{"/", "/disk/b"}}, kDisk))
          << "others answer";
    }
    EXPECT_EQ(*asked, 5 + 2);
    EXPECT_FALSE(heads.answers({{"/", "/network/c"}}, kNetwork));
  }
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(20)) << "it waits for ever";
  answer.set_value();
}

}  // namespace
}  // namespace tacho::record
