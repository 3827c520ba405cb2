#include "record/events/cgroup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace tacho::record {
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
  EXPECT_NE(refusal("nginx.service").find("names like it: /system.slice/nginx.service"), std::string::npos)
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
}  // namespace tacho::record
