#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "report/views/flamegraph/flame_graph.h"
#include "report/views/flamegraph/flame_stacks.h"

namespace tacho::report {
namespace {

struct Graph {
  FlameFrames frames;
  FlameTree tree{frames.number_of("all", "", FrameKind::All)};

  std::uint32_t frame(std::string_view name) { return frames.number_of(name, "m", FrameKind::User); }
  void add(const std::vector<std::string_view>& names, double after, double before = 0) {
    std::vector<std::uint32_t> stack;
    for (const auto name : names) stack.push_back(frame(name));
    tree.add_stack(stack, {before, after});
  }
  std::string drawn(const FlameDrawing& drawing) const {
    std::string text;
    for (const DrawnFrame& one : drawing.frames)
      text += std::string(frames[tree.nodes()[one.node].frame].name) + "@" + std::to_string(one.row) + "," +
              std::to_string(static_cast<int>(one.x)) + "+" +
              std::to_string(static_cast<int>(tree.nodes()[one.node].width)) + " ";
    return text;
  }
};

TEST(FlameTree, ChildrenStandByNameAndAreAsWideAsTheirStacks) {
  Graph graph;
  graph.add({"main", "b"}, 3);
  graph.add({"main"}, 2);
  graph.add({"main", "a", "c"}, 5);
  graph.add({"main", "b"}, 1);
  graph.tree.add_up(WidthOf::After);
  EXPECT_EQ(graph.drawn(choose_frames(graph.tree, graph.frames, {0, 100, 100})),
            "all@0,0+11 main@1,0+11 a@2,0+5 c@3,0+5 b@2,5+4 ");
}

TEST(FlameTree, FramesThatAreTooThinAreCounted) {
  Graph graph;
  graph.add({"main", "a"}, 999);
  graph.add({"main", "b", "c"}, 1);
  graph.add({"main", "d"}, 0);
  graph.tree.add_up(WidthOf::After);
  const auto drawing = choose_frames(graph.tree, graph.frames, {0.01, 100, 1});
  EXPECT_EQ(graph.drawn(drawing), "all@0,0+1000 main@1,0+1000 a@2,0+999 ");
  ASSERT_EQ(drawing.thin.size(), 1u) << "at most one was asked for";
  EXPECT_EQ(graph.frames[graph.tree.nodes()[drawing.thin[0].node].frame].name, "b");
  EXPECT_EQ(drawing.thin[0].caller, 1u) << "main is the second drawn frame";
  EXPECT_EQ(drawing.left_out, 1u) << "c; d weighs nothing, and nobody misses it";
  EXPECT_EQ(drawing.left_out_width, 1);
}

TEST(FlameTree, GapsAreWhereCalleesAreTooThin) {
  Graph graph;
  graph.add({"main", "a"}, 900);
  graph.add({"main", "b", "c"}, 4);
  graph.add({"main", "d"}, 6);
  graph.add({"main", "a", "e"}, 1);
  graph.add({"main"}, 89);
  graph.tree.add_up(WidthOf::After);
  const auto drawing = choose_frames(graph.tree, graph.frames, {0.02, 100, 1, 0.005});
  EXPECT_EQ(graph.drawn(drawing), "all@0,0+1000 main@1,0+1000 a@2,0+901 ");
  ASSERT_EQ(drawing.gaps.size(), 1u) << "below a is less than asked for";
  EXPECT_EQ(drawing.gaps[0].row, 2u);
  EXPECT_EQ(drawing.gaps[0].x, 901);
  EXPECT_EQ(drawing.gaps[0].width, 10) << "main's own weight is no gap";
  EXPECT_EQ(drawing.gaps[0].count, 2u);
  EXPECT_EQ(drawing.rows, 3u);
}

TEST(FlameTree, OfTooManyFramesTheWidestStayAndNoneLosesItsCaller) {
  Graph graph;
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back("f" + std::to_string(i));
  for (std::size_t i = 0; i < names.size(); ++i)
    graph.add({"main", names[i], names[(i * 7) % 300], "leaf"}, static_cast<double>(i % 17 + 1));
  graph.tree.add_up(WidthOf::After);
  const auto drawing = choose_frames(graph.tree, graph.frames, {0, 250, 1000});
  ASSERT_EQ(drawing.frames.size(), 250u);
  std::vector<bool> is_drawn(graph.tree.nodes().size());
  double thinnest = 1e9;
  for (const DrawnFrame& one : drawing.frames) {
    is_drawn[one.node] = true;
    const auto& node = graph.tree.nodes()[one.node];
    EXPECT_TRUE(node.parent == FlameTree::kNone || is_drawn[node.parent]);
    thinnest = std::min(thinnest, node.width);
  }
  for (std::size_t i = 0; i < is_drawn.size(); ++i)
    EXPECT_TRUE(is_drawn[i] || graph.tree.nodes()[i].width <= thinnest);
}

TEST(FlameTree, TheLargerAndTheCommonPartAreThoseOfEachStack) {
  const auto width = [](WidthOf of) {
    Graph graph;
    graph.add({"main", "a"}, 0, 8);
    graph.add({"main", "a"}, 2);
    graph.add({"main", "b"}, 6, 1);
    graph.tree.add_up(of);
    return graph.tree.width();
  };
  EXPECT_EQ(width(WidthOf::After), 8);
  EXPECT_EQ(width(WidthOf::Before), 9);
  EXPECT_EQ(width(WidthOf::Larger), 8 + 6);
  EXPECT_EQ(width(WidthOf::Common), 2 + 1);
}

TEST(FlameTree, AStackOfHundredThousandFramesIsOne) {
  Graph graph;
  std::vector<std::uint32_t> stack(100'000);
  for (std::size_t i = 0; i < stack.size(); ++i) stack[i] = graph.frame(i % 2 == 0 ? "even" : "odd");
  graph.tree.add_stack(stack, {0, 1});
  graph.tree.add_stack(stack, {0, 1});
  graph.tree.add_up(WidthOf::After);
  const auto drawing = choose_frames(graph.tree, graph.frames, {0, 20'000, 0});
  EXPECT_EQ(drawing.rows, 20'001u) << "the last one is the gap of those that are left out";
  EXPECT_EQ(drawing.left_out, 80'001u);
}

TEST(FoldedText, EndingsSayWhatAFrameIsAndFaultsAreCounted) {
  std::istringstream in(
      "a;b_[k];c_[i] 10\n# a comment\n\nno number\nx;[libc.so.6];d_[j] 2.5\nbefore;after 3 4\nneg -1\n;; "
      "1\n");
  FlameFrames frames;
  std::string seen;
  const FoldedText read =
      read_folded_text(in, false, frames, [&](std::span<const std::uint32_t> stack, FlameWeight w) {
        for (const auto frame : stack)
          seen += std::string(frames[frame].name) + static_cast<char>(frames[frame].kind) + ";";
        seen += std::to_string(w.before).substr(0, 3) + "," + std::to_string(w.after).substr(0, 4) + " ";
        return true;
      });
  EXPECT_EQ(seen, "au;bk;ci;0.0,10.0 xu;[libc.so.6]n;dj;0.0,2.50 beforeu;afteru;3.0,4.00 u;u;u;0.0,1.00 ");
  EXPECT_EQ(read.lines, 8u);
  EXPECT_EQ(read.faults, 2u);
  EXPECT_EQ(read.first_fault, 4u);
}

}  // namespace
}  // namespace tacho::report
