#include "bpf/attach/raw_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "format/base/file.h"

namespace tacho::bpf {

namespace {

format::Fd opened(const char* path) { return format::Fd(::open(path, O_RDONLY | O_CLOEXEC)); }

TEST(RunProgram, AnIteratorIsReadToItsEnd) {
  const auto now = std::chrono::steady_clock::now();
  EXPECT_TRUE(read_iterator(opened("/dev/null").get(), now)) << "it ended by itself";
  EXPECT_TRUE(read_iterator(opened("/proc/self/status").get(), now + std::chrono::minutes(1)));
  const auto wrong = read_iterator(opened("/proc").get(), now + std::chrono::minutes(1));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, EISDIR);
}

TEST(RunProgram, AnIteratorWithoutEndIsLeftInTime) {
  const auto done = read_iterator(opened("/dev/zero").get(),
                                  std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ETIMEDOUT);
  EXPECT_NE(done.error().what.find("did not end in time"), std::string::npos) << done.error().what;
}

}  // namespace

}  // namespace tacho::bpf
