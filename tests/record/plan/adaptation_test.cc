#include "record/plan/adaptation.h"

#include <gtest/gtest.h>

#include <utility>

#include "format/records/perf_abi.h"

namespace tacho::record {

namespace {

const Host kLargePages{.page_size = 8192};

// A clock whose stacks are unwound, and the sideband.
Plan unwound_clock(bool is_default) {
  Plan plan;
  plan.events.resize(2);
  plan.events[0].name = "cpu-clock";
  plan.events[0].attr.sample_type = format::abi::kSampleCallchain;
  plan.events[0].unwound_frames = 100;
  plan.events[0].may_use_frame_pointers = is_default;
  plan.events[1].is_sideband = true;
  plan.events[1].attr.wakeup = 1;
  plan.sideband_pages = 16;
  return plan;
}

TEST(Adaptation, WithoutTheUnwinderStacksAreCopiedOrWalkedByTheKernel) {
  for (const bool is_default : {true, false}) {
    const Plan plan = unwound_clock(is_default);
    const Plan without = adapted(plan, without_unwinding(plan, kLargePages, "it is too old\nlog"));
    EXPECT_EQ(without.events[0].unwound_frames, 0u);
    EXPECT_EQ(without.events[0].copies_stacks, is_default);
    EXPECT_EQ(without.events[0].unwind_fallback_reason, "it is too old");
    ASSERT_EQ(without.notes.size(), 1u);
    EXPECT_NE(without.notes[0].find("it is too old"), std::string::npos);
    EXPECT_EQ(without.events[1].attr.wakeup, 16u * 8192 / 4) << "not at each mapping";
    EXPECT_EQ(plan.events[0].unwound_frames, 100u);
  }
}

TEST(Adaptation, WhatTheKernelAcceptedReplacesWhatWasPlanned) {
  Plan plan = unwound_clock(true);
  plan.ring_pages = 512;
  Adaptation adaptation;
  adaptation.attrs[0].sample_type = format::abi::kSampleIp;
  adaptation.ring_pages = 256;
  adaptation.notes = {"smaller"};
  const Plan opened = adapted(std::move(plan), adaptation);
  EXPECT_EQ(opened.events[0].attr.sample_type, format::abi::kSampleIp);
  EXPECT_EQ(opened.events[0].unwound_frames, 100u);
  EXPECT_EQ(opened.ring_pages, 256u);
  EXPECT_EQ(opened.sideband_pages, 16u);
  EXPECT_EQ(opened.notes, adaptation.notes);
}

}  // namespace

}  // namespace tacho::record
