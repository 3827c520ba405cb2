#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "format/base/file.h"
#include "record/host/host.h"

namespace tacho::record {
namespace {

constexpr Capabilities kPerfmon = Capabilities{1} << 38;
constexpr Capabilities kBpf = Capabilities{1} << 39;

// A field of /proc/self/status, a number in hexadecimal.
Capabilities status_field(const std::string& name) {
  const auto bytes = format::read_file("/proc/self/status");
  const std::string status(format::as_text(*bytes));
  return std::stoull(status.substr(status.find("\n" + name + ":") + name.size() + 2), nullptr, 16);
}

// What a child says that gave its rights back: rights are given back for good.
template <class Check>
bool holds_in_child(Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Rights, OfAPlainRecordingNothingIsNeededLater) {
  EXPECT_EQ(rights_for({}), 0U);
  EXPECT_EQ(names_of(rights_for({})), "none");
}

TEST(Rights, EachKindOfLaterWorkKeepsWhatItNeeds) {
  EXPECT_EQ(names_of(rights_for({.signals_command = true})), "cap_kill");
  EXPECT_EQ(rights_for({.has_objects = true}), kBpf);
  EXPECT_EQ(names_of(rights_for({.lists_programs = true})), "cap_sys_admin, cap_perfmon");
  EXPECT_EQ(names_of(rights_for({.reopens_cpus = true})), "cap_perfmon");
  EXPECT_EQ(names_of(rights_for({.describes_again = true})),
            "cap_dac_read_search, cap_sys_ptrace, cap_sys_admin, cap_syslog, cap_perfmon, cap_bpf");
  EXPECT_EQ(rights_for({.describes_again = true, .lists_programs = true}),
            rights_for({.describes_again = true}));
}

TEST(Rights, WhatIsDroppedIsGoneFromEverySet) {
  EXPECT_TRUE(holds_in_child([] {
    const auto left = drop_rights({}, "");
    return left && *left == 0 && status_field("CapEff") == 0 && status_field("CapPrm") == 0 &&
           status_field("CapInh") == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  }));
}

TEST(Rights, NoUserGetsMoreThanHeHad) {
  EXPECT_TRUE(holds_in_child([] {
    const Capabilities before = status_field("CapPrm");
    const auto left = drop_rights({.describes_again = true, .signals_command = true}, "");
    return left && (*left & ~before) == 0 && status_field("CapEff") == *left;
  }));
}

TEST(Rights, RootLosesTheBoundingSetToo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_TRUE(holds_in_child([] {
    const auto left = drop_rights({.signals_command = true}, "/");
    return left && names_of(*left) == "cap_kill" && status_field("CapBnd") == *left;
  }));
}

TEST(Rights, AFolderThatTheRestMayNotWriteKeepsItsRight) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  std::string folder = testing::TempDir() + "rights-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(holds_in_child([&] {
    const auto left = drop_rights({}, folder);
    return left && names_of(*left) == "cap_dac_override" && access(folder.c_str(), W_OK) == 0;
  }));
  rmdir(folder.c_str());
}

}  // namespace
}  // namespace tacho::record
