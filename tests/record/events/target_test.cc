#include "record/events/target.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

TEST(Target, CpuListsAreSortedAndEachCpuIsOnce) {
  const auto cpus = parse_cpu_list("6,0-3,2");
  ASSERT_TRUE(cpus);
  EXPECT_EQ(*cpus, (std::vector<int>{0, 1, 2, 3, 6}));
}

TEST(Target, WrongListsAreRefused) {
  for (const char* text : {"", "a", "1-", "3-1", "1,,2", "0-99999999", "-1", "1 2"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
  for (const char* text : {"", "0", "x", "1,", "99999999999"}) EXPECT_FALSE(parse_id_list(text)) << text;
}

Target target_of(Watch watch, std::vector<int> ids) {
  Target target;
  target.watch = watch;
  target.ids = std::move(ids);
  return target;
}
TargetOptions everything() {
  TargetOptions options;
  options.all_cpus = true;
  return options;
}
TargetOptions process_one() {
  TargetOptions options;
  options.processes = {1};
  return options;
}

TEST(Target, WithoutOptionsTheCommandIsWatchedOrElseTheSystem) {
  EXPECT_EQ(choose_target({}, true)->watch, Watch::Command);
  EXPECT_EQ(choose_target({}, false)->watch, Watch::System);
  EXPECT_EQ(choose_target(everything(), true)->watch, Watch::System);
  EXPECT_EQ(choose_target(process_one(), true)->watch, Watch::Processes);
}

TEST(Target, OptionsThatExcludeEachOtherAreNamed) {
  TargetOptions both = process_one();
  both.all_cpus = true;
  const auto target = choose_target(both, false);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().what, "-a and -p exclude each other");
  TargetOptions twice = process_one();
  twice.threads = {1};
  EXPECT_FALSE(choose_target(twice, false));
}

TEST(Target, CgroupsAreOfTheWholeSystemAndThreadsOfTheOthers) {
  TargetOptions groups;
  groups.cgroups = {"a", "b"};
  EXPECT_EQ(choose_target(groups, true)->watch, Watch::System);
  EXPECT_EQ(choose_target(groups, true)->cgroups, groups.cgroups);
  groups.user = 0;
  EXPECT_EQ(choose_target(groups, false).error().what, "-G and -u exclude each other");
  TargetOptions alone;
  alone.per_thread = true;
  EXPECT_FALSE(choose_target(alone, false)) << "whose threads?";
  ASSERT_TRUE(choose_target(alone, true));
  EXPECT_FALSE(choose_target(alone, true)->inherit) << "the kernel has no ring for threads to come";
  alone.cpus = {1};
  EXPECT_EQ(choose_target(alone, true).error().what, "-C and --per-thread exclude each other");
}

TEST(Target, UsersHaveNamesOrNumbers) {
  EXPECT_EQ(*parse_user("root"), 0u);
  EXPECT_EQ(*parse_user("4242"), 4242u);
  for (const char* text : {"", "no-such-user", "-1", "4294967295", "42x"})
    EXPECT_FALSE(parse_user(text)) << text;
}

TEST(Target, ThreadsOfOurselvesAreFound) {
  const auto tasks = tasks_of(target_of(Watch::Processes, {static_cast<int>(getpid())}));
  ASSERT_TRUE(tasks);
  EXPECT_EQ(tasks->threads.front(), getpid());
  EXPECT_EQ(tasks->processes, std::vector<int>{static_cast<int>(getpid())});
  EXPECT_FALSE(tasks_of(target_of(Watch::Processes, {1 << 30})));
  EXPECT_TRUE(tasks_of(target_of(Watch::System, {})));
}

// A /proc of process 42 with the threads 42, 43 and 44, and of process 50 with one.
class TargetTasksTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-target-XXXXXX").string();
    root = mkdtemp(pattern.data());
    for (const int thread : {42, 43, 44}) add(thread, 42);
    add(50, 50);
  }
  void TearDown() override { fs::remove_all(root); }
  void add(int thread, int process, int user = 0) {
    fs::create_directories(root / std::to_string(process) / "task" / std::to_string(thread));
    fs::create_directories(root / std::to_string(thread));
    std::ofstream(root / std::to_string(thread) / "status")
        << "Name:\tworker\nTgid:\t" << process << "\nPid:\t" << thread << "\nUid:\t0\t" << user << "\t0\t0\n";
  }
  Result<TargetTasks> tasks(Watch watch, std::vector<int> ids) const {
    return tasks_of(target_of(watch, std::move(ids)), root.string());
  }
  fs::path root;
};

TEST_F(TargetTasksTest, AThreadIsWatchedAloneAndItsProcessDescribed) {
  const auto found = tasks(Watch::Threads, {44, 43, 50});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->threads, (std::vector<int>{44, 43, 50}));
  EXPECT_EQ(found->processes, (std::vector<int>{42, 50}));
}

TEST_F(TargetTasksTest, AProcessMayBeNamedByAnyOfItsThreads) {
  const auto found = tasks(Watch::Processes, {43, 42, 44});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->threads, (std::vector<int>{42, 43, 44})) << "each once";
  EXPECT_EQ(found->processes, std::vector<int>{42});
}

TEST_F(TargetTasksTest, WhatIsGoneRefusesOnlyWhenNothingIsLeft) {
  const auto found = tasks(Watch::Threads, {7, 43});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->threads, std::vector<int>{43});
  EXPECT_EQ(found->gone, std::vector<int>{7});
  const auto nothing = tasks(Watch::Processes, {7, 8});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().fault, Fault::Use);
}

TEST_F(TargetTasksTest, AUserIsWhoTheProcessActsAs) {
  add(60, 60, 1000);
  add(61, 61, 10001);
  Target target = target_of(Watch::Processes, {});
  target.user = 1000;
  const auto found = tasks_of(target, root.string());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->threads, std::vector<int>{60});
  target.user = 77;
  const auto nobody = tasks_of(target, root.string());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().what, "-u: user 77 has no process now");
}

}  // namespace
}  // namespace tacho::record
