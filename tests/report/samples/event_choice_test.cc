#include "report/samples/event_choice.h"

#include <gtest/gtest.h>

#include "report/samples/filter.h"

namespace tacho::report {
namespace {

using EventNames = std::vector<std::string>;

// What a list means, joined by blanks; "?X" when X is the name of none.
std::string meant(std::string_view list, const EventNames& names) {
  const EventChoice choice = choose_events(parse_name_list(list), names);
  std::string text;
  for (const std::string& name : choice.names(names)) text.append(text.empty() ? "" : " ").append(name);
  if (choice.unknown) text.append(text.empty() ? "?" : " ?").append(*choice.unknown);
  return text;
}

TEST(EventChoice, NamesInAListMayHaveCommas) {
  const EventNames names{"cpu/mem-loads,ldlat=30/P", "page-faults", "a", "a,b"};
  EXPECT_EQ(meant("page-faults,cpu/mem-loads,ldlat=30/P", names), "cpu/mem-loads,ldlat=30/P page-faults");
  EXPECT_EQ(meant("page-faults", names), "page-faults");
  EXPECT_EQ(meant("cpu/mem-loads,ldlat=3", names), "?cpu/mem-loads");
  EXPECT_EQ(meant("page-faults,cpu/mem-loads,page-faults", names), "page-faults ?cpu/mem-loads");
  EXPECT_EQ(meant("a,b", names), "a a,b");
  EXPECT_EQ(meant("b,a", names), "a ?b");
  EXPECT_EQ(meant("", names), "?");
}

TEST(EventChoice, ANameWithoutModifiersIsTheEventThatHasSome) {
  const EventNames names{"cycles:u", "cpu-clock:pppH", "sched:sched_switch", "cpu/mem-loads,ldlat=30/P",
                         "raw 0x1c2:u"};
  EXPECT_EQ(meant("cycles", names), "cycles:u");
  EXPECT_EQ(meant("cpu-clock,cycles", names), "cycles:u cpu-clock:pppH");
  EXPECT_EQ(meant("cpu/mem-loads,ldlat=30/", names), "cpu/mem-loads,ldlat=30/P");
  EXPECT_EQ(meant("raw 0x1c2", names), "raw 0x1c2:u");
  EXPECT_EQ(meant("sched", names), "?sched") << "a tracepoint's group is no event";
  EXPECT_EQ(meant("cpu/mem-loads,ldlat=30", names), "?cpu/mem-loads");
  EXPECT_EQ(meant("cycles:k", names), "?cycles:k");
  EXPECT_EQ(meant("cpu-clock", {"cpu-clock/freq=499/", "cycles"}), "cpu-clock/freq=499/");
}

TEST(EventChoice, ATracepointNeedsNoSubsystem) {
  const EventNames names{"sched:sched_switch", "cycles:u", "sched:sched_wakeup"};
  EXPECT_EQ(meant("sched_switch", names), "sched:sched_switch");
  EXPECT_EQ(meant("sched_wakeup,cycles", names), "cycles:u sched:sched_wakeup");
  EXPECT_EQ(meant("u", names), "?u");
  EXPECT_EQ(meant("sched_switch", {"sched:sched_switch:u", "sched:sched_wakeup"}), "sched:sched_switch:u");
  EXPECT_EQ(find_event("sched_wakeup", names), 2u);
}

TEST(EventChoice, WhoHasTheWholeNameGoesFirst) {
  const EventNames names{"cycles:u", "cycles", "cycles:k"};
  EXPECT_EQ(meant("cycles", names), "cycles");
  EXPECT_EQ(meant("cycles:u", names), "cycles:u");
  EXPECT_EQ(meant("cycles", {"cycles:u", "cycles:k"}), "cycles:u cycles:k");
}

TEST(EventChoice, PatternsAreThoseOfAShell) {
  const EventNames names{"sched:sched_switch", "sched:sched_wakeup", "block:block_rq_issue", "odd*name",
                         "a,b"};
  EXPECT_EQ(meant("sched:*", names), "sched:sched_switch sched:sched_wakeup");
  EXPECT_EQ(meant("*_wake??,block:*", names), "sched:sched_wakeup block:block_rq_issue");
  EXPECT_EQ(meant("[bs]*:*_[isr]*", names), "sched:sched_switch block:block_rq_issue");
  EXPECT_EQ(meant("odd*name", names), "odd*name") << "a name that looks like a pattern";
  EXPECT_EQ(meant("a*", names), "a,b");
  EXPECT_EQ(meant("net:*", names), "?net:*");
}

TEST(EventChoice, OneEventIsFoundWhereOneIsMeant) {
  const EventNames names{"cycles:u", "sched:sched_switch", "sched:sched_wakeup"};
  EXPECT_EQ(find_event("cycles", names), 0u);
  EXPECT_EQ(find_event("sched:sched_wakeup", names), 2u);
  EXPECT_EQ(find_event("*switch", names), 1u);
  EXPECT_EQ(find_event("sched:*", names), std::nullopt);
  EXPECT_EQ(find_event("cycles,sched:sched_switch", names), std::nullopt);
  EXPECT_EQ(find_event("", names), std::nullopt);
  EXPECT_EQ(not_one_event("--x", "sched:*", names).what,
            "--x: 'sched:*' means 2 events: sched:sched_switch, sched:sched_wakeup; name one of them");
  EXPECT_EQ(not_one_event("--x", "cycle", names).what,
            "--x: there is no event 'cycle'; did you mean 'cycles'?");
  EXPECT_EQ(not_one_event("--x", std::string(1000, 'y'), names).what,
            "--x: there is no event '" + std::string(97, 'y') +
                "...'; it has cycles:u, sched:sched_switch, sched:sched_wakeup");
}

TEST(EventChoice, AFilterTakesEventsThatComeLater) {
  format::EventSet events;
  const auto add = [&](const char* name, std::uint64_t id) {
    format::Event event;
    event.name = name;
    event.ids = {id};
    events.add_event(std::move(event));
  };
  add("cycles:u", 1);
  EventFilter all, some(parse_name_list("cycles,inst*"));
  EXPECT_TRUE(all.takes(events, 0));
  EXPECT_TRUE(some.takes(events, 0));
  add("instructions", 2);
  add("branches", 3);
  EXPECT_TRUE(some.takes(events, 1));
  EXPECT_FALSE(some.takes(events, 2));
  EXPECT_TRUE(some.takes(events, 0));
}

const std::vector<std::string> kEvents{"clock", "start", "stop"};

// Which of the samples of these events pass, by index.
std::vector<std::size_t> passing(SwitchOptions options, const std::vector<std::size_t>& events) {
  EventSwitch view(std::move(options));
  EXPECT_TRUE(view.find_events(kEvents));
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0; i < events.size(); ++i) {
    ResolvedSample sample;
    sample.event_index = events[i];
    if (view.accepts(sample)) indexes.push_back(i);
  }
  return indexes;
}

using Indexes = std::vector<std::size_t>;

TEST(EventSwitch, NothingIsSeenBeforeTheEventThatTurnsItOn) {
  EXPECT_EQ(passing({.on = "start"}, {0, 2, 1, 0, 1, 2}), (Indexes{3, 4, 5}));
}

TEST(EventSwitch, BetweenTwoEventsAndAgain) {
  const SwitchOptions both{.on = "start", .off = "stop"};
  EXPECT_EQ(passing(both, {0, 1, 0, 2, 0, 1, 0}), (Indexes{2, 6}));
  EXPECT_EQ(passing({.on = "start", .off = "stop", .shows_switches = true}, {0, 1, 0, 2, 0, 1, 0}),
            (Indexes{1, 2, 3, 5, 6}));
}

TEST(EventSwitch, AnEventThatOnlyTurnsOffIsLeftOutOnce) {
  EXPECT_EQ(passing({.off = "stop"}, {0, 2, 0, 2}), (Indexes{0, 2, 3}));  // as perf has it
}

TEST(EventSwitch, WithoutEventsEverythingPasses) { EXPECT_EQ(passing({}, {0, 1, 2}), (Indexes{0, 1, 2})); }

TEST(EventSwitch, AnEventThatIsNotThereIsAnErrorOfTheUse) {
  EventSwitch view({.off = "nosuch"});
  const auto found = view.find_events(kEvents);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().fault, Fault::Use);
  EXPECT_TRUE(found.error().what.starts_with("--switch-off: "));
}

}  // namespace
}  // namespace tacho::report
