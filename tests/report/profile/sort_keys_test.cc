#include "report/profile/sort_keys.h"

#include <gtest/gtest.h>

namespace tacho::report {
namespace {

using Needs = SortKey::Needs;

TEST(SortKeys, AKeyOrItsAbbreviationNeedsWhatItsRowSays) {
  EXPECT_TRUE(names_key_with("comm,srcline", Needs::SourceLines));
  EXPECT_TRUE(names_key_with("+src", Needs::SourceLines));
  EXPECT_TRUE(names_key_with("sym, srcline_from", Needs::SourceLines));
  EXPECT_TRUE(names_key_with("{comm,cgroup_id}", Needs::Cgroups));
  EXPECT_TRUE(names_key_with("paral", Needs::Switches));
}

TEST(SortKeys, AFieldWhoseNameContainsAKeyNeedsNothing) {
  for (const Needs needs : {Needs::SourceLines, Needs::Switches, Needs::Cgroups}) {
    EXPECT_FALSE(names_key_with("src_port", needs));
    EXPECT_FALSE(names_key_with("net:net_dev_xmit.my_cgroup,tcp.parallelism", needs));
    EXPECT_FALSE(names_key_with("", needs));
  }
}

}  // namespace
}  // namespace tacho::report
