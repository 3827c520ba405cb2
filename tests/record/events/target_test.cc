#include "record/events/target.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
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
  EXPECT_EQ(user_text(0), "root");
  EXPECT_EQ(user_text(4242), "4242");
  EXPECT_GE(users_of_processes().count(geteuid()), 1u) << "this process runs";
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

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSecondVersion =
    "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "33 24 0:28 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr std::string_view kBothVersions =
    "33 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n"
    "34 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 24 0:30 / /sys/fs/cgroup/perf\\040event rw - cgroup cgroup rw,net_cls,perf_event\n";

TEST(Cgroup, TheHierarchyIsTheOneThatPerfEventsGoBy) {
  EXPECT_EQ(cgroup_mount(kSecondVersion), "/sys/fs/cgroup");
  EXPECT_EQ(cgroup_mount(kBothVersions), "/sys/fs/cgroup/perf event");
  EXPECT_EQ(cgroup_mount(kBothVersions.substr(0, kBothVersions.find("\n35"))), "/sys/fs/cgroup/unified");
  for (const std::string_view damaged : {"", "\n\n", "33 24", "33 24 0:28 / /a rw - ", "a b c d e f g h"}) {
    EXPECT_EQ(cgroup_mount(damaged), "") << damaged;
  }
}

TEST(Cgroup, ListsMayHaveEmptyNames) {
  EXPECT_EQ(parse_cgroup_list("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(parse_cgroup_list("a,,b/c"), (std::vector<std::string>{"a", "", "b/c"}));
  EXPECT_EQ(parse_cgroup_list(","), (std::vector<std::string>{"", ""}));
}

class CgroupNames : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-cgroup-XXXXXX").string();
    mount = mkdtemp(pattern.data());
    for (const char* name : {"system.slice/nginx.service", "system.slice/cron.service", "user.slice"})
      fs::create_directories(fs::path(mount) / name);
  }
  void TearDown() override { fs::remove_all(mount); }
  std::string refusal(const std::string& name) const {
    const auto folder = open_cgroup(mount, name);
    EXPECT_FALSE(folder) << name;
    return folder ? "" : folder.error().what;
  }
  std::string mount;
};

TEST_F(CgroupNames, AWrongNameIsAnsweredWithThoseLikeIt) {
  EXPECT_NE(refusal("nginx.service").find("similar names: /system.slice/nginx.service"), std::string::npos)
      << "a name without its path";
  EXPECT_NE(refusal("user.slise").find("did you mean '/user.slice'"), std::string::npos);
  EXPECT_NE(refusal(".service/x").find("there is no cgroup"), std::string::npos);
}

TEST_F(CgroupNames, WhatIsNoCgroupIsRefused) {
  EXPECT_NE(refusal("user.slice").find("where cgroups are"), std::string::npos)
      << "a folder of another file system";
  EXPECT_NE(refusal("../..").find("where cgroups are"), std::string::npos);
}

}  // namespace

namespace {

namespace fs = std::filesystem;

const std::string kDocker(64, 'a');
const std::string kSibling = std::string(3, 'a') + std::string(61, 'b');
const std::string kCrio(64, 'c');

TEST(Container, TheNameOfACgroupSaysWhichItIs) {
  const std::pair<std::string, std::string> rows[] = {
      {"docker-" + kDocker + ".scope", kDocker},
      {"cri-containerd-" + kDocker + ".scope", kDocker},
      {"crio-" + kDocker + ".scope", kDocker},
      {"libpod-" + kDocker + ".scope", kDocker},
      {kDocker, kDocker},
      {"lxc.payload.web", "web"},
      {"machine-web\\x2d1.scope", "web-1"},
      {"systemd-nspawn@web.service", "web"},
      {"crio-conmon-" + kDocker + ".scope", ""},
      {"libpod-conmon-" + kDocker + ".scope", ""},
      {"session-3.scope", ""},
      {"docker-.scope", ""},
      {"docker.service", ""},
      {"nginx.service", ""},
      {"", ""},
  };
  for (const auto& [cgroup, id] : rows) EXPECT_EQ(container_of(cgroup), id) << cgroup;
}

TEST(Container, PodsAreKnownByTheirUid) {
  EXPECT_EQ(pod_of("kubepods-burstable-pod12ab34cd_56ef.slice"), "12ab34cd-56ef");
  EXPECT_EQ(pod_of("kubepods-pod12ab34cd_56ef.slice"), "12ab34cd-56ef");
  EXPECT_EQ(pod_of("pod12ab34cd-56ef"), "12ab34cd-56ef");
  EXPECT_EQ(pod_of("machine-libpod_pod_77aa.slice"), "77aa");
  EXPECT_EQ(pod_of("kubepods-burstable.slice"), "");
  EXPECT_EQ(pod_of("podman.service"), "") << "no uid";
  EXPECT_EQ(pod_of("system.slice"), "");
}

class Containers : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-cgroup-XXXXXX").string();
    mount = mkdtemp(pattern.data());
    for (const std::string& name :
         {"system.slice/docker-" + kDocker + ".scope/inner", "system.slice/docker-" + kSibling + ".scope",
          std::string("lxc/web"), std::string("user.slice"),
          "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice/crio-" + kCrio +
              ".scope"})
      fs::create_directories(fs::path(mount) / name);
  }
  void TearDown() override { fs::remove_all(mount); }
  std::string container(const std::string& name) const {
    const auto found = cgroup_of_container(mount, name);
    return found ? *found : "refused: " + found.error().what;
  }
  std::string mount;
};

TEST_F(Containers, AreListed) {
  const std::vector<std::string> all = containers_below(mount);
  for (const std::string& id : {kDocker, kSibling, std::string("web")})
    EXPECT_EQ(std::ranges::count(all, id), 1) << id;
  EXPECT_EQ(pods_below(mount), std::vector<std::string>{"12-ab"});
}

TEST_F(Containers, AreFoundByTheBeginOfTheirId) {
  EXPECT_EQ(container("aaaa"), "/system.slice/docker-" + kDocker + ".scope");
  EXPECT_EQ(container("aaab"), "/system.slice/docker-" + kSibling + ".scope");
  EXPECT_EQ(container(kDocker), "/system.slice/docker-" + kDocker + ".scope");
  EXPECT_EQ(container("web"), "/lxc/web");
  EXPECT_EQ(
      container("cc"),
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice/crio-" + kCrio + ".scope");
}

TEST_F(Containers, SeveralAreListedAndNoneIsToo) {
  const std::string several = container("aaa");
  EXPECT_NE(several.find("'aaa' is a prefix of 2 here"), std::string::npos) << several;
  EXPECT_NE(several.find(kSibling), std::string::npos) << several;
  const std::string none = container("nginx");
  EXPECT_NE(none.find("there is no container 'nginx'"), std::string::npos) << none;
  EXPECT_NE(none.find("web  (/lxc/web)"), std::string::npos) << none;
  EXPECT_NE(container("").find("the name is empty"), std::string::npos);
}

TEST_F(Containers, APodIsTheCgroupOfAllItsContainers) {
  const auto found = cgroup_of_pod(mount, "12-a");
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(*found, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice");
  EXPECT_FALSE(cgroup_of_pod(mount, "99"));
}

}  // namespace

}  // namespace tacho::record
