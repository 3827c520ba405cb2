#include "format/container/event_name.h"

#include <gtest/gtest.h>

#include "format/records/perf_abi.h"

namespace tacho::format {
namespace {

// Without letters: the guest is left out, as perf does by default.
EventAttr attr_of(std::uint32_t type, std::uint64_t config, std::uint64_t flags = abi::kExcludeGuest) {
  EventAttr attr;
  attr.type = type;
  attr.config = config;
  attr.flags = flags;
  return attr;
}

TracingData one_tracepoint() {
  TracingData tracing;
  tracing.formats.push_back({"sched", "name: sched_switch\nID: 314\nformat:\n"});
  return tracing;
}

TEST(EventNames, EventsHavePerfsNamesByTheirAttributes) {
  EventNames names;
  EventSet none;
  names.add_tracepoints(one_tracepoint(), none);
  constexpr auto kUserOnly = abi::kExcludeKernel | abi::kExcludeHv;
  EXPECT_EQ(names.name_for(attr_of(abi::kSoftware, abi::kBpfOutput)), "bpf-output");
  EXPECT_EQ(names.name_for(attr_of(abi::kSoftware, 500)), "unknown-software");
  EXPECT_EQ(names.name_for(attr_of(abi::kHardware, 0, kUserOnly)), "cycles:u");
  EXPECT_EQ(names.name_for(attr_of(abi::kHwCache, 0x10000)), "L1-dcache-load-misses");
  EXPECT_EQ(names.name_for(attr_of(abi::kRaw, 0x1c2)), "raw 0x1c2");
  EXPECT_EQ(names.name_for(attr_of(abi::kTracepoint, 314)), "sched:sched_switch");
  EXPECT_EQ(names.name_for(attr_of(abi::kTracepoint, 315)), "unknown tracepoint");
  EXPECT_EQ(names.name_for(attr_of(77, 0)), "unknown attr type: 77");
}

TEST(EventNames, WhatTheCaptureSaysComesFirst) {
  EventSet events;
  events.add_event({attr_of(abi::kSoftware, 0), "", {}});
  events.add_event({attr_of(abi::kSoftware, 2), "faults of mine", {}});
  EventNames names;
  names.name_event(events, 0);
  names.name_event(events, 1);
  EXPECT_EQ(events[0].name, "cpu-clock");
  EXPECT_TRUE(events[0].name_is_made);
  EXPECT_EQ(events[1].name, "faults of mine");
  EventNames::apply(events, std::vector<Event>{{{}, "ticks", {}}, {{}, "", {}}});
  EXPECT_EQ(events[0].name, "ticks");
  EXPECT_FALSE(events[0].name_is_made);
  EXPECT_EQ(events[1].name, "faults of mine");
}

TEST(EventNames, DescriptionsOfFewerEventsAreOfNone) {
  EventSet events;
  events.add_event({attr_of(abi::kSoftware, 0), "mine", {}});
  events.add_event({attr_of(abi::kSoftware, 2), "", {}});
  EventNames::apply(events, std::vector<Event>{{{}, "ticks", {}}});
  EXPECT_EQ(events[0].name, "mine");
}

TEST(EventNames, ATracepointGetsItsNameWhenItsDescriptionComes) {
  EventSet events;
  events.add_event({attr_of(abi::kTracepoint, 314), "", {}});
  events.add_event({attr_of(abi::kTracepoint, 314), "", {}});
  EventNames names;
  names.name_event(events, 0);
  names.name_event(events, 1);
  EXPECT_EQ(events[0].name, "unknown tracepoint");
  events.set_name(1, "mine");
  names.add_tracepoints(one_tracepoint(), events);
  EXPECT_EQ(events[0].name, "sched:sched_switch");
  EXPECT_EQ(events[1].name, "mine") << "the capture said so before";
}

TEST(EventNames, ALongNameIsCut) {
  TracingData tracing;
  tracing.formats.push_back(
      {std::string(1000, 's'), "name: " + std::string(1000, 'n') + "\nID: 1\nformat:\n"});
  EventSet none;
  EventNames names;
  names.add_tracepoints(tracing, none);
  EXPECT_EQ(names.name_for(attr_of(abi::kTracepoint, 1)),
            std::string(255, 's') + ':' + std::string(255, 'n'));
}

}  // namespace
}  // namespace tacho::format
