#include "report/profile/call_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>

namespace tacho::report {
namespace {

using TreePath = std::vector<FunctionId>;

TreePath path_of(std::initializer_list<std::uint32_t> functions) {
  TreePath path;
  for (const std::uint32_t function : functions) path.push_back(FunctionId{function});
  return path;
}

struct StrandWeight {
  std::uint64_t period = 0, samples = 0, strands = 0;
};

// Functions "a", "b", ... at rising addresses of one module; each its own node.
struct Functions {
  explicit Functions(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) add(std::string(1, static_cast<char>('a' + i)), i, false);
  }
  void add(std::string name, std::uint32_t key, bool is_inlined) {
    names.push_back(std::move(name));
    Function function;
    function.named = &named.emplace_back(NamedFacts{.name = names.back(), .shown_name = names.back()});
    function.start = function.first_ip = 0x1000 + 0x10 * table.size();
    function.module_rank = 1;
    const auto known = std::ranges::find(names, names.back());
    function.name_id = id_of<NameId>(static_cast<std::uint64_t>(known - names.begin()));
    function.chain_key = ChainKeyId{key};
    function.is_inlined = is_inlined;
    table.push_back(function);
  }
  std::deque<std::string> names;
  std::deque<NamedFacts> named;
  StableArray<Function, FunctionId> table;
};

struct Strands {
  void add(TreePath frames, std::uint64_t period, std::uint64_t samples = 1) {
    paths.push_back(std::move(frames));
    strands.push_back({paths.back(), period, samples});
  }
  void add(std::initializer_list<std::uint32_t> frames, std::uint64_t period, std::uint64_t samples = 1) {
    add(path_of(frames), period, samples);
  }
  std::deque<TreePath> paths;
  std::vector<Strand> strands;
};

// "a,b(30)[c(10),d(5)]": frames, period, children.
std::string shown(const CallTree& tree, const CallNode& node,
                  const StableArray<Function, FunctionId>& functions) {
  std::string text;
  for (const FunctionId frame : node.frames) {
    if (!text.empty()) text += ',';
    text += functions[frame].name();
  }
  text += '(' + std::to_string(node.period) + ')';
  if (node.children == 0) return text;
  text += '[';
  for (const CallNode& child : tree.children(node)) {
    if (!text.ends_with('[')) text += ' ';
    text += shown(tree, child, functions);
  }
  return text + ']';
}

std::string tree_of(const Functions& functions, const Strands& strands, const CallTreeLimit& limit) {
  CallTree tree(functions.table);
  tree.build(strands.strands, limit);
  return shown(tree, tree.nodes()[0], functions.table);
}

constexpr CallTreeLimit kAll{CallTreeLimit::Share::OfTotal, 0, 0};

TEST(CallTree, FramesWithoutAChoiceAreOneNode) {
  Strands strands;
  strands.add({0, 1, 2, 3}, 5);
  strands.add({0, 1, 4}, 7);
  EXPECT_EQ(tree_of(Functions(5), strands, kAll), "(12)[a,b(12)[e(7) c,d(5)]]");
}

TEST(CallTree, AChainThatEndsInsideEndsTheNode) {
  Strands strands;
  strands.add({0, 1, 2}, 5);
  strands.add({0}, 7);
  EXPECT_EQ(tree_of(Functions(3), strands, kAll), "(12)[a(12)[b,c(5)]]");
}

TEST(CallTree, EquallyHeavySiblingsStandByNameThenModuleThenAddress) {
  Functions functions(0);
  std::deque<symbolize::Module> modules(2);
  modules[0].short_name = "libb.so";
  modules[1].short_name = "liba.so";
  const auto add = [&](const char* name, const symbolize::Module* module, std::uint64_t start) {
    functions.add(name, static_cast<std::uint32_t>(functions.table.size()), false);
    Function& function = functions.table[id_of<FunctionId>(functions.table.size() - 1)];
    function.module = module;
    function.start = function.first_ip = start;
    if (function.name().empty()) function.name_id = kNo<NameId>;
  };
  add("g", &modules[0], 0x300);
  add("f", nullptr, 0x10);
  add("f", &modules[0], 0x200);
  add("f", &modules[0], 0x100);
  add("f", &modules[1], 0x900);
  add("", &modules[0], 0x50);
  add("e", &modules[1], 0x999);
  add("z", &modules[1], 0x999);
  Strands strands;
  for (std::uint32_t i = 0; i < 7; ++i) strands.add({i}, 5);
  strands.add({7}, 6);
  CallTree tree(functions.table);
  tree.build(strands.strands, kAll);
  TreePath order;
  for (const CallNode& child : tree.children(tree.nodes()[0])) order.push_back(child.frames[0]);
  EXPECT_EQ(order, path_of({7, 6, 4, 3, 2, 1, 0, 5}));
}

TEST(CallTree, InPerfsOrderTheHigherOfEquallyHeavySiblingsStandsFirst) {
  const Functions functions(3);
  Strands strands;
  for (std::uint32_t i = 0; i < 3; ++i) strands.add({i}, 5);
  CallTree tree(functions.table, ChainKey::Function, nullptr, SiblingOrder::AsPerf);
  tree.build(strands.strands, kAll);
  EXPECT_EQ(shown(tree, tree.nodes()[0], functions.table), "(15)[c(5) b(5) a(5)]");
}

TEST(CallTree, WithTheKeySourceLineEqualNamesStandByLine) {
  Functions functions(0);
  std::deque<RareFacts> lines;
  for (const char* line : {"b.c:7", "a.c:1", ""}) {
    functions.add("f", static_cast<std::uint32_t>(functions.table.size()), false);
    Function function = functions.table[id_of<FunctionId>(functions.table.size() - 1)];
    NamedFacts named = *function.named;
    named.rare = &lines.emplace_back(RareFacts{.line = line});
    function.named = &functions.named.emplace_back(named);
    function.has_line = !function.line().empty();
    function.chain_key = ChainKeyId{value_of(function.chain_key) + 3};
    functions.table.push_back(function);
  }
  Strands strands;
  for (const std::uint32_t id : {1, 3, 5}) strands.add({id}, 5);
  CallTree tree(functions.table, ChainKey::SourceLine);
  tree.build(strands.strands, kAll);
  std::vector<std::string_view> order;
  for (const CallNode& child : tree.children(tree.nodes()[0]))
    order.push_back(functions.table[child.frames[0]].line());
  EXPECT_EQ(order, (std::vector<std::string_view>{"", "a.c:1", "b.c:7"}));
  CallTree as_perf(functions.table, ChainKey::SourceLine, nullptr, SiblingOrder::AsPerf);
  as_perf.build(strands.strands, kAll);
  order.clear();
  for (const CallNode& child : as_perf.children(as_perf.nodes()[0]))
    order.push_back(functions.table[child.frames[0]].line());
  EXPECT_EQ(order, (std::vector<std::string_view>{"", "b.c:7", "a.c:1"}));
}

TEST(CallTree, TheLimitIsOfTheTotalRoundedDown) {
  Strands strands;
  strands.add({0}, 199);
  strands.add({1}, 10);
  strands.add({2}, 9);
  // 5 % of 218 are 10.9.
  EXPECT_EQ(tree_of(Functions(3), strands, {CallTreeLimit::Share::OfTotal, 5, 218}), "(218)[a(199) b(10)]");
}

TEST(CallTree, OrOfWhatSiblingsWeighTogetherRoundedUp) {
  Strands strands;
  strands.add({0}, 1000);  // does not count: it ends above
  strands.add({0, 1}, 188);
  strands.add({0, 2}, 11);
  strands.add({0, 3}, 10);
  // 5 % of 209 are 10.45.
  EXPECT_EQ(tree_of(Functions(4), strands, {CallTreeLimit::Share::OfParent, 5, 0}),
            "(1209)[a(1209)[b(188) c(11)]]");
}

TEST(CallTree, WithALimitOfItselfTheWayToAHeavyEndIsMade) {
  Strands strands;
  strands.add({0}, 1);
  strands.add({0, 1}, 30);
  strands.add({0, 2}, 2);
  EXPECT_EQ(tree_of(Functions(3), strands, {CallTreeLimit::Share::OfItself, 10, 33}), "(33)[a(33)[b(30)]]");
}

// Functions of one name are different nodes, but an inlined call of that name is the same node as one of
// them.
TEST(CallTree, AnInlinedCallJoinsTheFunctionOfItsNameThatCameFirst) {
  Functions functions(0);
  functions.add("f", 0, false);
  functions.add("f", 1, false);
  functions.add("f", 2, true);
  Strands strands;
  strands.add({0}, 1);
  strands.add({1}, 2);
  strands.add({2}, 4);
  EXPECT_EQ(tree_of(functions, strands, kAll), "(7)[f(5) f(2)]");
  Strands inlined_first;
  inlined_first.add({2}, 4);
  inlined_first.add({1}, 2);
  inlined_first.add({0}, 1);
  EXPECT_EQ(tree_of(functions, inlined_first, kAll), "(7)[f(7)]");
}

TEST(CallTree, WithoutFramesThereIsNoTree) {
  Strands strands;
  strands.add({}, 4);
  EXPECT_EQ(tree_of(Functions(1), strands, kAll), "(0)");
  EXPECT_EQ(tree_of(Functions(1), Strands(), kAll), "(0)");
}

// What a tree must be, computed from every prefix of every chain.
class Naive {
 public:
  explicit Naive(const Strands& strands) {
    for (const Strand& strand : strands.strands) {
      if (strand.frames.empty()) continue;
      const TreePath path(strand.frames.begin(), strand.frames.end());
      for (std::size_t size = 0; size <= path.size(); ++size) {
        const TreePath prefix(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(size));
        add(through_[prefix], strand);
        if (size > 0) ways_[TreePath(prefix.begin(), prefix.end() - 1)][prefix.back()] = 0;
      }
      add(ending_[path], strand);
    }
  }
  void check(const CallTree& tree, const CallNode& node, TreePath path, const CallTreeLimit& limit) {
    for (std::size_t i = 0; i < node.frames.size(); ++i) {
      if (i > 0) {
        ASSERT_EQ(ways_[path].size(), 1u) << "a node goes on where chains part";
        ASSERT_EQ(ending_[path].strands, 0u) << "a node goes on where a chain ends";
      }
      path.push_back(node.frames[i]);
      ASSERT_EQ(node.period, through_[path].period);
      ASSERT_EQ(node.samples, through_[path].samples);
    }
    ASSERT_EQ(node.own_period, ending_[path].period);
    ASSERT_EQ(node.own_samples, ending_[path].samples);
    if (!path.empty()) {
      ASSERT_TRUE(ways_[path].size() != 1 || ending_[path].strands > 0) << "a node ends without need";
    }
    ++nodes_;
    check_children(tree, node, path, limit);
  }
  std::size_t nodes() const { return nodes_; }

 private:
  static void add(StrandWeight& weight, const Strand& strand) {
    weight.period += strand.period;
    weight.samples += strand.samples;
    ++weight.strands;
  }
  void check_children(const CallTree& tree, const CallNode& node, const TreePath& path,
                      const CallTreeLimit& limit) {
    const std::uint64_t least = limit.least(node.period - node.own_period);
    std::size_t heavy = 0;
    for (const auto& [frame, unused] : ways_[path]) {
      TreePath longer = path;
      longer.push_back(frame);
      heavy += through_[longer].period >= least;
    }
    const auto children = tree.children(node);
    ASSERT_EQ(children.size(), heavy);
    ASSERT_TRUE(std::ranges::is_sorted(children, [](const CallNode& a, const CallNode& b) {
      return a.period != b.period ? a.period > b.period : a.frames[0] < b.frames[0];
    }));
    for (const CallNode& child : children) {
      ASSERT_EQ(&tree.nodes()[child.parent], &node);
      ASSERT_FALSE(child.frames.empty());
      check(tree, child, path, limit);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  std::map<TreePath, StrandWeight> through_, ending_;
  std::map<TreePath, std::map<FunctionId, int>> ways_;
  std::size_t nodes_ = 0;
};

TEST(CallTree, IsWhatANaiveComputationGivesOnRandomChains) {
  std::mt19937 random(20261122);
  const auto below = [&](std::size_t end) { return static_cast<std::uint32_t>(random() % end); };
  const Functions functions(6);
  CallTree tree(functions.table);
  std::size_t nodes = 0;
  for (int round = 0; round < 1000; ++round) {
    Strands strands;
    std::uint64_t total = 0;
    const std::uint32_t alphabet = 1 + below(6);
    for (std::uint32_t count = below(60); count > 0; --count) {
      TreePath path;
      for (std::uint32_t size = below(12); size > 0; --size)
        path.push_back(FunctionId{below(alphabet)});  // they recur
      if (!strands.paths.empty() && below(3) == 0) path = strands.paths[below(strands.paths.size())];
      strands.add(path, below(40), 1 + below(4));
      total += strands.strands.back().period;
    }
    const CallTreeLimit limit{round % 2 == 0 ? CallTreeLimit::Share::OfTotal : CallTreeLimit::Share::OfParent,
                              static_cast<double>(below(4)) * 1.3, total};
    tree.build(strands.strands, limit);
    Naive naive(strands);
    naive.check(tree, tree.nodes()[0], {}, limit);
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
    ASSERT_EQ(naive.nodes(), tree.nodes().size()) << "nodes that belong nowhere";
    nodes += tree.nodes().size();
  }
  EXPECT_GT(nodes, 20000u);
}

TEST(CallTree, AChainOfManyThousandFramesIsNoTrouble) {
  Strands strands;
  for (std::size_t size : {8000, 4000, 12000}) strands.add(TreePath(size), 3);
  EXPECT_TRUE(tree_of(Functions(1), strands, kAll).ends_with("a(3)]]]"));
}

}  // namespace
}  // namespace tacho::report
