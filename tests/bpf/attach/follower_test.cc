#include "bpf/attach/follower.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/bpf/live_support.h"

namespace tacho::bpf {
namespace {

class FollowerLive : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) GTEST_SKIP() << "needs a kernel with BTF";
  }
};

// What the table says of a child after it did `work`.
template <class Work>
Followed state_of_child(Follower& follower, Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return follower.thread_state(child);
}

TEST_F(FollowerLive, ChildrenAndThreadsAreWhatTheirParentIs) {
  auto follower = Follower::create(Children::Followed);
  ASSERT_TRUE(follower) << follower.error().what;
  EXPECT_EQ(state_of_child(*follower, [] {}), Followed::No);
  follower->set_thread(::gettid(), Followed::Yes);
  EXPECT_EQ(state_of_child(*follower, [] {}), Followed::Yes);
  int thread = 0;
  std::thread([&thread] { thread = ::gettid(); }).join();
  EXPECT_EQ(follower->thread_state(thread), Followed::Yes);
}

TEST_F(FollowerLive, ThreadsUpToTheKernelsLimitHaveRoom) {
  auto follower = Follower::create(Children::Followed);
  ASSERT_TRUE(follower) << follower.error().what;
  constexpr int kLast = (1 << 22) - 1;
  follower->set_thread(kLast, Followed::Yes);
  EXPECT_EQ(follower->thread_state(kLast), Followed::Yes);
}

TEST_F(FollowerLive, ChildrenCanBeLeftOut) {
  auto follower = Follower::create(Children::Ignored);
  ASSERT_TRUE(follower) << follower.error().what;
  follower->set_thread(::gettid(), Followed::Yes);
  EXPECT_EQ(state_of_child(*follower, [] {}), Followed::No);
  EXPECT_EQ(follower->thread_state(::gettid()), Followed::Yes);
}

TEST_F(FollowerLive, FromItsExecOn) {
  auto follower = Follower::create(Children::Followed);
  ASSERT_TRUE(follower) << follower.error().what;
  follower->set_thread(::gettid(), Followed::FromExec);
  EXPECT_EQ(state_of_child(*follower, [] {}), Followed::FromExec);
  EXPECT_EQ(state_of_child(*follower, [] { ::execl("/bin/true", "true", nullptr); }), Followed::Yes);
}

TEST_F(FollowerLive, NumbersThatNoThreadHasAreRefused) {
  auto follower = Follower::create(Children::Followed);
  ASSERT_TRUE(follower) << follower.error().what;
  follower->set_thread(-1, Followed::Yes);
  follower->set_thread(1 << 30, Followed::Yes);
  EXPECT_EQ(follower->thread_state(-1), Followed::No);
  EXPECT_EQ(follower->thread_state(1 << 30), Followed::No);
}

}  // namespace
}  // namespace tacho::bpf
