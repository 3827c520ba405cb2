// Whom a recording takes, and whom it leaves alone, on this kernel.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "live_test_case.h"

namespace tacho::live {
namespace {

class Targets : public LiveTest {
 protected:
  // Calls getppid for about 20 s, unless the test is over before.
  Program load() { return Program::start({getppid_load(), "20000", "1", "1000"}, folder); }
  static bool is_of(const CaptureSeen& seen, const Program& program) {
    const auto pid = static_cast<std::uint32_t>(program.pid());
    return !seen.samples.empty() &&
           std::ranges::all_of(seen.samples, [pid](const SampleSeen& sample) { return sample.pid == pid; });
  }
};

TEST_F(Targets, AnEmptyCaptureOfASleeperSaysWhy) {
  const Program sleeper = Program::start({"sleep", "60"}, folder);
  const std::string pid = std::to_string(sleeper.pid());
  usleep(200'000);  // until it sleeps
  ASSERT_EQ(record({"-p", pid, "-e", "cpu-clock", "--", "true"}), 0) << errors;
  EXPECT_TRUE(said("No event happened: process " + pid + " slept, or ran less than one period of cpu-clock"))
      << errors;
  ASSERT_EQ(record({"-p", pid, "-e", kGetppid, "--", "true"}), 0) << errors;
  EXPECT_TRUE(said("No event happened: " + kGetppid + " did not come in process " + pid)) << errors;
  ASSERT_EQ(record({"-e", kGetppid, "--", "true"}), 0) << errors;
  EXPECT_TRUE(said("No event happened: " + kGetppid + " did not come")) << errors;
  EXPECT_FALSE(said("in process")) << errors;
}

// A cgroup made by the test, with one below it.
class CgroupTargets : public Targets {
 protected:
  void SetUp() override {
    Targets::SetUp();
    if (IsSkipped()) return;
    std::ifstream mounts("/proc/self/mountinfo");
    std::string mount, line;
    while (std::getline(mounts, line)) {
      if (line.find(" - cgroup2 ") == std::string::npos) continue;
      std::istringstream fields(line);
      for (int i = 0; i < 5; ++i) fields >> mount;
    }
    if (mount.empty()) GTEST_SKIP() << "needs cgroups of version 2";
    name = "tacho-live-" + std::to_string(getpid());
    group = mount + "/" + name;
    std::error_code code;
    if (!std::filesystem::create_directories(group + "/below", code))
      GTEST_SKIP() << "needs to make cgroups: " << code.message();
  }
  void TearDown() override {
    loads.clear();
    if (!group.empty()) {
      rmdir((group + "/below").c_str());
      rmdir(group.c_str());
    }
    Targets::TearDown();
  }
  Program& load_in(const std::string& cgroup) {
    Program& program = loads.emplace_back(load());
    std::ofstream(cgroup + "/cgroup.procs") << program.pid() << std::flush;
    return program;
  }
  std::string name, group;
  std::vector<Program> loads;
};

TEST_F(CgroupTargets, ACgroupIsTakenWithThoseBelowItAndNothingElse) {
  loads.reserve(3);
  const Program& inside = load_in(group);
  const Program& below = load_in(group + "/below");
  loads.push_back(load());
  ASSERT_EQ(record({"-G", name, "-e", kGetppid, "sleep", "0.5"}), 0) << errors;
  const CaptureSeen seen = capture();
  std::size_t of_inside = 0, of_below = 0;
  for (const SampleSeen& sample : seen.samples) {
    of_inside += sample.pid == static_cast<std::uint32_t>(inside.pid()) ? 1 : 0;
    of_below += sample.pid == static_cast<std::uint32_t>(below.pid()) ? 1 : 0;
  }
  EXPECT_GT(of_inside, 0u);
  EXPECT_GT(of_below, 0u);
  EXPECT_EQ(of_inside + of_below, seen.samples.size());
  ASSERT_EQ(record({"-G", group + "/below", "-e", kGetppid, "sleep", "0.5"}), 0) << errors;
  EXPECT_TRUE(is_of(capture(), below));
}

TEST_F(CgroupTargets, EachEventMayHaveItsOwn) {
  loads.reserve(2);
  const Program& below = load_in(group + "/below");
  ASSERT_EQ(record({"-e", kGetppid + "," + kGetppid, "-G", name + "/below,", "sleep", "0.5"}), 0) << errors;
  EXPECT_FALSE(capture().samples.empty());
  ASSERT_EQ(record({"-e", kGetppid + ",dummy", "-G", name + "/below," + name, "sleep", "0.5"}), 0) << errors;
  EXPECT_TRUE(is_of(capture(), below));
  EXPECT_EQ(record({"-e", kGetppid, "-G", name + "," + name, "true"}), 1);
  EXPECT_TRUE(said("2 cgroups for 1 event;")) << errors;
}

TEST_F(CgroupTargets, AWrongNameIsAnsweredWithTheRightOne) {
  EXPECT_EQ(record({"-G", "nowhere/" + name, "-e", kGetppid, "true"}), 1);
  EXPECT_TRUE(said("similar names: /" + name)) << errors;
}

TEST_F(Targets, AUserIsAllHisProcesses) {
  if (std::system("setpriv --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs setpriv";
  const Program other = Program::start({"dd", "if=/dev/zero", "of=/dev/null", "bs=1"}, folder);
  const Program users =
      Program::start({"setpriv", "--reuid=54321", "dd", "if=/dev/zero", "of=/dev/null", "bs=1"}, folder);
  // Until dd runs as that user, there is nobody to watch.
  for (int i = 0; i < 100 && record({"-u", "54321", "-e", "syscalls:sys_enter_read", "sleep", "0.1"}) != 0;
       ++i)
    usleep(20'000);
  EXPECT_TRUE(is_of(capture(), users)) << errors;
  EXPECT_EQ(record({"-u", "54322", "true"}), 1);
  EXPECT_TRUE(said("user 54322 has no process now")) << errors;
}

TEST_F(Targets, PerThreadRingsTakeTheSame) {
  const Program watched = load();
  const Program other = load();
  ASSERT_EQ(
      record({"--per-thread", "-g", "-p", std::to_string(watched.pid()), "-e", kGetppid, "sleep", "0.5"}), 0)
      << errors;
  const CaptureSeen seen = capture();
  EXPECT_TRUE(is_of(seen, watched));
  EXPECT_EQ(seen.out_of_order, 0u);
  ASSERT_EQ(record({"--per-thread", "-e", kGetppid, getppid_load(), "70"}), 0) << errors;
  EXPECT_EQ(capture().count(kGetppid), 70u) << "a command from its first instruction on";
}

TEST_F(Targets, ChildrenAreLeftOutOnDemand) {
  const std::string two = getppid_load() + " 30; " + getppid_load() + " 40; true";
  ASSERT_EQ(record({"-e", kGetppid, "sh", "-c", two}), 0) << errors;
  EXPECT_GE(capture().count(kGetppid), 70u);
  ASSERT_EQ(record({"-i", "-e", kGetppid, "sh", "-c", two}), 0) << errors;
  EXPECT_LT(capture().count(kGetppid), 30u) << "the shell's own";
}

}  // namespace
}  // namespace tacho::live
