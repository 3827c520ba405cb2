#include "record/cgroup_plan.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::record {
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
  Plan plan = plan_of_events(2);
  const auto one = folders(1);
  ASSERT_TRUE(assign_cgroups(plan, one));
  EXPECT_EQ(plan.events[0].cgroup, one[0].get());
  EXPECT_EQ(plan.events[1].cgroup, one[0].get());
  EXPECT_EQ(plan.events[2].cgroup, -1);
}

TEST(CgroupPlan, SeveralAreOneForEachEvent) {
  Plan plan = plan_of_events(3);
  auto three = folders(3);
  three[1] = format::Fd();
  ASSERT_TRUE(assign_cgroups(plan, three));
  EXPECT_EQ(plan.events[0].cgroup, three[0].get());
  EXPECT_EQ(plan.events[1].cgroup, -1) << "an empty name takes everybody";
  EXPECT_EQ(plan.events[2].cgroup, three[2].get());
  const auto refused = assign_cgroups(plan, folders(2));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("2 cgroups for 3 events"), std::string::npos) << refused.error().what;
}

TEST(CgroupPlan, ForEachCgroupAllEventsAreThereAgain) {
  Plan plan = plan_of_events(2);
  plan.events[0].name = "a";
  plan.events[1].name = "b";
  plan.events[0].leader = plan.events[1].leader = 0;
  const auto two = folders(2);
  ASSERT_TRUE(repeat_in_cgroups(plan, two));
  ASSERT_EQ(plan.events.size(), 5U);
  std::string names;
  for (const PlannedEvent& event : plan.events) names += event.name;
  EXPECT_EQ(names, "abab");
  EXPECT_EQ(plan.events[1].cgroup, two[0].get());
  EXPECT_EQ(plan.events[2].cgroup, two[1].get());
  EXPECT_EQ(plan.events[3].leader, std::size_t{2}) << "a group of its own";
  EXPECT_TRUE(plan.events[4].is_sideband);
  EXPECT_EQ(plan.events[4].cgroup, -1);
}

TEST(CgroupPlan, EventsOfBpfObjectsCannotBeRepeated) {
  Plan plan = plan_of_events(1);
  plan.connections.push_back({0, "map", 0});
  EXPECT_TRUE(repeat_in_cgroups(plan, folders(1)));
  const auto refused = repeat_in_cgroups(plan, folders(2));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("BPF objects are loaded once"), std::string::npos);
}

}  // namespace
}  // namespace tacho::record
