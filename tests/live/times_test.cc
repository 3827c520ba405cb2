// When samples are taken, and who decides that while a recording runs.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "format/base/file.h"
#include "live_test_case.h"

namespace tacho::live {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class Times : public LiveTest {
 protected:
  Program start(std::vector<std::string> words) {
    words.insert(words.begin(), tacho_record());
    return Program::start(words, folder);
  }
  static bool comes(const std::function<bool()>& what) {
    for (int i = 0; i < 500 && !what(); ++i) std::this_thread::sleep_for(milliseconds(20));
    return what();
  }
  static bool says(const Program& run, std::string_view text) {
    return comes([&] { return run.errors().find(text) != std::string::npos; });
  }
};

TEST_F(Times, ADurationEndsARecordingOfTheSystem) {
  const auto began = Clock::now();
  ASSERT_EQ(record({"-a", "-e", "dummy", "--duration", "0.4"}), 0) << errors;
  EXPECT_GE(Clock::now() - began, milliseconds(400));
  EXPECT_TRUE(said("Recording has begun")) << errors;
  EXPECT_TRUE(capture().is_closed);
}

TEST_F(Times, ADelayLeavesOutTheBeginning) {
  // 400 calls within some 5 ms, then rest, then 30.
  const std::string load = getppid_load() + " 400; sleep 2; exec " + getppid_load() + " 30";
  ASSERT_EQ(record({"-D", "1500", "-e", kGetppid, "sh", "-c", load}), 0) << errors;
  const CaptureSeen seen = capture();
  EXPECT_GE(seen.count(kGetppid), 30u);
  EXPECT_LT(seen.count(kGetppid), 400u) << errors;
}

TEST_F(Times, IntervalsEndTheRecordingThatNothingElseEnds) {
  const Program load = Program::start({getppid_load(), "100000", "1", "500"}, folder);
  const auto began = Clock::now();
  ASSERT_EQ(record({"-D", "0-200,400-600", "-p", std::to_string(load.pid()), "-e", kGetppid}), 0) << errors;
  EXPECT_GE(Clock::now() - began, milliseconds(600));
  EXPECT_FALSE(capture().samples.empty());
}

TEST_F(Times, Usr2EndsNothing) {
  Program run = start({"-a", "-e", "dummy"});
  ASSERT_TRUE(says(run, "Recording has begun"));
  run.send(SIGUSR2);
  ASSERT_TRUE(says(run, "SIGUSR2")) << run.errors();
  run.send(SIGUSR1);
  EXPECT_EQ(run.wait(), 0) << run.errors();
  EXPECT_TRUE(capture().is_closed);
}

class Commands : public Times {
 protected:
  void SetUp() override {
    Times::SetUp();
    if (IsSkipped()) return;
    for (const char* name : {"/ctl", "/ack"}) {
      const std::string path = folder + name;
      ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    }
    ctl = format::Fd(open((folder + "/ctl").c_str(), O_RDWR | O_CLOEXEC));
    ack = format::Fd(open((folder + "/ack").c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  }
  // The answer to a command.
  std::string ask(const std::string& command) const {
    const std::string line = command + "\n";
    EXPECT_EQ(write(ctl.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    std::string answer;
    while (!answer.ends_with('\n')) {
      pollfd news{ack.get(), POLLIN, 0};
      if (poll(&news, 1, 20'000) <= 0) return "no answer to " + command;
      char letter = 0;
      if (read(ack.get(), &letter, 1) == 1) answer += letter;
    }
    return answer;
  }
  format::Fd ctl, ack;
};

TEST_F(Commands, SamplesAreTakenBetweenEnableAndDisable) {
  const Program load = Program::start({getppid_load(), "100000", "1", "500"}, folder);
  Program run = start({"-D", "-1", "--control", "fifo:ctl,ack", "-p", std::to_string(load.pid()), "-e",
                       kGetppid, "-o", "c.data"});
  EXPECT_EQ(ask("ping"), "ack\n");
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_EQ(samples_in(folder + "/c.data"), 0u) << "nobody enabled anything";
  EXPECT_EQ(ask("enable"), "ack\n");
  EXPECT_TRUE(comes([&] { return samples_in(folder + "/c.data") > 0; })) << run.errors();
  EXPECT_EQ(ask("disable " + kGetppid), "ack\n");
  // What was taken before is written within half a second, on a busy machine later.
  std::size_t before = 0, taken = samples_in(folder + "/c.data");
  for (int round = 0; round < 4 && before != taken; ++round) {
    before = taken;
    std::this_thread::sleep_for(milliseconds(1000));
    taken = samples_in(folder + "/c.data");
  }
  EXPECT_EQ(ask("stop"), "ack\n");
  EXPECT_EQ(run.wait(), 0) << run.errors();
  EXPECT_EQ(capture("c.data").samples.size(), taken);
}

TEST_F(Commands, WhatCannotBeDoneIsAnswered) {
  Program run = start({"-a", "--control", "fifo:ctl,ack", "-e", "dummy"});
  EXPECT_EQ(ask("frobnicate").find("error: unknown command 'frobnicate'"), 0u);
  EXPECT_EQ(ask("enable no-such"), "error: there is no event 'no-such' here; there are: dummy\n");
  EXPECT_EQ(ask("evlist -v"), "ack\n");
  EXPECT_TRUE(says(run, "dummy: type=1, config=0x9")) << run.errors();
  EXPECT_EQ(ask("stop"), "ack\n");
  EXPECT_EQ(run.wait(), 0) << run.errors();
}

TEST_F(Commands, ASnapshotThatTheEndOvertakesIsAnswered) {
  Program run = start({"-a", "--switch-output", "--control", "fifo:ctl,ack", "-e", "dummy"});
  EXPECT_EQ(ask("ping"), "ack\n");
  EXPECT_EQ(ask("snapshot\nstop"), "ack\n");  // both are there at once
  EXPECT_EQ(ask("").substr(0, 3), "ack") << "the second one";
  EXPECT_EQ(run.wait(), 0) << run.errors();
}

TEST_F(Commands, StopIsTermForTheCommand) {
  Program run = start({"--control", "fifo:ctl,ack", "-e", "dummy", "sleep", "100"});
  EXPECT_EQ(ask("stop"), "ack\n");
  EXPECT_EQ(run.wait(), 128 + SIGTERM) << run.errors();
  EXPECT_TRUE(capture().is_closed);
}

}  // namespace
}  // namespace tacho::live
