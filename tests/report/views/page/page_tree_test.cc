#include "report/views/page/page_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::report {
namespace {

struct MadeTree {
  PageTexts texts;
  PageTree tree;
  std::uint32_t frame(const std::string& name) {
    return tree.frame_of({texts.number_of(name), 0, FrameKind::User});
  }
  std::uint32_t node(const std::vector<std::string>& names) {
    std::vector<std::uint32_t> chain;
    for (const std::string& name : names) chain.push_back(frame(name));
    return tree.node_of(chain);
  }
};

TEST(PageTree, EqualChainsAreOneNode) {
  MadeTree made;
  const auto first = made.node({"main", "read"});
  made.node({"main", "write"});
  EXPECT_EQ(made.node({"main", "read"}), first);
  EXPECT_EQ(made.tree.nodes().size(), 4u);
  EXPECT_EQ(made.node({}), 0u);
}

TEST(PageTree, CalleesStandBeforeTheirCallersAndByName) {
  MadeTree made;
  made.node({"main", "write", "lock"});
  made.node({"main", "read"});
  made.node({"aaa"});
  std::string shown;
  for (const std::uint32_t node : made.tree.order(made.texts).nodes)
    shown += std::string(made.texts[made.tree.frames()[made.tree.nodes()[node].frame].name]) + " ";
  EXPECT_EQ(shown, "aaa read lock write main  ");
}

TEST(PageTree, DepthIsNoRecursion) {
  MadeTree made;
  std::vector<std::uint32_t> chain(1'000'000, made.frame("f"));
  const auto node = made.tree.node_of(chain);
  const PageTree::Order order = made.tree.order(made.texts);
  EXPECT_EQ(order.positions[node], 0u);
  EXPECT_EQ(order.positions[0], chain.size());
}

}  // namespace
}  // namespace tacho::report
