#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "report/views/page/page_samples.h"

namespace tacho::report {
namespace {

struct MadeTree {
  PageTexts texts;
  PageTree tree;
  std::uint32_t frame(const std::string& name) {
    return tree.frame_of({texts.number_of(name), 0, PageKind::User});
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

TEST(PageColumns, NumbersAreLeb128AndZigzag) {
  PageColumn numbers("n", ColumnForm::Numbers), signs("s", ColumnForm::Signed),
      steps("d", ColumnForm::Differences);
  numbers.add(127);
  numbers.add(300);
  EXPECT_EQ(numbers.bytes(), std::string("\x7f\xac\x02"));
  for (const std::int64_t number : {0, -1, 1}) signs.add_signed(number);
  EXPECT_EQ(signs.bytes(), std::string("\0\1\2", 3));
  for (const std::int64_t number : {5, 4, 6}) steps.add_signed(number);
  EXPECT_EQ(steps.bytes(), std::string("\x0a\x01\x04"));
  PageColumn far("f", ColumnForm::Signed);
  far.add_signed(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(far.bytes(), std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
}

TEST(PageColumns, Base64HasItsPadding) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace tacho::report
