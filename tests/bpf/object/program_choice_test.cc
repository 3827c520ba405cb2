#include "bpf/object/program_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tacho::bpf {
namespace {

ProgramChoice three_ways() {
  return ProgramChoice({{"a", "fexit/x", "read", "a"},
                        {"b", "kretprobe/x", "read", "b"},
                        {"c", "tracepoint/y/z", "read", "c"},
                        {"always", "tp_btf/q", "", ""}});
}

TEST(ProgramChoice, TheFirstAlternativeIsWantedUntilItIsRejected) {
  ProgramChoice choice = three_ways();
  EXPECT_TRUE(choice.wanted(0));
  EXPECT_FALSE(choice.wanted(1));
  EXPECT_FALSE(choice.wanted(2));
  EXPECT_TRUE(choice.wanted(3));
  EXPECT_EQ(choice.why_not(1), "not needed: a (fexit/x) is used");

  ASSERT_TRUE(choice.reject(0, "no trampolines"));
  EXPECT_FALSE(choice.wanted(0));
  EXPECT_TRUE(choice.wanted(1));
  EXPECT_EQ(choice.why_not(0), "no trampolines");
  EXPECT_EQ(choice.why_not(1), "");
}

TEST(ProgramChoice, WhenNoAlternativeIsLeftEveryReasonIsGiven) {
  ProgramChoice choice = three_ways();
  ASSERT_TRUE(choice.reject(0, "reason one"));
  ASSERT_TRUE(choice.reject(1, "reason two"));
  const auto last = choice.reject(2, "reason three");
  ASSERT_FALSE(last);
  for (const char* part : {"'read'", "a (fexit/x): reason one", "b (kretprobe/x): reason two",
                           "c (tracepoint/y/z): reason three"})
    EXPECT_NE(last.error().what.find(part), std::string::npos) << last.error().what;
}

TEST(ProgramChoice, ARequiredProgramCannotBeRejectedAnOptionalOneCan) {
  ProgramChoice choice({{"needed", "kprobe/x", "", ""}, {"nice", "kprobe/y", "", "", true}});
  EXPECT_TRUE(choice.reject(1, "not here"));
  EXPECT_FALSE(choice.wanted(1));
  const auto refused = choice.reject(0, "no kprobes");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "program needed (kprobe/x): no kprobes");
}

TEST(ProgramChoice, ProgramsOfOneSetStandAndFallTogether) {
  ProgramChoice choice({{"enter1", "tp_btf/e", "calls", "btf"},
                        {"exit1", "tp_btf/x", "calls", "btf"},
                        {"enter2", "tracepoint/s/e", "calls", "tp"},
                        {"exit2", "tracepoint/s/x", "calls", "tp"}});
  EXPECT_TRUE(choice.wanted(0) && choice.wanted(1));
  EXPECT_FALSE(choice.wanted(2) || choice.wanted(3));
  ASSERT_TRUE(choice.reject(1, "no such tracepoint"));
  EXPECT_FALSE(choice.wanted(0) || choice.wanted(1));
  EXPECT_TRUE(choice.wanted(2) && choice.wanted(3));
  EXPECT_EQ(choice.why_not(0), "its companion exit1 (tp_btf/x) cannot be used");
}

TEST(ProgramChoice, WhatDropsEventsOfOthersIsTriedLast) {
  ProgramChoice choice({{"enter1", "tracepoint/s/e", "calls", "tp", false, true},
                        {"exit1", "tracepoint/s/x", "calls", "tp"},
                        {"enter2", "raw_tp/e", "calls", "raw"},
                        {"alone", "tracepoint/s/e", "", "", false, true}});
  const auto wants = [&](const std::string& name) {
    const auto& all = choice.candidates();
    return choice.wanted(
        static_cast<std::size_t>(std::ranges::find(all, name, &Candidate::name) - all.begin()));
  };
  EXPECT_TRUE(wants("enter2") && wants("alone"));
  EXPECT_FALSE(wants("enter1") || wants("exit1"));
}

TEST(ProgramChoice, AGroupOfOptionalProgramsMayEndEmpty) {
  ProgramChoice choice({{"a", "kprobe/x", "g", "a", true}, {"b", "kprobe/y", "g", "b", true}});
  EXPECT_TRUE(choice.reject(0, "no"));
  EXPECT_TRUE(choice.reject(1, "no"));
  EXPECT_FALSE(choice.wanted(0) || choice.wanted(1));
}

}  // namespace
}  // namespace tacho::bpf
