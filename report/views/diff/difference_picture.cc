#include "report/views/diff/difference_picture.h"

#include <fmt/format.h>

#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/message_text.h"
#include "format/base/printable.h"
#include "report/output/quantity_text.h"
#include "report/views/flamegraph/flame_graph.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMostFrames = 20'000;   // more would make browsers slow
constexpr std::size_t kMostThin = 1'000'000;  // frames that are searched and not drawn
constexpr unsigned kWidth = 1200;             // px
constexpr double kLeastWidth = 0.3;           // px

// One event.
struct Graph {
  FlameTree tree, gone;
  FlameWeight all;
};

class DifferencePicture {
 public:
  explicit DifferencePicture(const Comparison& comparison) : comparison_(comparison) {
    root_ = frames_.number_of("all", "", FrameKind::All);
    for (const ComparedFunction& function : comparison.functions())
      numbers_.push_back(frames_.number_of(format::printable(function.name),
                                           format::printable(function.module),
                                           function.is_kernel ? FrameKind::Kernel : FrameKind::User));
    look_.title = "Flame graph of a difference";
    look_.palette = "change";
    look_.is_difference = true;
    look_.width = kWidth;
    look_.least = kLeastWidth;
    for (const bool is_after : {false, true}) note_captures(is_after);
    const ComparisonQuestion& question = comparison.question();
    if (question.is_of_shares()) return;
    look_.per = question.per.empty() ? "unit of work" : format::printable(question.per);
    look_.units = units_.after;
  }

  void add(const ComparedEvent& event) {
    FlameTree tree(root_);
    std::vector<std::uint32_t> frames;
    for (std::size_t i = 0; i < comparison_.captures().size(); ++i) {
      const SideCapture& capture = comparison_.captures()[i];
      tree.begin_capture(capture.is_after ? Side::After : Side::Before);
      tree.count_units(capture.units);
      comparison_.each_stack(event.name, i, [&](std::span<const std::uint32_t> stack, double weight) {
        frames.clear();
        for (const std::uint32_t function : stack) frames.push_back(numbers_[function]);
        (void)tree.add_stack(frames, capture.is_after ? FlameWeight{0, weight} : FlameWeight{weight, 0});
      });
    }
    look_.has_noise = tree.measure_noise();
    const FlameWeight sum = tree.sum();
    look_.notes.push_back(fmt::format("{}: {} before, {} after", format::printable(event.name),
                                      quantity_text(sum.before, event.unit),
                                      quantity_text(sum.after, event.unit)));
    if (const double scale = factor(); scale > 0) tree.scale_before(scale);
    tree.add_up(WidthOf::After);
    FlameTree gone = tree.gone();
    FlameWeight all = tree.total();
    if (!look_.per.empty()) all.after = all.before;
    graphs_.push_back({std::move(tree), std::move(gone), all});
  }

  Result<> write(TextOutput& out, std::span<const ComparedEvent> events, format::WorkerPool& pool) {
    frames_.show_parameters();
    std::vector<FlamePane> panes;
    const std::size_t share = 2 * graphs_.size();
    const FlameLimits limits{kLeastWidth / (kWidth - 20), kMostFrames / share, kMostThin / share};
    for (std::size_t i = 0; i < graphs_.size(); ++i) {
      const Graph& graph = graphs_[i];
      const std::string name = format::printable(events[i].name);
      const auto add = [&](std::string heading, std::string_view kind, const FlameTree& tree) {
        panes.push_back({.heading = std::move(heading),
                         .kind = kind,
                         .events = name,
                         .unit = events[i].unit,
                         .all = graph.all,
                         .tree = &tree,
                         .drawing = choose_frames(tree, frames_, limits)});
      };
      add(name + ", after", "all", graph.tree);
      if (graph.gone.width() > 0)
        add(fmt::format("{}, gone: {:.2f} % of the total before", name,
                        100 * graph.gone.width() / graph.all.before),
            "gone", graph.gone);
    }
    return write_flame_svg(out, frames_, panes, look_, pool);
  }

  void note(const std::string& line) { look_.notes.push_back(line); }

 private:
  // "before: 8 captures, a.data to h.data".
  void note_captures(bool is_after) {
    std::vector<std::string_view> names;
    for (const SideCapture& capture : comparison_.captures()) {
      if (capture.is_after != is_after) continue;
      (is_after ? units_.after : units_.before) += capture.units;
      names.push_back(capture.name);
    }
    std::string line = is_after ? "after: " : "before: ";
    if (names.size() > 1) line += cli::counted(names.size(), "capture") + ", ";
    line += format::printable(names.front());
    if (names.size() > 1) line += " to " + format::printable(names.back());
    look_.notes.push_back(std::move(line));
  }
  // With units of work: weights before are multiplied by it. 0: shares are compared.
  double factor() const { return !look_.per.empty() && units_.before > 0 ? units_.after / units_.before : 0; }

  const Comparison& comparison_;
  FlameFrames frames_;
  std::uint32_t root_ = 0;
  std::vector<std::uint32_t> numbers_;  // of frames, by function of the comparison
  FlameLook look_;
  FlameWeight units_;  // of work
  std::deque<Graph> graphs_;
};

}  // namespace

Result<> write_difference_svg(TextOutput& out, const Comparison& comparison,
                              std::span<const ComparedEvent> events, const std::string& matched,
                              format::WorkerPool& pool) {
  DifferencePicture picture(comparison);
  for (const ComparedEvent& event : events) picture.add(event);
  if (!matched.empty()) picture.note("functions compared by name: " + matched);
  return picture.write(out, events, pool);
}

}  // namespace tacho::report
