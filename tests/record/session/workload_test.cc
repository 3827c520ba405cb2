#include "record/session/workload.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

namespace tacho::record {
namespace {

std::optional<int> status_within_a_second(Workload& workload) {
  for (int i = 0; i < 100; ++i) {
    if (const auto status = workload.status()) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return std::nullopt;
}

TEST(Workload, GivesTheCommandsStatus) {
  auto workload = Workload::create({"sh", "-c", "exit 7"});
  ASSERT_TRUE(workload);
  EXPECT_FALSE(workload->status()) << "it waits until it is let go";
  ASSERT_TRUE(workload->start([] { return false; }));
  EXPECT_EQ(status_within_a_second(*workload), 7);
}

TEST(Workload, ASignalIsAStatusAbove128) {
  auto workload = Workload::create({"sleep", "10"});
  ASSERT_TRUE(workload);
  ASSERT_TRUE(workload->start([] { return false; }));
  workload->send(SIGTERM);
  EXPECT_EQ(status_within_a_second(*workload), 128 + SIGTERM);
}

TEST(Workload, AnUnknownCommandIsFoundOutBeforeAnythingRuns) {
  const auto workload = Workload::create({"no-such-command-here"});
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().fault, Fault::Use);
  EXPECT_FALSE(Workload::create({"/etc/passwd"})) << "a file that is no program";
}

TEST(Workload, OneThatWasNeverStartedLeavesNoChild) {
  pid_t pid = 0;
  {
    auto workload = Workload::create({"sleep", "10"});
    ASSERT_TRUE(workload);
    pid = workload->pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

}  // namespace
}  // namespace tacho::record
