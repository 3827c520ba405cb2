#include "report/profile/profile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tacho::report {
namespace {

// Samples without a session: what the profile looks at.
struct Case {
  format::EventSet events;
  format::Sample raw;
  std::string_view dd = "dd", ls = "ls";
  Thread one{1, 1, dd}, two{2, 2, ls};
  Location here, there;
  std::vector<LocationId> frames{LocationId{0}, LocationId{1}};
  Stack stack;

  Case() {
    there.id = LocationId{1};
    stack.frames = frames;
  }

  ResolvedSample sample(const Thread& thread, const Location& location, const Stack* with,
                        std::size_t event = 0) {
    ResolvedSample made;
    made.fields = &raw;
    made.event_index = event;
    made.thread = &thread;
    made.comm = thread.comm;
    made.location = &location;
    made.location_id = location.id;
    made.stack = with;
    return made;
  }
};

TEST(Profile, HoldsEachDistinctCombinationOnce) {
  Case c;
  Profile profile({{0, 1}}, {});
  for (int i = 0; i < 3; ++i) profile.add_sample(c.sample(c.one, c.here, &c.stack), 10);
  profile.add_sample(c.sample(c.two, c.here, &c.stack), 1);
  profile.add_sample(c.sample(c.one, c.here, nullptr), 1);
  profile.add_sample(c.sample(c.one, c.there, &c.stack), 1);
  profile.add_sample(c.sample(c.two, c.here, &c.stack), 1);
  ASSERT_EQ(profile.rows().size(), 4U);
  EXPECT_EQ(profile.weights(profile.rows()[RowId{0}])[0].period, 30U);
  EXPECT_EQ(profile.weights(profile.rows()[RowId{0}])[0].samples, 3U);
  EXPECT_EQ(profile.rows()[RowId{1}].comm(), "ls");
  EXPECT_EQ(profile.weights(profile.rows()[RowId{1}])[0].samples, 2U);
}

TEST(Profile, LeavesOutEventsThatItWasNotToldOf) {
  Case c;
  Profile profile({{0, 1}, {1, 2}}, {});
  for (const std::size_t event : {2U, 3U, 1000000U})
    profile.add_sample(c.sample(c.one, c.here, &c.stack, event), 1);
  EXPECT_EQ(profile.rows().size(), 1U);
  EXPECT_EQ(profile.left_out(), 2U);
}

TEST(Profile, KnowsTheRowsOfEachBlock) {
  Case c;
  Profile profile({{0, 1}, {1, 2}, {3, 1}}, {});
  for (const std::size_t event : {1U, 0U, 2U})
    profile.add_sample(c.sample(c.one, c.here, &c.stack, event), 1);
  profile.add_sample(c.sample(c.two, c.here, &c.stack, 2), 1);
  EXPECT_TRUE(std::ranges::equal(profile.rows_of(BlockId{0}), std::vector{RowId{1}}));
  EXPECT_TRUE(std::ranges::equal(profile.rows_of(BlockId{1}), std::vector{RowId{0}, RowId{2}}));
  EXPECT_TRUE(profile.rows_of(BlockId{2}).empty());
}

TEST(Profile, TellsApartOnlyWhatItIsAskedTo) {
  Case c;
  ProfileShape shape;
  shape.by_stack = shape.by_comm = false;
  Profile profile({{0, 1}}, shape);
  profile.add_sample(c.sample(c.one, c.here, &c.stack), 1);
  profile.add_sample(c.sample(c.two, c.here, nullptr), 1);
  EXPECT_EQ(profile.rows().size(), 1U);
  ProfileShape by_thread;
  by_thread.by_comm = false;
  by_thread.by_thread = true;
  Profile threads({{0, 1}}, by_thread);
  threads.add_sample(c.sample(c.one, c.here, &c.stack), 1);
  threads.add_sample(c.sample(c.two, c.here, &c.stack), 1);
  EXPECT_EQ(threads.rows().size(), 2U);
}

TEST(Profile, EventsOfAGroupShareRowsWithAWeightEach) {
  Case c;
  Profile profile({{0, 1}, {1, 2}}, {});
  profile.add_sample(c.sample(c.one, c.here, &c.stack, 2), 7);
  profile.add_sample(c.sample(c.one, c.here, &c.stack, 1), 5);
  profile.add_sample(c.sample(c.one, c.here, &c.stack, 0), 3);
  ASSERT_EQ(profile.rows().size(), 2U);
  EXPECT_EQ(profile.rows()[RowId{0}].block, BlockId{1});
  EXPECT_EQ(profile.weights(profile.rows()[RowId{0}])[0].period, 5U);
  EXPECT_EQ(profile.weights(profile.rows()[RowId{0}])[1].period, 7U);
  EXPECT_EQ(profile.weights(profile.rows()[RowId{1}])[0].period, 3U);
}

TEST(Profile, FactsTellRowsApart) {
  Case c;
  ProfileShape shape;
  shape.facts = {[](const ResolvedSample& s) -> std::uint64_t { return s.fields->cpu; },
                 [](const ResolvedSample& s) -> std::uint64_t { return s.fields->time / 10; }};
  Profile profile({{0, 1}}, std::move(shape));
  for (const auto& [cpu, time] : {std::pair(0U, 10U), {1U, 10U}, {0U, 19U}, {0U, 20U}, {1U, 11U}}) {
    c.raw.cpu = cpu;
    c.raw.time = time;
    profile.add_sample(c.sample(c.one, c.here, &c.stack), 1);
  }
  ASSERT_EQ(profile.rows().size(), 3U);
  EXPECT_EQ(profile.facts(profile.rows()[RowId{1}])[0], 1U);
  EXPECT_EQ(profile.facts(profile.rows()[RowId{2}])[1], 2U);
  EXPECT_EQ(profile.weights(profile.rows()[RowId{0}])[0].samples, 2U);
}

}  // namespace
}  // namespace tacho::report
