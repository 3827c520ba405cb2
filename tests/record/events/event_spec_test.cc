#include "record/events/event_spec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/records/perf_abi.h"
#include "record/events/event_names.h"
#include "record/events/recorders.h"

namespace tacho::record {
namespace {

std::vector<EventRequest> parsed(std::string_view text) {
  auto events = parse_events(text);
  EXPECT_TRUE(events) << (events ? "" : events.error().what);
  return events ? *events : std::vector<EventRequest>{};
}

TEST(EventSpec, SoftwareEventsHaveTheirShortForms) {
  const auto events = parsed("cpu-clock,faults,cs");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].config, format::abi::kCpuClock);
  EXPECT_EQ(events[1].config, format::abi::kPageFaults);
  EXPECT_EQ(events[2].config, format::abi::kContextSwitches);
  EXPECT_EQ(events[2].name, "cs") << "an event is called what the user called it";
}

TEST(EventSpec, ModifiersExcludeTheOtherSide) {
  const auto events = parsed("cpu-clock:u,page-faults:k,sched:sched_switch:uk");
  ASSERT_EQ(events.size(), 3u);
  using format::abi::kExcludeKernel;
  using format::abi::kExcludeUser;
  EXPECT_EQ(events[0].flags & (kExcludeKernel | kExcludeUser), kExcludeKernel);
  EXPECT_EQ(events[0].name, "cpu-clock:u");
  EXPECT_EQ(events[1].flags & (kExcludeKernel | kExcludeUser), kExcludeUser);
  EXPECT_EQ(events[2].flags & (kExcludeKernel | kExcludeUser), 0u);
  EXPECT_EQ(events[2].tracepoint()->name, "sched_switch");
}

TEST(EventSpec, TermsStandBetweenSlashes) {
  const auto events = parsed("task-clock/period=1000,name=mine/:u,sched:*/freq=99/");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].period, 1000u);
  EXPECT_EQ(events[0].name, "mine");
  EXPECT_EQ(events[1].frequency, 99u);
  EXPECT_EQ(events[1].tracepoint()->system, "sched");
  EXPECT_EQ(events[1].tracepoint()->name, "*");
}

TEST(EventSpec, BpfOutputAsPerfHadIt) {
  const auto events = parsed("bpf-output/no-inherit,name=evt/");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].config, format::abi::kBpfOutput);
  EXPECT_EQ(events[0].name, "evt");
  EXPECT_EQ(events[0].inherit, false);
}

TEST(EventSpec, RecordersOfTheCatalogueAreObjectsThatTachoCarries) {
  const auto events = parsed("cpu-clock,open/failed,min_us=10/,exec");
  ASSERT_EQ(events.size(), 3u);
  ASSERT_NE(events[1].object(), nullptr);
  EXPECT_EQ(events[1].recorder, "open");
  ASSERT_EQ(events[1].object()->constants.size(), 2u);
  EXPECT_EQ(events[1].object()->constants[1].name, "min_us");
  EXPECT_EQ(events[1].object()->constants[1].value, "10");
  EXPECT_EQ(events[2].recorder, "exec");
  EXPECT_TRUE(parsed("exec/help/").front().asks_for_help);
  EXPECT_TRUE(parsed("./own.bpf.c/help/").front().asks_for_help);
  EXPECT_FALSE(parsed("./own.bpf.c/help=1/").front().asks_for_help) << "a global of that name";
  EXPECT_FALSE(parse_events("{exec,cpu-clock}"));
  EXPECT_EQ(parsed("./exec.bpf.o").front().recorder, "") << "a file of that name is a file";
}

TEST(EventSpec, NamesOfRecordersAreNoOtherEvents) {
  for (const RecorderRow& row : recorders()) {
    EXPECT_FALSE(find_named_event(row.name)) << row.name;
    EXPECT_EQ(find_recorder(row.name), &row) << "a name stands once";
    EXPECT_TRUE(row.view.starts_with("tacho ")) << row.name;
  }
}

TEST(EventSpec, ToolsThatNeedNoRecorderAreNamedWithWhatDoesTheirWork) {
  const auto refused = parse_events("threadsnoop");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("unknown event 'threadsnoop'; what that tool does: tacho record -g -e "
                                      "uprobe:libc.so.6:pthread_create, then tacho script"),
            std::string::npos)
      << refused.error().what;
  for (const RecorderRow& row : recorders()) EXPECT_EQ(instead_of_tool(row.name), "") << row.name;
}

TEST(EventSpec, RecordersOfProbesAreTheProbeWithItsConditionAndView) {
  const auto events = parsed(
      "argdist/probe='uprobe:libc.so.6:write(fd=arg1:s32, count=arg3)',if='count > "
      "100',comm=dd,value=count,key='comm,fd'/");
  ASSERT_EQ(events.size(), 1u);
  ASSERT_NE(events[0].probe(), nullptr);
  EXPECT_EQ(events[0].probe()->path, "libc.so.6");
  EXPECT_EQ(events[0].arguments.size(), 2u);
  EXPECT_EQ(events[0].filter, "(comm == \"dd\") && (count > 100)") << "all of it is asked in the kernel";
  ASSERT_TRUE(events[0].sum);
  EXPECT_EQ(events[0].arguments[0].name, "fd") << "keys come first, then the value";
  EXPECT_EQ(*events[0].sum, (bpf::ProbeSum{.keys = 1, .has_value = true, .by_name = true}));
  EXPECT_EQ(events[0].recorder, "") << "no object";
  EXPECT_EQ(events[0].catalogue_name, "argdist");
  EXPECT_EQ(events[0].view, "tacho hist --field count --by comm,fd");
  EXPECT_EQ(parsed("trace/probe='kprobe:f(n=arg1)',if='cpu == 1'/").front().filter, "(cpu == 1)");
  EXPECT_EQ(parsed("argdist/probe='sched:sched_switch',key=prev_comm/").front().view,
            "tacho table --by prev_comm --columns count");
  EXPECT_EQ(parsed("argdist/probe='sched:sched_switch',key=prev_comm,if='prev_prio < 100'/").front().filter,
            "(prev_prio < 100)");
  const auto computed = parsed("argdist/probe='kprobe:vfs_read(n=arg3)',value='n / 4096'/").front();
  EXPECT_EQ(computed.view, "tacho table --value 'n / 4096' --by comm");
  EXPECT_FALSE(computed.sum);
  EXPECT_EQ(computed.no_sum, "the value 'n / 4096' is an expression, which only views compute");
  EXPECT_NE(parsed("argdist/probe='kprobe:f(n=arg3)',key=cgroup/").front().no_sum, "");
  const auto two = parsed("trace/probe='sched:sched_switch',tid=7/,cpu-clock");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].filter, "(common_pid == 7)");
  EXPECT_EQ(two[0].view, "tacho script --columns auto");
  EXPECT_TRUE(parsed("trace/help/").front().asks_for_help);
  for (const auto& [text, part] :
       {std::pair("trace", "the probe is missing: probe="),
        std::pair("trace/prob=x/", "there is no such option; did you mean 'probe'?"),
        std::pair("trace/probe=/", "probe: a value is missing"),
        std::pair("trace/probe=cpu-clock/", "neither a probe nor a tracepoint"),
        std::pair("trace/probe='kprobe:f(a=arg1)',if='a >'/", "-e trace/"),
        std::pair("trace/probe='kprobe:f',pid=x/", "pid: 'x' is not a number"),
        std::pair("trace/probe='kprobe:f(a=arg1)',if='b > 1'/", "if: kprobe:f has no 'b'; it has a"),
        std::pair("trace/probe='sched:sched_switch',value=x/", "value: there is no such option")}) {
    const auto refused = parse_events(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().what.find(part), std::string::npos) << refused.error().what;
  }
}

TEST(EventSpec, ObjectsBindTheirMapsToEvents) {
  const auto events = parsed("./dir.o/big.bpf.o/map:channel.event=evt,map:b.event=other/,/tmp/x.c");
  ASSERT_EQ(events.size(), 2u);
  ASSERT_NE(events[0].object(), nullptr);
  EXPECT_EQ(events[0].object()->path, "./dir.o/big.bpf.o") << "a folder may end in .o too";
  EXPECT_EQ(events[0].object()->bindings, (std::vector<MapBinding>{{"channel", "evt"}, {"b", "other"}}));
  EXPECT_EQ(events[1].object()->path, "/tmp/x.c");
  EXPECT_TRUE(events[1].object()->bindings.empty());
}

TEST(EventSpec, ObjectsTakeValuesForTheirGlobals) {
  const auto events = parsed("./a.c/min=4096,on,path='/usr/a,b',limits.low[2]=-1,map:m.event=e/,./b.o/x=/");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].object()->constants, (std::vector<ConstantSetting>{{"min", "4096", 6, 10},
                                                                         {"on", std::nullopt, 15, 15},
                                                                         {"path", "/usr/a,b", 18, 24},
                                                                         {"limits.low[2]", "-1", 34, 48}}));
  EXPECT_EQ(events[0].object()->bindings, (std::vector<MapBinding>{{"m", "e"}}));
  EXPECT_EQ(events[1].object()->constants, (std::vector<ConstantSetting>{{"x", "", 6, 8}}))
      << "letters of its own text";
}

TEST(EventSpec, ARefusalHasALineWithACaret) {
  const auto what = [](const std::string& text) {
    const auto events = parse_events(text);
    return events ? "" : events.error().what;
  };
  EXPECT_TRUE(what("cycles:Z").ends_with("\n    cycles:Z\n           ^")) << what("cycles:Z");
  EXPECT_EQ(what("cyc\xc3les:Z").find('\n'), std::string::npos) << "columns of a terminal are not known";
  EXPECT_EQ(what(std::string(200, 'c') + ":Z").find('\n'), std::string::npos)
      << "a terminal breaks such a line";
}

TEST(EventSpec, WhatIsNoGlobalOfAnObjectIsRefusedAtItsColumn) {
  const auto what = [](const char* text) {
    const auto events = parse_events(text);
    return events ? "" : events.error().what;
  };
  EXPECT_NE(what("./a.c/1x=2/").find("column 7: '1x' is not understood; an object takes map:"),
            std::string::npos);
  EXPECT_NE(what("./a.c/x='2/").find("column 9: the closing ' is missing"), std::string::npos);
  EXPECT_NE(what("./a.c/x='2'3/").find("column 12: a comma or the closing '/'"), std::string::npos);
  EXPECT_NE(what("./a.c/x=2").find("column 10: the closing '/' is missing"), std::string::npos);
}

TEST(EventSpec, ASwitchMayHaveAValue) {
  const auto inherit = [](const char* text) {
    const auto events = parse_events(text);
    EXPECT_TRUE(events) << text;
    return events && events->front().inherit.value_or(true);
  };
  EXPECT_FALSE(inherit("cpu-clock/no-inherit/"));
  EXPECT_FALSE(inherit("bpf-output/no-inherit=1,name=evt/"));
  EXPECT_FALSE(inherit("cpu-clock/inherit=0/"));
  EXPECT_TRUE(inherit("cpu-clock/no-inherit=0/"));
  EXPECT_FALSE(parse_events("cpu-clock/no-inherit=2/"));
  EXPECT_FALSE(parse_events("cpu-clock/no-inherit=/"));
}

}  // namespace
}  // namespace tacho::record
