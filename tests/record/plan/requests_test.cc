#include "record/plan/requests.h"

#include <gtest/gtest.h>

#include "record/events/event_spec.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;

EventRequest named(std::string name, decltype(EventRequest::what) what = CounterRequest{},
                   std::uint64_t flags = 0) {
  EventRequest request;
  request.what = std::move(what);
  request.name = std::move(name);
  request.flags |= flags;
  return request;
}

EventRequest with_modifiers(EventRequest request) {
  request.name_has_modifiers = true;
  return request;
}

TEST(Sides, ColonsInANameAreNotModifiers) {
  const auto parsed = parse_events("cycles/name=a:b/,cycles/name=c:d/pp,instructions:pp,1:0x2,{faults}:p");
  ASSERT_TRUE(parsed) << parsed.error().what;
  std::vector<EventRequest> requests = *parsed;
  requests.push_back(named("inst_retired:any_p"));
  requests.push_back(named("skl::uops_issued:any:c=1"));
  EXPECT_EQ(exclude_kernel(requests), 7u);
  std::vector<std::string> names;
  for (const EventRequest& request : requests) names.push_back(request.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a:b:u", "c:d:u", "instructions:ppu", "1:0x2:u", "faults:u",
                                             "inst_retired:any_p:u", "skl::uops_issued:any:c=1:u"}));
}

TEST(Sides, EventsWithoutASideAreLeftOutsideOfTheKernel) {
  std::vector<EventRequest> requests{
      named("cpu-clock"),
      with_modifiers(named("cycles:pp")),
      named("cpu/event=0x3c/"),
      with_modifiers(named("cpu/event=0x3c/p")),
      named("raw_syscalls:sys_enter", TracepointRequest{}),
      with_modifiers(named("raw_syscalls:sys_enter:S", TracepointRequest{})),
      named("cycles:k", CounterRequest{}, abi::kExcludeUser | abi::kExcludeHv),
      named("cycles:u", CounterRequest{}, abi::kExcludeKernel | abi::kExcludeHv),
      named("", ObjectRequest{}),
      named("probe", ProbeRequest{}),
  };
  EXPECT_EQ(exclude_kernel(requests), 6u);
  std::vector<std::string> names;
  for (const EventRequest& request : requests) names.push_back(request.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"cpu-clock:u", "cycles:ppu", "cpu/event=0x3c/u", "cpu/event=0x3c/pu",
                                      "raw_syscalls:sys_enter:u", "raw_syscalls:sys_enter:Su", "cycles:k",
                                      "cycles:u", "", "probe"}));
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(requests[i].flags & (abi::kExcludeUser | abi::kExcludeKernel | abi::kExcludeHv),
              abi::kExcludeKernel | abi::kExcludeHv);
  EXPECT_EQ(exclude_kernel(requests), 0u);
}

TEST(Sides, OptionsThatNameASideOrWholeCpusKeepEventsAsTheyAre) {
  RecordOptions options;
  options.target.watch = Watch::Command;
  EXPECT_TRUE(may_exclude_kernel(options));
  options.sampling.all_kernel = true;
  EXPECT_FALSE(may_exclude_kernel(options));
  options.sampling.all_kernel = false;
  options.sampling.all_user = true;
  EXPECT_FALSE(may_exclude_kernel(options));
  options.sampling.all_user = false;
  options.target.watch = Watch::System;
  EXPECT_FALSE(may_exclude_kernel(options));
}

}  // namespace

}  // namespace tacho::record
