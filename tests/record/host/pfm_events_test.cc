#include "record/host/pfm_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "format/records/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

class PfmEvents : public testing::Test {
 protected:
  void SetUp() override {
    if (!PfmLibrary::open()) GTEST_SKIP() << "libpfm4 is not installed";
  }
  static std::string refused(std::string_view text) {
    const auto events = parse_pfm_events(text);
    return events ? "" : events.error().what;
  }
};

// Numbers as Intel's and AMD's manuals have them: event, umask, counter mask.
TEST_F(PfmEvents, AreNumbersOfTheProcessor) {
  const auto events = parse_pfm_events(
      "skl::INST_RETIRED:ANY_P,skl::UOPS_ISSUED:ANY:c=1:u,amd64_fam19h_zen3::RETIRED_INSTRUCTIONS:k");
  ASSERT_TRUE(events) << events.error().what;
  ASSERT_EQ(events->size(), 3U);
  const EventRequest& plain = (*events)[0];
  EXPECT_TRUE(plain.is_counter() && plain.type == abi::kRaw && plain.config == 0xc0);
  EXPECT_EQ(plain.name, "skl::INST_RETIRED:ANY_P");
  EXPECT_EQ(plain.flags & (abi::kExcludeUser | abi::kExcludeKernel | abi::kExcludeGuest),
            std::uint64_t{abi::kExcludeGuest});
  const EventRequest& user = (*events)[1];
  EXPECT_EQ(user.config, 0x100010eU);
  EXPECT_TRUE((user.flags & abi::kExcludeKernel) != 0 && (user.flags & abi::kExcludeUser) == 0);
  EXPECT_EQ((*events)[2].config, 0xc0U);
  EXPECT_TRUE(((*events)[2].flags & abi::kExcludeUser) != 0);
}

// What perf takes after a name, beside the settings of the hardware.
TEST_F(PfmEvents, SayHowTheyAreCounted) {
  const auto events = parse_pfm_events(
      "skl::INST_RETIRED:ANY_P:precise=2:pinned,skl::UOPS_ISSUED:ANY:period=12345:excl,"
      "skl::INST_RETIRED:ANY_P:freq=99,skl::INST_RETIRED:ANY_P");
  ASSERT_TRUE(events) << events.error().what;
  ASSERT_EQ(events->size(), 4U);
  const EventRequest& exact = (*events)[0];
  EXPECT_EQ(exact.flags >> abi::kPreciseIpShift & 3, 2U);
  EXPECT_TRUE((exact.flags & abi::kPinned) != 0 && (exact.flags & abi::kExclusive) == 0);
  EXPECT_FALSE(exact.period || exact.frequency);
  EXPECT_EQ((*events)[1].period, 12345U);
  EXPECT_FALSE((*events)[1].frequency);
  EXPECT_TRUE(((*events)[1].flags & abi::kExclusive) != 0);
  EXPECT_EQ((*events)[2].frequency, 99U);
  EXPECT_FALSE((*events)[2].period);
  EXPECT_EQ((*events)[3].flags, std::uint64_t{abi::kExcludeGuest});
  EXPECT_NE(refused("skl::INST_RETIRED:ANY_P:cpu=1").find("-C 1"), std::string::npos);
}

TEST_F(PfmEvents, LeaveTheEnvironmentAsItWas) {
  constexpr const char* kInactive = "LIBPFM_ENCODE_INACTIVE";
  unsetenv(kInactive);
  EXPECT_TRUE(PfmLibrary::open());
  EXPECT_EQ(std::getenv(kInactive), nullptr);
  setenv(kInactive, "0", 1);
  EXPECT_TRUE(PfmLibrary::open());
  EXPECT_STREQ(std::getenv(kInactive), "0");
  unsetenv(kInactive);
}

TEST_F(PfmEvents, BracesMakeAGroup) {
  const auto events = parse_pfm_events("{skl::INST_RETIRED:ANY_P,skl::UOPS_ISSUED},skl::INST_RETIRED:ANY_P");
  ASSERT_TRUE(events) << events.error().what;
  EXPECT_EQ((*events)[0].group, 1U);
  EXPECT_EQ((*events)[1].group, 1U);
  EXPECT_EQ((*events)[2].group, 0U);
}

TEST_F(PfmEvents, WhatIsNoneIsRefused) {
  EXPECT_NE(refused("skl::NOSUCH").find("'skl::NOSUCH': event not found"), std::string::npos);
  EXPECT_NE(refused("skl::UOPS_ISSUED:NOSUCH").find("'skl::UOPS_ISSUED:NOSUCH'"), std::string::npos);
  for (const char* text : {"", "{skl::UOPS_ISSUED", "skl::UOPS_ISSUED}", "{{skl::UOPS_ISSUED}}"})
    EXPECT_NE(refused(text), "") << text;
}

TEST_F(PfmEvents, AllAreListed) {
  std::vector<std::string> names;
  PfmLibrary::open()->each_event(
      PfmLibrary::Which::All,
      [&names](const std::string& name, const std::string&) { names.push_back(name); });
  EXPECT_NE(std::ranges::find(names, "skl::INST_RETIRED:ANY_P"), names.end());
  EXPECT_GT(names.size(), 1000U);
}

}  // namespace
}  // namespace tacho::record
