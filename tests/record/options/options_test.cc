#include "record/options/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::record {
namespace {

RecordOptions parsed(const std::vector<std::string>& arguments) {
  auto out = parse_options(arguments);
  EXPECT_TRUE(out) << (out ? "" : out.error().what);
  return out ? std::move(out->options) : RecordOptions{};
}

std::string refusal(const std::vector<std::string>& arguments) {
  const auto out = parse_options(arguments);
  EXPECT_FALSE(out);
  return out ? "" : out.error().what;
}

TEST(Options, TheCommandBeginsAtTheFirstWordAndKeepsItsOptions) {
  const auto options = parsed({"-g", "-e", "faults", "ls", "-a", "--", "-q"});
  EXPECT_EQ(options.command, (std::vector<std::string>{"ls", "-a", "--", "-q"}));
  EXPECT_EQ(options.sampling.stacks.method, CallGraph::Best);
  EXPECT_EQ(options.target.watch, Watch::Command);
  EXPECT_FALSE(options.quiet);
}

TEST(Options, WithoutEventsTheCpuClockIsRecorded) {
  const auto options = parsed({"-a"});
  ASSERT_EQ(options.events.size(), 1u);
  EXPECT_EQ(options.events[0].name, "cpu-clock");
  EXPECT_EQ(options.output, "perf.data");
  EXPECT_EQ(options.compression_level, 1);
}

TEST(Options, CompressionLevelIsAttachedAndZeroTurnsItOff) {
  EXPECT_EQ(parsed({"-z5", "-a"}).compression_level, 5);
  EXPECT_EQ(parsed({"-z", "-a"}).compression_level, 1);
  EXPECT_EQ(parsed({"-z0", "-a"}).compression_level, std::nullopt);
  EXPECT_EQ(parsed({"--compression-level=0"}).compression_level, std::nullopt);
}

TEST(Options, RingsAreGivenInPagesOrBytes) {
  EXPECT_EQ(parsed({"-m", "128"}).ring_pages, 128u);
  EXPECT_EQ(parsed({"-m2M"}).ring_bytes, 2u << 20);
  for (const char* text : {"0", "x", "2T", "64G", "1.5M", "-1", "99999999999"}) {
    EXPECT_NE(refusal({"-m", text}).find("-m"), std::string::npos) << text;
  }
}

TEST(Options, PerfsLongNamesAreKnown) {
  const auto options =
      parsed({"--event", "cs", "--all-cpus", "--call-graph", "fp", "--freq=99", "--output=x", "--quiet"});
  EXPECT_EQ(options.sampling.frequency, 99u);
  EXPECT_EQ(options.output, "x");
  EXPECT_TRUE(options.sampling.stacks.method == CallGraph::FramePointers && options.quiet);
}

TEST(Options, WhatDoesNotGoTogetherIsRefused) {
  EXPECT_EQ(refusal({"-F", "99", "-c", "1"}), "-F and -c exclude each other");
  EXPECT_NE(refusal({"-a", "-p", "1"}).find("exclude"), std::string::npos);
}

TEST(Options, ATooLargeRingComesWithTheLimit) {
  EXPECT_EQ(refusal({"-m", "9999999"}), "-m: '9999999' is too large: at most 1048576 pages");
  EXPECT_EQ(refusal({"-m", "64G"}), "-m: '64G' is too large: at most 4G");
  EXPECT_EQ(parsed({"-m", "auto,64M"}).ring_budget, std::uint64_t{64} << 20);
  EXPECT_GE(parsed({"-m", "auto"}).ring_budget.value_or(0), std::uint64_t{1} << 20);
  EXPECT_EQ(refusal({"-m", "auto,4K"}), "-m auto: a budget for all rings is 1M to 64G");
  EXPECT_NE(refusal({"-m", "auto,much"}).find("-m auto"), std::string::npos);
}

TEST(Options, TheVersionCanBeAskedFor) { EXPECT_TRUE(parsed({"--version"}).show_version); }

TEST(Options, WhatPerfHasAndWeLackSaysWhatToDo) {
  EXPECT_NE(refusal({"-S"}).find("--snapshot: processor traces"), std::string::npos);
  EXPECT_NE(refusal({"--kcore"}).find("the kernel's code is not copied"), std::string::npos);
}

TEST(Options, WhatSetsHowPerfWorksIsTakenWithAWord) {
  const auto taken = parsed({"--threads", "--affinity=cpu", "--aio=2", "--threads=core", "--", "true"});
  ASSERT_EQ(taken.notes.size(), 3u) << "each is printed once";
  EXPECT_TRUE(taken.notes[0].starts_with("--threads: no effect: one thread reads all rings"));
  EXPECT_EQ(taken.command, std::vector<std::string>{"true"});
}

TEST(Options, OnlyOneSideOfTheKernelCanBeChosen) {
  EXPECT_NE(refusal({"--all-user", "--all-kernel"}).find("exclude each other"), std::string::npos);
  EXPECT_NE(refusal({"--user-callchains", "--kernel-callchains"}).find("exclude each other"),
            std::string::npos);
}

TEST(Options, StacksComeByEachOfPerfsMethods) {
  EXPECT_EQ(parsed({"-g", "-a"}).sampling.stacks.method, CallGraph::Best);
  EXPECT_EQ(parsed({"-g", "--call-graph", "fp", "-a"}).sampling.stacks.method, CallGraph::FramePointers);
  EXPECT_EQ(parsed({"--call-graph", "dwarf", "-g", "-a"}).sampling.stacks.method, CallGraph::Dwarf)
      << "as perf has it";
  const StackOptions dwarf = parsed({"--call-graph", "dwarf,100", "-a"}).sampling.stacks;
  EXPECT_EQ(dwarf.method, CallGraph::Dwarf);
  EXPECT_EQ(dwarf.bytes, 104u) << "the kernel takes multiples of 8";
  EXPECT_EQ(parsed({"--call-graph", "fp,12", "-a"}).sampling.stacks.max_frames, 12u);
  EXPECT_EQ(parsed({"--max-stack", "7", "-g", "-a"}).sampling.stacks.max_frames, 7u);
  EXPECT_EQ(parsed({"--call-graph", "lbr", "-a"}).sampling.stacks.method, CallGraph::LastBranches);
  EXPECT_EQ(parsed({"--call-graph", "ehframe", "-a"}).sampling.stacks.method, CallGraph::Unwound);
  EXPECT_EQ(parsed({"--call-graph", "eh", "-a"}).sampling.stacks.method, CallGraph::Unwound)
      << "the old word";
  EXPECT_EQ(parsed({"--call-graph", "ehframe,1024", "-a"}).sampling.stacks.max_frames, 1024u);
  EXPECT_EQ(parsed({"--call-graph", "eh,1024", "-a"}).sampling.stacks.max_frames, 1024u);
  for (const char* text :
       {"eh,1025", "eh,0", "eh,", "dwarf,65529", "dwarf,0", "dwarf,", "dwarf,x", "lbr,1", "fp,0", "no", ""})
    EXPECT_NE(refusal({"--call-graph", text, "-a"}).find("--call-graph: '"), std::string::npos) << text;
}

TEST(Options, BranchFiltersHavePerfsNames) {
  EXPECT_EQ(parsed({"-b", "-a"}).sampling.branches, 8u);
  EXPECT_EQ(parsed({"-j", "any_call,k", "-a"}).sampling.branches, 0x12u);
  EXPECT_EQ(parsed({"-j", "u", "-a"}).sampling.branches, 9u) << "a side alone: any branch there";
  EXPECT_NE(refusal({"-j", "any_cal", "-a"}).find("did you mean 'any_call'"), std::string::npos);
}

#if defined(__x86_64__)
TEST(Options, RegistersAreNamedInAnyCase) {
  EXPECT_EQ(parsed({"--user-regs=ip,SP", "-a"}).sampling.registers_user, 0x180u);
  EXPECT_EQ(parsed({"-I", "-a"}).sampling.registers_intr, 0xff0fffu);
  EXPECT_TRUE(parsed({"--intr-regs=?"}).sampling.show_registers);
  EXPECT_NE(refusal({"--user-regs=foo", "-a"}).find("'foo' is no register here; registers: AX"),
            std::string::npos);
}
#endif

TEST(Options, ClocksHaveTheirKernelNamesAndPerfsShortOnes) {
  for (const char* name : {"monotonic_raw", "CLOCK_MONOTONIC_RAW", "raw", "4"})
    EXPECT_EQ(parsed({"-k", name, "-a"}).sampling.clock, 4) << name;
  EXPECT_EQ(parsed({"-a"}).sampling.clock, std::nullopt);
  EXPECT_NE(refusal({"-k", "sundial", "-a"}).find("-k: 'sundial' is no clock"), std::string::npos);
  EXPECT_NE(refusal({"-k", "99", "-a"}).find("no clock 99"), std::string::npos);
}

TEST(Options, AFilterIsForTheEventsOfTheLastE) {
  const auto options = parsed({"-e", "sched:sched_switch", "-e", "sched:sched_wakeup,irq:*", "--filter",
                               "pid > 1", "--filter", "cpu == 0", "-a"});
  ASSERT_EQ(options.events.size(), 3u);
  EXPECT_EQ(options.events[0].filter, "");
  EXPECT_EQ(options.events[1].filter, "(pid > 1) && (cpu == 0)");
  EXPECT_EQ(options.events[2].filter, "(pid > 1) && (cpu == 0)");
  EXPECT_NE(
      refusal({"--filter", "pid > 1", "-e", "sched:sched_switch", "-a"}).find("after the -e that it is for"),
      std::string::npos);
  EXPECT_NE(
      refusal({"-e", "sched:sched_switch,cpu-clock", "--filter", "pid > 1", "-a"}).find("another language"),
      std::string::npos);
  EXPECT_EQ(parsed({"-e", "cpu-clock,faults", "--filter", "pid > 1", "-a"}).events[1].filter, "pid > 1");
  EXPECT_NE(refusal({"-e", "cpu-clock", "--filter", "pid >", "-a"}).find("--filter: column 6: "),
            std::string::npos);
  EXPECT_EQ(parsed({"-e", "cpu-clock", "--exclude-perf", "-a"}).events[0].filter.rfind("pid != ", 0), 0U);
  EXPECT_NE(
      parsed({"-e", "sched:sched_switch", "--exclude-perf", "-a"}).events[0].filter.find("common_pid != "),
      std::string::npos);
}

TEST(Options, WhatIsAlwaysRecordedMayBeAskedFor) {
  const auto options = parsed({"-T", "-P", "-R", "-N", "--sample-cpu", "--buildid-all", "true", "-T"});
  EXPECT_EQ(options.command, (std::vector<std::string>{"true", "-T"}));
}

}  // namespace
}  // namespace tacho::record
