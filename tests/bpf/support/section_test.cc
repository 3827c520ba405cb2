#include "bpf/support/section.h"

#include <gtest/gtest.h>

namespace tacho::bpf {
namespace {

TEST(Section, KnowsLibbpfsSpellings) {
  const struct {
    std::string_view name;
    Hook hook;
    std::string_view target;
  } cases[] = {
      {"tracepoint/syscalls/sys_enter_openat", Hook::Tracepoint, "syscalls/sys_enter_openat"},
      {"tp/block/block_rq_issue", Hook::Tracepoint, "block/block_rq_issue"},
      {"raw_tp/sys_enter", Hook::RawTracepoint, "sys_enter"},
      {"raw_tracepoint/sys_enter", Hook::RawTracepoint, "sys_enter"},
      {"tp_btf/sched_switch", Hook::BtfTracepoint, "sched_switch"},
      {"kprobe/vfs_read+0x4", Hook::Kprobe, "vfs_read+0x4"},
      {"kretprobe/vfs_read", Hook::Kprobe, "vfs_read"},
      {"kprobe.multi/vfs_*", Hook::KprobeMulti, "vfs_*"},
      {"uprobe//bin/bash:readline", Hook::Uprobe, "/bin/bash:readline"},
      {"uretprobe/libc.so.6:malloc", Hook::Uprobe, "libc.so.6:malloc"},
      {"fentry/vfs_read", Hook::Function, "vfs_read"},
      {"fexit.s/vfs_read", Hook::Function, "vfs_read"},
      {"perf_event", Hook::PerfEvent, ""},
      {"xdp", Hook::Other, ""},
      {"iter/task", Hook::Iterator, "task"},
      {"syscall", Hook::AtEnd, ""},
      {"uprobe.multi", Hook::Functions, ""},
      {"uretprobe.multi/$lib:malloc,calloc", Hook::Functions, "malloc,calloc"},
  };
  for (const auto& each : cases) {
    const auto section = parse_section(each.name);
    ASSERT_TRUE(section) << each.name;
    EXPECT_EQ(section->hook, each.hook) << each.name;
    EXPECT_EQ(section->target, each.target) << each.name;
    EXPECT_EQ(section->spelling, Spelling::Libbpf) << each.name;
  }
}

TEST(Section, AnOptionalProgramHooksTheSamePlace) {
  const auto section = parse_section("?tracepoint/syscalls/sys_enter_openat");
  ASSERT_TRUE(section);
  EXPECT_EQ(section->hook, Hook::Tracepoint);
  EXPECT_EQ(section->target, "syscalls/sys_enter_openat");
}

TEST(Section, PerfsOldTracepointSpellingMeansTheSameTracepoint) {
  const auto section = parse_section("syscalls:sys_enter_openat");
  ASSERT_TRUE(section);
  EXPECT_EQ(section->hook, Hook::Tracepoint);
  EXPECT_EQ(section->target, "syscalls/sys_enter_openat");
  EXPECT_EQ(section->spelling, Spelling::Perf);
}

TEST(Section, PerfsOldProbeDefinitionsNameTheSpellingToWrite) {
  const struct {
    std::string_view definition, instead;
  } cases[] = {
      {"func=do_sys_open filename mode", "SEC(\"kprobe/do_sys_open\")"},
      {"func=vfs_read%return $retval", "SEC(\"kretprobe/vfs_read\")"},
      {"lock_page=__lock_page page->flags", "SEC(\"kprobe/__lock_page\")"},
      {"exec=/lib/libc.so.6\nalloc=malloc", "SEC(\"uprobe//lib/libc.so.6:malloc\")"},
      {"exec=/lib/libc.so.6;alloc=malloc%return", "SEC(\"uretprobe//lib/libc.so.6:malloc\")"},
      {"module=ext4;start=ext4_sync_file", "SEC(\"kprobe/ext4_sync_file\")"},
  };
  for (const auto& each : cases) {
    const auto section = parse_section(each.definition);
    ASSERT_FALSE(section) << each.definition;
    EXPECT_NE(section.error().what.find(each.instead), std::string::npos) << section.error().what;
  }
}

TEST(Section, ASectionWithoutATargetShowsAnExample) {
  for (const std::string_view name : {"kprobe", "tracepoint", "tracepoint/syscalls", "tp_btf/", "uprobe"}) {
    const auto section = parse_section(name);
    ASSERT_FALSE(section) << name;
    EXPECT_NE(section.error().what.find("write for example SEC(\""), std::string::npos)
        << section.error().what;
  }
}

TEST(Section, AnythingAtAllIsParsedWithoutHarm) {
  for (const std::string_view name :
       {"", "?", "/", ":", "a:", ":a", "=", "a=", "=a", "exec=", ";=;", "a:b:c", "/=:"})
    (void)parse_section(name);
  EXPECT_EQ(parse_section("a:b:c")->hook, Hook::Other);
}

}  // namespace
}  // namespace tacho::bpf
