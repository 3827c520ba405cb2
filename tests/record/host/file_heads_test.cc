// Files that are read, and files that never answer.
#include "record/host/file_heads.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>

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
    // The thread that asks may begin when its patience is over already.
    while (*asked < 5 + 2 && steady_clock::now() - begin < std::chrono::seconds(20))
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(*asked, 5 + 2);
    EXPECT_FALSE(heads.answers({{"/", "/network/c"}}, kNetwork));
  }
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(20)) << "it waits for ever";
  answer.set_value();
}

TEST(FileHeads, ADiskIsSlowWhereANetworkHangs) {
  EXPECT_EQ(FileHeads::place_of(8, 1, "/srv/file", "/proc/self"), "/srv/file");
  EXPECT_EQ(FileHeads::place_of(0, 50, "/srv/file", "/proc/self"), "0:50");
  const std::string folder = testing::TempDir() + "tacho_mounts";
  ASSERT_TRUE(mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST);
  std::ofstream(folder + "/mountinfo") << "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                          "21 20 0:31 / /net/a\\040b rw - nfs host:/x rw\n"
                                          "22 20 0:32 / /net/c rw - nfs host:/y rw\n"
                                          "23 20 0:33 / /net/c rw - nfs host:/z rw\n";
  EXPECT_EQ(FileHeads::place_of(0, 0, "/net/a b/lib/x", folder), "0:31");
  EXPECT_EQ(FileHeads::place_of(0, 0, "/net/c/x", folder), "0:33") << "the one that lies above";
  EXPECT_EQ(FileHeads::place_of(0, 0, "/net/cd/x", folder), "/net/cd/x");
}

// Of a disk every file is tried, until so many threads wait that the rest of the program would suffer.
TEST(FileHeads, FewThreadsAreLeftBehind) {
  std::promise<void> answer;
  const auto answered = answer.get_future().share();
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const auto reader = [answered, asked](const ForeignPath&) -> FileHeads::Bytes {
    ++*asked;
    answered.wait();
    return std::nullopt;
  };
  FileHeads heads(milliseconds(10), reader), others(milliseconds(10), reader);
  for (int file = 0; file < 40; ++file) {
    const std::string name = "/disk/" + std::to_string(file);
    EXPECT_FALSE((file % 2 == 0 ? heads : others).answers({{"/", name}}, name));
  }
  EXPECT_LE(*asked, 16);
  answer.set_value();
  // They end, and files are read again.
  FileHeads later(std::chrono::seconds(30));
  const auto limit = steady_clock::now() + std::chrono::seconds(30);
  while (!later.head_of({{"", "/proc/self/exe"}}, "/proc/self/exe") && steady_clock::now() < limit)
    std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(later.head_of({{"", "/proc/self/exe"}}, "/proc/self/exe"));
}

}  // namespace
}  // namespace tacho::record
