#include "record/cgroup_plan.h"

#include <fcntl.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tacho::record
