#include "record/plan/make_plan.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/records/perf_abi.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;

const Host kHost{
    .online_cpus = {0, 1, 3}, .page_size = 4096, .max_sample_rate = 100000, .perf_event_paranoid = 2};
const ObjectFacts kObject{"./x.bpf.o", {{"channel", "bigread"}, {"second", "other"}}, {}};

RecordOptions options_of(const std::vector<std::string>& arguments) {
  auto out = parse_options(arguments);
  EXPECT_TRUE(out) << (out ? "" : out.error().what);
  return std::move(out->options);
}

Result<Plan> plan_of(const RecordOptions& options, std::vector<ObjectFacts> objects = {},
                     std::vector<int> threads = {}) {
  return make_plan(options, options.events, objects, {.threads = threads}, kHost);
}

TEST(Plan, ClocksSampleFourThousandTimesASecond) {
  const auto plan = plan_of(options_of({"-a", "-g", "-e", "cpu-clock"}));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->events.size(), 2u);
  const format::EventAttr& attr = plan->events[0].attr;
  EXPECT_EQ(attr.sample_period, 4000u);
  EXPECT_TRUE(attr.has(abi::kFreq));
  EXPECT_TRUE(attr.samples(abi::kSampleCallchain));
  EXPECT_FALSE(attr.samples(abi::kSampleRaw));
  EXPECT_EQ(attr.wakeup, (2u << 20) / 4) << "wakes when a quarter of the ring is full";
  EXPECT_EQ(plan->tasks, std::vector<int>{-1});
  EXPECT_EQ(plan->cpus, kHost.online_cpus);
}

const PlannedEvent& first_of(const Result<Plan>& plan) { return plan->events.front(); }

TEST(Plan, StacksAreUnwoundByDefaultWhereEveryHitBecomesASample) {
  const auto clock = plan_of(options_of({"-a", "-g", "-e", "cpu-clock"}));
  EXPECT_EQ(first_of(clock).unwound_frames, kDefaultUnwoundFrames);
  EXPECT_TRUE(first_of(clock).may_use_frame_pointers);
  EXPECT_EQ(clock->events.back().attr.wakeup, 1u) << "of mappings";
  const auto asked = plan_of(options_of({"-a", "--call-graph", "eh", "-e", "cpu-clock"}));
  EXPECT_FALSE(first_of(asked).may_use_frame_pointers);
  const auto pointers = plan_of(options_of({"-a", "--call-graph", "fp", "-e", "cpu-clock"}));
  EXPECT_EQ(first_of(pointers).unwound_frames, 0u);
  EXPECT_TRUE(first_of(pointers).unwind_fallback_reason.empty());

  const auto by_thread = plan_of(options_of({"--per-thread", "-e", "cpu-clock", "-g", "ls"}));
  ASSERT_TRUE(by_thread) << by_thread.error().what;
  EXPECT_EQ(first_of(by_thread).unwound_frames, 0u);
  EXPECT_NE(first_of(by_thread).unwind_fallback_reason, "");
  // Copies are as whole, and it is said.
  EXPECT_TRUE(first_of(by_thread).copies_stacks);
  EXPECT_TRUE(first_of(by_thread).attr.samples(abi::kSampleStackUser));
  EXPECT_EQ(first_of(by_thread).attr.sample_stack_user, kDefaultStackBytes);
  ASSERT_EQ(by_thread->notes.size(), 1U);
  EXPECT_EQ(
      by_thread->notes.front().find("-g: stacks are copied, 8 KB each, and unwound from the copies, since "),
      0U)
      << by_thread->notes.front();
  const auto user_side = plan_of(options_of({"-a", "-g", "--kernel-callchains", "-e", "cpu-clock"}));
  EXPECT_EQ(first_of(user_side).unwound_frames, 0u);
  EXPECT_EQ(first_of(user_side).unwind_fallback_reason, "") << "there is no user's side";
}

TEST(Plan, ATracepointThatIsChosenFromLaterIsWalkedByFramePointers) {
  const auto request = [](const std::string& filter, std::uint64_t period) {
    EventRequest event;
    event.what = TracepointRequest{};
    event.type = abi::kTracepoint;
    event.name = "a:b";
    event.filter = filter;
    event.period = period;
    return event;
  };
  auto options = options_of({"-a", "-g"});
  options.events = {request("", 1), request("x == 1", 1), request("", 100)};
  const auto plan = plan_of(options);
  ASSERT_TRUE(plan) << plan.error().what;
  EXPECT_EQ(plan->events[0].unwound_frames, kDefaultUnwoundFrames);
  EXPECT_EQ(plan->events[1].unwound_frames, 0u);
  EXPECT_EQ(plan->events[2].unwound_frames, 0u);
  EXPECT_NE(plan->events[1].unwind_fallback_reason.find("not every hit"), std::string::npos);
  options.sampling.stacks.method = CallGraph::Unwound;
  const auto asked = plan_of(options);
  EXPECT_EQ(asked->events[2].unwound_frames, kDefaultUnwoundFrames) << "whoever asks by name has it";
}

TEST(Plan, TheSidebandEventIsLastAndAloneCarriesMappings) {
  const auto plan = plan_of(options_of({"-a", "-m", "1", "-e", "faults,cs"}));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->events.size(), 3u);
  EXPECT_TRUE(plan->events[2].is_sideband);
  EXPECT_EQ(plan->events[2].name, "dummy:HG");
  EXPECT_TRUE(plan->events[2].attr.has(abi::kMmap2));
  EXPECT_FALSE(plan->events[0].attr.has(abi::kMmap2) || plan->events[1].attr.has(abi::kComm));
  EXPECT_EQ(plan->ring_pages, 1u);
  EXPECT_EQ(plan->sideband_pages, 64u) << "its ring does not shrink with -m";
}

TEST(Plan, WithoutTheKernelTheSidebandNeedsNoRightsEither) {
  const auto plan = plan_of(options_of({"-e", "cpu-clock:u,faults:u", "ls"}));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->events.back().attr.has(abi::kExcludeKernel));
  EXPECT_FALSE(
      plan_of(options_of({"-e", "cpu-clock:u,faults", "ls"}))->events.back().attr.has(abi::kExcludeKernel));
}

TEST(Plan, SidesAndFieldsOfSamplesAreChosenForAllEvents) {
  const auto plan = plan_of(options_of({"-a", "-g", "--all-user", "--user-callchains", "-d", "--phys-data",
                                        "--code-page-size", "-e", "cpu-clock:k,page-faults"}));
  ASSERT_TRUE(plan);
  for (std::size_t event = 0; event < 2; ++event) {
    const format::EventAttr& attr = plan->events[event].attr;
    EXPECT_TRUE(attr.has(abi::kExcludeKernel) && !attr.has(abi::kExcludeUser)) << event;
    EXPECT_TRUE(attr.has(abi::kExcludeCallchainKernel) && !attr.has(abi::kExcludeCallchainUser)) << event;
    for (const auto bit :
         {abi::kSampleAddr, abi::kSampleDataSrc, abi::kSamplePhysAddr, abi::kSampleCodePageSize})
      EXPECT_TRUE(attr.samples(bit)) << event;
  }
  EXPECT_TRUE(plan->events.back().attr.has(abi::kMmapData)) << "the sideband event has data mappings too";
  EXPECT_FALSE(plan->events.back().attr.samples(abi::kSampleAddr));
  const auto alone = plan_of(options_of({"-i", "--kernel-callchains", "true"}));
  ASSERT_TRUE(alone);
  for (const PlannedEvent& event : alone->events) EXPECT_FALSE(event.attr.has(abi::kInherit)) << event.name;
  EXPECT_FALSE(alone->events[0].attr.has(abi::kExcludeCallchainUser)) << "there are no stacks to cut";
}

TEST(Plan, StacksToUnwindLaterNeedRegistersAndAPieceOfStack) {
  const auto plan = plan_of(options_of({"-a", "--call-graph", "dwarf,4096"}));
  ASSERT_TRUE(plan);
  const format::EventAttr& attr = plan->events[0].attr;
  for (const auto bit :
       {abi::kSampleCallchain, abi::kSampleRegsUser, abi::kSampleStackUser, abi::kSampleAddr})
    EXPECT_TRUE(attr.samples(bit));
  EXPECT_TRUE(attr.has(abi::kExcludeCallchainUser));
  EXPECT_EQ(attr.sample_stack_user, 4096u);
  EXPECT_TRUE(plan->events.back().attr.has(abi::kMmapData)) << "unwinding needs the data's mappings";
}

TEST(Plan, SideRecordsAreCarriedByOneEvent) {
  const auto plan = plan_of(options_of({"-a", "--switch-events", "-B", "-k", "monotonic", "-s"}));
  ASSERT_TRUE(plan);
  const format::EventAttr& first = plan->events.front().attr;
  const format::EventAttr& sideband = plan->events.back().attr;
  EXPECT_TRUE(sideband.has(abi::kNamespaces) && sideband.has(abi::kCgroup));
  EXPECT_FALSE(sideband.has(abi::kBuildId) || sideband.has(abi::kContextSwitch));
  EXPECT_TRUE(first.has(abi::kContextSwitch)) << "in the large rings";
  EXPECT_TRUE(first.samples(abi::kSampleCgroup) && first.has(abi::kInheritStat));
  for (const PlannedEvent& event : plan->events) {
    EXPECT_TRUE(event.attr.has(abi::kUseClockid)) << event.name;
    EXPECT_EQ(event.attr.clockid, 1) << event.name;
  }
}

TEST(Plan, RingsFitIntoABudget) {
  const auto in_all = [](const Plan& plan) {
    return (plan.ring_pages + plan.sideband_pages) * 4096 * plan.cpus.size();
  };
  const auto plan = plan_of(options_of({"-a", "-m", "auto,64M"}));
  ASSERT_TRUE(plan);
  EXPECT_LE(in_all(*plan), std::size_t{64} << 20);
  EXPECT_GT(in_all(*plan), std::size_t{16} << 20) << "most of it is used";
  ASSERT_EQ(plan->notes.size(), 1U);
  EXPECT_NE(plan->notes[0].find("MiB in all"), std::string::npos) << plan->notes[0];
  EXPECT_EQ(plan_of(options_of({"-a", "-m", "auto,1M", "-m", "64K"}))->ring_pages, 16U)
      << "the last one counts";
}

TEST(Plan, AStrictFrequencyIsNotLowered) {
  EXPECT_FALSE(plan_of(options_of({"-a", "-F", "4000000000", "--strict-freq"})));
  EXPECT_TRUE(plan_of(options_of({"-a", "-F", "max", "--strict-freq"})));
}

TEST(Plan, BpfOutputNeverInheritsAndTakesEveryEvent) {
  const auto plan = plan_of(options_of({"-a", "-F", "99", "-e", "./x.bpf.o"}), {kObject});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->events.size(), 3u);
  EXPECT_EQ(plan->events[0].name, "bigread");
  EXPECT_EQ(plan->events[1].name, "other");
  const format::EventAttr& attr = plan->events[0].attr;
  EXPECT_EQ(attr.sample_period, 1u);
  EXPECT_FALSE(attr.has(abi::kFreq) || attr.has(abi::kInherit));
  EXPECT_TRUE(attr.samples(abi::kSampleRaw));
  ASSERT_EQ(plan->connections.size(), 2u);
  EXPECT_EQ(plan->connections[1].map, "second");
  EXPECT_EQ(plan->connections[1].event, 1u);
}

TEST(Plan, AMapIsBoundToTheEventOfThatName) {
  const auto plan = plan_of(
      options_of({"-a", "-e", "./x.bpf.o/map:channel.event=evt/", "-e", "bpf-output/no-inherit,name=evt/"}),
      {kObject});
  ASSERT_TRUE(plan) << plan.error().what;
  ASSERT_EQ(plan->connections.size(), 1u);
  EXPECT_EQ(plan->connections[0].map, "channel");
  EXPECT_EQ(plan->events[plan->connections[0].event].name, "evt");
  EXPECT_EQ(plan->events.size(), 2u) << "the long form opens no event by itself";
}

TEST(Plan, UnknownMapsAndEventsAreNamedWithTheNearest) {
  const auto map =
      plan_of(options_of({"-a", "-e", "bpf-output/name=evt/,./x.bpf.o/map:chanel.event=evt/"}), {kObject});
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().fault, Fault::Use);
  EXPECT_NE(map.error().what.find("did you mean 'channel'"), std::string::npos) << map.error().what;
  const auto event = plan_of(options_of({"-a", "-e", "./x.bpf.o/map:channel.event=evt/"}), {kObject});
  ASSERT_FALSE(event);
  EXPECT_NE(event.error().what.find("-e bpf-output/no-inherit,name=evt/"), std::string::npos);
}

TEST(Plan, AChannelTakesEveryThreadAndATableFilters) {
  const auto many = plan_of(options_of({"-p", "10", "-e", "./x.bpf.o,cs"}), {kObject}, {10, 11});
  ASSERT_TRUE(many) << many.error().what;
  EXPECT_TRUE(many->follows_threads);
  EXPECT_EQ(many->tasks, (std::vector<int>{10, 11}));
  for (const PlannedEvent& event : many->events)
    EXPECT_EQ(event.system_wide, event.attr.is_bpf_output()) << event.name;
  const auto command = plan_of(options_of({"-e", "./x.bpf.o,cs", "ls"}), {kObject});
  ASSERT_TRUE(command);
  EXPECT_TRUE(command->follows_threads && command->warnings.empty());
  for (const PlannedEvent& event : command->events) {
    if (event.is_sideband) continue;
    EXPECT_EQ(event.attr.has(abi::kEnableOnExec), !event.system_wide) << event.name;
  }
  EXPECT_TRUE(command->tasks.empty()) << "the command does not exist yet";
  const auto everybody = plan_of(options_of({"-a", "-e", "./x.bpf.o"}), {kObject});
  EXPECT_FALSE(everybody->follows_threads || everybody->events[0].system_wide);
}

TEST(Plan, ARingBufferHasSamplesOfItsOwn) {
  const ObjectFacts heads{"./x.bpf.o", {{"ring", "slow"}}, {}, {{"ring", bpf::ChannelKind::RingWithHeaders}}};
  const ObjectFacts plain{"./x.bpf.o", {{"ring", "slow"}}, {}, {{"ring", bpf::ChannelKind::PlainRing}}};
  const auto plan = plan_of(options_of({"-g", "-e", "./x.bpf.o,cs", "ls"}), {heads});
  ASSERT_TRUE(plan) << plan.error().what;
  EXPECT_EQ(plan->connections[0].kind, bpf::ChannelKind::RingWithHeaders);
  EXPECT_FALSE(plan->events[0].attr.samples(abi::kSampleCallchain));
  EXPECT_TRUE(plan->events[0].attr.samples(abi::kSampleRaw) && plan->events[0].system_wide);
  EXPECT_TRUE(plan->events[1].attr.samples(abi::kSampleCallchain));
  EXPECT_EQ(plan->notes.size(), 1u) << "that there are no stacks";
  for (const PlannedEvent& event : plan->events) EXPECT_EQ(event.attr.clockid, 1) << event.name;
  const auto everybody = plan_of(options_of({"-a", "-e", "./x.bpf.o"}), {plain});
  ASSERT_TRUE(everybody);
  EXPECT_EQ(everybody->warnings.size(), 1u) << "that thread and CPU are not known";
}

TEST(Plan, OptionsThatARingBufferCannotFollowAreRefused) {
  const ObjectFacts heads{"./x.bpf.o", {{"ring", "slow"}}, {}, {{"ring", bpf::ChannelKind::RingWithHeaders}}};
  const ObjectFacts plain{"./x.bpf.o", {{"ring", "slow"}}, {}, {{"ring", bpf::ChannelKind::PlainRing}}};
  const auto what = [](const std::vector<std::string>& words, const ObjectFacts& object) {
    const auto plan = plan_of(options_of(words), {object});
    return plan ? "" : plan.error().what;
  };
  EXPECT_NE(what({"-e", "./x.bpf.o", "ls"}, plain).find("has no threads of its events"), std::string::npos);
  EXPECT_NE(what({"-C", "0", "-e", "./x.bpf.o"}, plain).find("has no threads of its events"),
            std::string::npos);
  EXPECT_NE(what({"-a", "--overwrite", "-e", "./x.bpf.o"}, heads).find("--overwrite: "), std::string::npos);
  EXPECT_NE(what({"-a", "-k", "boottime", "-e", "./x.bpf.o"}, heads).find("-k: "), std::string::npos);
  EXPECT_EQ(what({"-a", "-k", "mono", "-e", "./x.bpf.o"}, heads), "");
}

TEST(Plan, ASummaryOfAllThreadsNeedsTheWholeSystem) {
  const auto counts = [](const std::string& path) {
    const ObjectFacts object{path, {{"seen", "seen"}}, {}, {{"seen", bpf::ChannelKind::PlainSummary}}};
    const auto plan = plan_of(options_of({"-e", "./x.bpf.o", "ls"}), {object});
    return plan ? "" : plan.error().what;
  };
  EXPECT_NE(counts("./x.bpf.o").find("or have its program call tacho_wants()"), std::string::npos);
  EXPECT_EQ(counts("bpfstat"),
            "-e bpfstat: it counts all threads, so record it with -a; a COMMAND only sets the duration then: "
            "-e bpfstat -a -- COMMAND");
}

TEST(Plan, TooHighAFrequencyIsLoweredWithAWord) {
  const auto plan = plan_of(options_of({"-a", "-F", "200000", "-e", "cpu-clock,task-clock"}));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->events[0].attr.sample_period, 100000u);
  EXPECT_EQ(plan->notes.size(), 1u);
  EXPECT_EQ(plan_of(options_of({"-a", "-F", "max"}))->events[0].attr.sample_period, 100000u);
}

TEST(Plan, TracepointsTakeEveryEventUnlessARateIsGiven) {
  auto options = options_of({"-a", "-e", "sched:sched_switch"});
  EXPECT_EQ(plan_of(options)->events[0].attr.sample_period, 1u);
  options.sampling.frequency = 99;
  EXPECT_TRUE(plan_of(options)->events[0].attr.has(abi::kFreq));
  options.sampling.frequency.reset();
  options.events[0].period = 5;
  options.sampling.period = 7;
  EXPECT_EQ(plan_of(options)->events[0].attr.sample_period, 5u) << "an event's own term wins";
}

TEST(Plan, RingsHaveAPowerOfTwoOfPages) {
  const auto plan = plan_of(options_of({"-a", "-m", "100"}));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->ring_pages, 128u);
  EXPECT_EQ(plan->notes.size(), 1u);
  EXPECT_EQ(plan_of(options_of({"-a", "-m", "64K"}))->ring_pages, 16u);
}

TEST(Plan, AQuarterOfAHugeRingIsLimitedTo32Bits) {
  Host host = kHost;
  host.page_size = 65536;
  const auto options = options_of({"-a", "-m", "1048576"});
  const auto plan = make_plan(options, options.events, {}, {}, host);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->events[0].attr.wakeup, 0xffffffff);
}

TEST(Plan, OnlyCpusOnLineCanBeWatched) {
  EXPECT_EQ(plan_of(options_of({"-C", "0,3"}))->cpus, (std::vector<int>{0, 3}));
  const auto plan = plan_of(options_of({"-C", "2"}));
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().what.find("CPU 2"), std::string::npos);
}

TEST(Plan, ProgramsOnSamplesGetAClockOfTheirOwn) {
  const ObjectFacts object{"./p.bpf.o", {}, {"on_tick"}};
  const auto plan = plan_of(options_of({"-a", "-e", "./p.bpf.o"}), {object});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->events[0].name, "cpu-clock");
  ASSERT_EQ(plan->sample_programs.size(), 1u);
  EXPECT_EQ(plan->sample_programs[0].event, 0u);
  EXPECT_EQ(plan_of(options_of({"-a", "-e", "cs,./p.bpf.o"}), {object})->events.size(), 2u)
      << "the event named is used";
}

TEST(Plan, AnObjectWithNothingToRecordIsRefused) {
  EXPECT_FALSE(plan_of(options_of({"-a", "-e", "./n.bpf.o"}), {ObjectFacts{"./n.bpf.o", {}, {}}}));
}

TEST(Plan, EveryProgramOnSamplesHasAnEventOfItsOwn) {
  const ObjectFacts object{"./p.bpf.o", {}, {"first", "second"}};
  const auto own = plan_of(options_of({"-a", "-F", "99", "-e", "./p.bpf.o"}), {object});
  ASSERT_TRUE(own);
  ASSERT_EQ(own->sample_programs.size(), 2u);
  EXPECT_EQ(own->events[0].name, "first");
  EXPECT_EQ(own->events[1].name, "second");
  EXPECT_EQ(own->events[1].attr.sample_period, 99u);
  EXPECT_EQ(own->sample_programs[1].event, 1u);
  EXPECT_EQ(own->sample_programs[1].program, "second");

  const auto named = plan_of(options_of({"-a", "-e", "faults,./p.bpf.o,cs"}), {object});
  ASSERT_TRUE(named);
  EXPECT_EQ(named->events.size(), 3u) << "two and the sideband";
  EXPECT_EQ(named->sample_programs[1].event, 1u);

  const auto few = plan_of(options_of({"-a", "-e", "faults,./p.bpf.o"}), {object});
  ASSERT_FALSE(few);
  for (const char* word :
       {"'first' (./p.bpf.o)", "'second' (./p.bpf.o)", "'faults'", "-e for each (2 in all)"}) {
    EXPECT_NE(few.error().what.find(word), std::string::npos) << few.error().what;
  }
}

TEST(Plan, NamedThreadsDoNotPassTheirEventsOn) {
  const auto threads = plan_of(options_of({"-t", "10", "-e", "cpu-clock"}), {}, {10});
  ASSERT_TRUE(threads);
  for (const PlannedEvent& event : threads->events) EXPECT_FALSE(event.attr.has(abi::kInherit)) << event.name;
  const auto processes = plan_of(options_of({"-p", "10", "-e", "cpu-clock"}), {}, {10});
  ASSERT_TRUE(processes);
  for (const PlannedEvent& event : processes->events)
    EXPECT_TRUE(event.attr.has(abi::kInherit)) << event.name;
}

TEST(Plan, AnEventThatNoMapFeedsIsSaid) {
  const auto plan = plan_of(options_of({"-a", "-e", "bpf-output/name=evt/"}));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->warnings.size(), 1u);
  EXPECT_NE(plan->warnings[0].find("event evt"), std::string::npos) << plan->warnings[0];
  const auto fed =
      plan_of(options_of({"-a", "-e", "bpf-output/name=evt/,./x.bpf.o/map:channel.event=evt/"}), {kObject});
  EXPECT_TRUE(fed->warnings.empty());
}

TEST(Plan, OneRemedyForAnUnknownEvent) {
  const auto near =
      plan_of(options_of({"-a", "-e", "bpf-output/name=evt/,./x.bpf.o/map:channel.event=evtt/"}), {kObject});
  ASSERT_FALSE(near);
  EXPECT_NE(near.error().what.find("did you mean 'evt'?"), std::string::npos) << near.error().what;
  EXPECT_EQ(near.error().what.find("add -e"), std::string::npos) << near.error().what;
}

TEST(Plan, APerThreadRingIsOfNoCpuAndOfNoChild) {
  const auto plan = plan_of(options_of({"--per-thread", "-p", "7", "-e", "cpu-clock"}), {}, {7, 8});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->cpus, std::vector<int>{-1});
  EXPECT_EQ(plan->tasks, (std::vector<int>{7, 8}));
  for (const PlannedEvent& event : plan->events) EXPECT_FALSE(event.attr.has(abi::kInherit)) << event.name;
  EXPECT_FALSE(plan_of(options_of({"--per-thread", "-p", "7", "-e", "./x.bpf.o"}), {kObject}, {7}));
}

TEST(Plan, ChildrenAreLeftOutOnDemand) {
  const auto with = plan_of(options_of({"-e", "cpu-clock", "ls"}));
  const auto without = plan_of(options_of({"-i", "-e", "cpu-clock", "ls"}));
  ASSERT_TRUE(with && without);
  EXPECT_TRUE(with->events[0].attr.has(abi::kInherit) && with->events[1].attr.has(abi::kInherit));
  EXPECT_FALSE(without->events[0].attr.has(abi::kInherit) || without->events[1].attr.has(abi::kInherit));
}

}  // namespace

namespace {

Plan plan_of_events(std::size_t events) {
  Plan plan;
  plan.events.resize(events + 1);
  plan.events.back().is_sideband = true;
  return plan;
}

std::vector<format::Fd> folders(std::size_t count) {
  std::vector<format::Fd> out;
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(open("/", O_PATH));
  return out;
}

TEST(CgroupPlan, OneGoesForAllEventsButTheSideband) {
  const auto one = folders(1);
  const auto plan = in_cgroups(plan_of_events(2), one);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->events[0].cgroup, one[0].get());
  EXPECT_EQ(plan->events[1].cgroup, one[0].get());
  EXPECT_EQ(plan->events[2].cgroup, -1);
}

TEST(CgroupPlan, SeveralAreOneForEachEvent) {
  auto three = folders(3);
  three[1] = format::Fd();
  const auto plan = in_cgroups(plan_of_events(3), three);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->events[0].cgroup, three[0].get());
  EXPECT_EQ(plan->events[1].cgroup, -1) << "an empty name takes everybody";
  EXPECT_EQ(plan->events[2].cgroup, three[2].get());
  const auto refused = in_cgroups(plan_of_events(3), folders(2));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("2 cgroups for 3 events"), std::string::npos) << refused.error().what;
}

TEST(CgroupPlan, ForEachCgroupAllEventsAreThereAgain) {
  Plan once = plan_of_events(2);
  once.events[0].name = "a";
  once.events[1].name = "b";
  once.events[0].leader = once.events[1].leader = 0;
  const auto two = folders(2);
  const auto plan = repeated_in_cgroups(std::move(once), two);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->events.size(), 5U);
  std::string names;
  for (const PlannedEvent& event : plan->events) names += event.name;
  EXPECT_EQ(names, "abab");
  EXPECT_EQ(plan->events[1].cgroup, two[0].get());
  EXPECT_EQ(plan->events[2].cgroup, two[1].get());
  EXPECT_EQ(plan->events[3].leader, std::size_t{2}) << "a group of its own";
  EXPECT_TRUE(plan->events[4].is_sideband);
  EXPECT_EQ(plan->events[4].cgroup, -1);
}

TEST(CgroupPlan, EventsOfBpfObjectsCannotBeRepeated) {
  Plan plan = plan_of_events(1);
  plan.connections.push_back({0, "map", 0});
  EXPECT_TRUE(repeated_in_cgroups(plan, folders(1)));
  const auto refused = repeated_in_cgroups(plan, folders(2));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("BPF objects are loaded once"), std::string::npos);
}

}  // namespace

}  // namespace tacho::record
