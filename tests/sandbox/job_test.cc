#include "sandbox/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace tacho::sandbox {
namespace {

constexpr int kRounds = 5000;
constexpr std::chrono::seconds kPatience(60);

bool is_blocked(int signal) {
  sigset_t now;
  sigemptyset(&now);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

// A child that does nothing, and ends with whoever waits for it.
pid_t start_child(const int (&ends)[2]) {
  const pid_t child = ::fork();
  if (child != 0) {
    (void)::setpgid(child, child);
    return child;
  }
  (void)::setpgid(0, 0);
  ::close(ends[1]);
  char nothing = 0;
  (void)!::read(ends[0], &nothing, 1);
  ::_exit(0);
}

[[noreturn]] void end_many() {
  (void)::setpgid(0, 0);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(1);
  const pid_t child = start_child(ends);
  ::alarm(static_cast<unsigned>(2 * kPatience.count()));
  for (int round = 0; round < kRounds; ++round) JobControl stops(child);
  ::kill(child, SIGKILL);
  ::_exit(is_blocked(SIGTSTP) ? 1 : 0);
}

TEST(JobControl, EndsWhateverSignalsComeThen) {
  const pid_t program = ::fork();
  if (program == 0) end_many();
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  int status = -1;
  pid_t ended = 0;
  for (int turn = 0; ended == 0 && std::chrono::steady_clock::now() < limit; ++turn) {
    // Later ones would wake what hangs.
    if (turn < kRounds) ::kill(program, SIGTSTP);
    ::kill(program, SIGCONT);
    ended = ::waitpid(program, &status, WNOHANG);
  }
  if (ended == 0) {
    ::kill(program, SIGKILL);
    ::waitpid(program, nullptr, 0);
  }
  ASSERT_EQ(ended, program) << "it hangs";
  EXPECT_EQ(status, 0);
}

TEST(JobControl, ChangesNoOtherSignal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  {
    const JobControl stops(::getpid());
    EXPECT_TRUE(is_blocked(SIGTSTP));
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
  EXPECT_FALSE(is_blocked(SIGTERM));
  EXPECT_FALSE(is_blocked(SIGTSTP));
}

}  // namespace
}  // namespace tacho::sandbox
