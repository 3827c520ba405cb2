#include "report/samples/event_switch.h"

#include <gtest/gtest.h>

namespace tacho::report {
namespace {

const std::vector<std::string> kEvents{"clock", "start", "stop"};

// Which of the samples of these events pass, by their places in the row.
std::vector<std::size_t> passing(SwitchOptions options, const std::vector<std::size_t>& events) {
  EventSwitch view(std::move(options));
  EXPECT_TRUE(view.find_events(kEvents));
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < events.size(); ++i) {
    ResolvedSample sample;
    sample.event_index = events[i];
    if (view.accepts(sample)) places.push_back(i);
  }
  return places;
}

using Places = std::vector<std::size_t>;

TEST(EventSwitch, NothingIsSeenBeforeTheEventThatTurnsItOn) {
  EXPECT_EQ(passing({.on = "start"}, {0, 2, 1, 0, 1, 2}), (Places{3, 4, 5}));
}

TEST(EventSwitch, BetweenTwoEventsAndAgain) {
  const SwitchOptions both{.on = "start", .off = "stop"};
  EXPECT_EQ(passing(both, {0, 1, 0, 2, 0, 1, 0}), (Places{2, 6}));
  EXPECT_EQ(passing({.on = "start", .off = "stop", .shows_switches = true}, {0, 1, 0, 2, 0, 1, 0}),
            (Places{1, 2, 3, 5, 6}));
}

TEST(EventSwitch, AnEventThatOnlyTurnsOffIsLeftOutOnce) {
  EXPECT_EQ(passing({.off = "stop"}, {0, 2, 0, 2}), (Places{0, 2, 3}));  // as perf has it
}

TEST(EventSwitch, WithoutEventsEverythingPasses) { EXPECT_EQ(passing({}, {0, 1, 2}), (Places{0, 1, 2})); }

TEST(EventSwitch, AnEventThatIsNotThereIsAnErrorOfTheUse) {
  EventSwitch view({.off = "nosuch"});
  const auto found = view.find_events(kEvents);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().fault, Fault::Use);
  EXPECT_TRUE(found.error().what.starts_with("--switch-off: "));
}

}  // namespace
}  // namespace tacho::report
