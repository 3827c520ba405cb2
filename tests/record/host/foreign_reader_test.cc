// Files and memory of other processes, read by children that can be given up.
#include "record/host/foreign_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tacho::record {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

Result<Bytes> own_pid(format::Bytes) {
  const pid_t own = ::getpid();
  const auto* const bytes = reinterpret_cast<const std::byte*>(&own);
  return Bytes(bytes, bytes + sizeof own);
}
// As a read of a file system that does not answer: only the end of the machine, or SIGKILL here, ends it.
Result<Bytes> wait_for_ever(format::Bytes) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  for (;;) ::pause();
}
Result<Bytes> count_descriptors(format::Bytes) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.path().empty() ? 0 : 1;
  return Bytes(count);
}
Result<Bytes> die(format::Bytes) { ::_exit(3); }
Result<Bytes> be_large(format::Bytes) { return Bytes(5'000'000, std::byte{7}); }

pid_t number_in(const Result<Bytes>& bytes) {
  pid_t process = 0;
  if (bytes && bytes->size() == sizeof process) std::memcpy(&process, bytes->data(), sizeof process);
  return process;
}

TEST(ForeignReader, AFileIsReadInAChild) {
  const auto reader = ForeignReader::start();
  ASSERT_EQ(reader->failure(), "");
  auto file = reader->open_file({"", "/proc/self/exe"}, "exe");  // of the child: it is this program
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_EQ(file->target(), std::filesystem::read_symlink("/proc/self/exe"));
  struct stat info {};
  ASSERT_EQ(::stat("/proc/self/exe", &info), 0);
  EXPECT_EQ(file->status().st_ino, info.st_ino);
  const auto bytes = file->read_bytes(1, 3);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(format::as_text(*bytes), "ELF");
  const auto all = file->read_bytes(0, 1 << 20);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), std::min<std::size_t>(1 << 20, static_cast<std::size_t>(info.st_size)));
  const auto end = file->read_bytes(static_cast<std::uint64_t>(info.st_size), 10);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->empty());
  const auto none = reader->open_file({"/", "/nowhere"}, "nowhere");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ENOENT);
  EXPECT_TRUE(reader->silent().empty());
}

TEST(ForeignReader, APinnedFileCanBeReadAfterItsEnd) {
  const auto reader = ForeignReader::start();
  const std::string path = testing::TempDir() + "pinned";
  ASSERT_EQ(::close(::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600)), 0);
  format::Fd pin;
  {
    auto file = reader->open_file({"/", path}, path);
    ASSERT_TRUE(file) << file.error().what;
    auto got = file->pin();
    ASSERT_TRUE(got) << got.error().what;
    pin = std::move(*got);
  }
  ::unlink(path.c_str());
  EXPECT_NE(::fcntl(pin.get(), F_GETFL) & O_PATH, 0) << "closing it could wait for its file system";
  const format::Fd again(::open(("/proc/self/fd/" + std::to_string(pin.get())).c_str(), O_RDONLY));
  EXPECT_TRUE(again);
}

TEST(ForeignReader, MemoryAndTextsOfProcessesAreRead) {
  const auto reader = ForeignReader::start();
  const std::string maps = reader->text_of("/proc/" + std::to_string(::getpid()) + "/maps");
  EXPECT_NE(maps.find("[stack]"), std::string::npos);
  EXPECT_EQ(reader->text_of("/proc/none/maps"), "");
  const auto none = reader->memory_of(static_cast<std::uint32_t>(::getpid()), 16, 8);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().code, 0);
}

TEST(ForeignReader, ChildrenInheritNothing) {
  const format::Fd held(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  const auto reader = ForeignReader::start();
  const auto count = reader->run_work(count_descriptors, {}, "descriptors", "descriptors");
  ASSERT_TRUE(count);
  EXPECT_EQ(count->size(), 5u) << "three of /dev/null, its socket, and the folder that is read";
}

TEST(ForeignReader, LargeAnswersComeWhole) {
  const auto answer = ForeignReader::start()->run_work(be_large, {}, "large", "large");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->size(), 5'000'000u);
}

TEST(ForeignReader, WhatDoesNotAnswerIsGivenUpAndNotAskedAgain) {
  const auto reader = ForeignReader::start(milliseconds(50));
  const pid_t first = number_in(reader->run_work(own_pid, {}, "own", "own"));
  EXPECT_TRUE(reader->is_own(first));
  const auto begin = steady_clock::now();
  const auto silent = reader->run_work(wait_for_ever, {}, "hung", "/mnt/file");
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ETIMEDOUT);
  EXPECT_EQ(silent.error().what, "/mnt/file does not answer");
  EXPECT_GE(steady_clock::now() - begin, milliseconds(50));
  const auto second = number_in(reader->run_work(own_pid, {}, "own", "own"));
  EXPECT_NE(second, 0);
  EXPECT_NE(second, first) << "the first child still waits";
  const auto again = reader->run_work(own_pid, {}, "hung", "/mnt/file");
  ASSERT_FALSE(again) << "it was asked again";
  EXPECT_EQ(again.error().code, ETIMEDOUT);
  EXPECT_EQ(reader->silent(), std::vector<std::string>{"/mnt/file"});
}

TEST(ForeignReader, ManyThatDoNotAnswerCostLittleMore) {
  const auto reader = ForeignReader::start(milliseconds(1500));
  const auto begin = steady_clock::now();
  for (int i = 0; i < 30; ++i) {
    const std::string name = "hung" + std::to_string(i);
    EXPECT_FALSE(reader->run_work(wait_for_ever, {}, name, name));
  }
  EXPECT_LT(steady_clock::now() - begin, milliseconds(30'000)) << "45 s if each took its time";
  EXPECT_NE(number_in(reader->run_work(own_pid, {}, "own", "own")), 0) << "others are read";
}

TEST(ForeignReader, AChildThatIsStoppedIsGivenUp) {
  const auto reader = ForeignReader::start(milliseconds(50));
  const pid_t child = number_in(reader->run_work(own_pid, {}, "own", "own"));
  ASSERT_GT(child, 0);
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  EXPECT_FALSE(reader->run_work(own_pid, {}, "stopped", "stopped"));
  const pid_t other = number_in(reader->run_work(own_pid, {}, "own", "own"));
  EXPECT_NE(other, child);
}

TEST(ForeignReader, AChildThatDiesIsReplaced) {
  const auto reader = ForeignReader::start();
  const auto died = reader->run_work(die, {}, "deadly", "deadly");
  ASSERT_FALSE(died);
  EXPECT_EQ(died.error().code, EIO);
  EXPECT_NE(number_in(reader->run_work(own_pid, {}, "own", "own")), 0);
  EXPECT_TRUE(reader->silent().empty());
}

TEST(ForeignReader, ItsChildrenEndWithIt) {
  pid_t child = 0;
  {
    const auto reader = ForeignReader::start();
    child = number_in(reader->run_work(own_pid, {}, "own", "own"));
  }
  ASSERT_GT(child, 0);
  const auto limit = steady_clock::now() + std::chrono::seconds(20);
  while (::kill(child, 0) == 0 && steady_clock::now() < limit) (void)::poll(nullptr, 0, 5);
  EXPECT_NE(::kill(child, 0), 0);
}

}  // namespace
}  // namespace tacho::record
