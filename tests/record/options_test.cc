#include "record/options.h"

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
  EXPECT_TRUE(options.call_graph);
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
  EXPECT_EQ(options.frequency, 99u);
  EXPECT_EQ(options.output, "x");
  EXPECT_TRUE(options.call_graph && options.quiet);
}

TEST(Options, WhatDoesNotGoTogetherIsRefused) {
  EXPECT_EQ(refusal({"-F", "99", "-c", "1"}), "-F and -c exclude each other");
  EXPECT_NE(refusal({"--call-graph", "dwarf"}).find("dwarf"), std::string::npos);
  EXPECT_NE(refusal({"-a", "-p", "1"}).find("exclude"), std::string::npos);
}

TEST(Options, ATooLargeRingComesWithTheLimit) {
  EXPECT_EQ(refusal({"-m", "9999999"}), "-m: '9999999' is too large: at most 1048576 pages");
  EXPECT_EQ(refusal({"-m", "64G"}), "-m: '64G' is too large: at most 4G");
}

TEST(Options, TheVersionCanBeAskedFor) { EXPECT_TRUE(parsed({"--version"}).show_version); }

TEST(Options, WhatPerfHasAndWeLackSaysWhatToDo) {
  EXPECT_NE(refusal({"-S"}).find("--snapshot: processor traces"), std::string::npos);
  EXPECT_NE(refusal({"--kcore"}).find("the kernel's code is not copied"), std::string::npos);
  EXPECT_NE(refusal({"--affinity=cpu"}).find("--affinity: "), std::string::npos);
}

TEST(Options, WhatIsAlwaysRecordedMayBeAskedFor) {
  const auto options = parsed({"-T", "-P", "-R", "-N", "--sample-cpu", "--buildid-all", "true", "-T"});
  EXPECT_EQ(options.command, (std::vector<std::string>{"true", "-T"}));
}

}  // namespace
}  // namespace tacho::record
