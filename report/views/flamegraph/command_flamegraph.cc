// tacho flamegraph: a capture's stacks as a picture.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <system_error>

#include "report/commands.h"
#include "report/compare/function_match.h"
#include "report/filter_options.h"
#include "report/output/frame_colours.h"
#include "report/output/quantity_text.h"
#include "report/output/text_output.h"
#include "report/profile/name_pattern.h"
#include "report/samples/filter.h"
#include "report/views/flamegraph/flame_graph.h"
#include "report/views/flamegraph/flame_stacks.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMostFrames = 20'000;   // more would make browsers slow
constexpr std::size_t kMostGone = 5'000;      // of them: in the graph of frames that are gone
constexpr std::size_t kMostThin = 1'000'000;  // frames that are searched and not drawn: 4 MB of the file
constexpr double kLeastWithLine = 1;          // px: thinner frames have no source line

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho record -a -g -- sleep 10 && tacho flamegraph -o graph.svg\n"
    "  tacho flamegraph --by comm,tid --highlight 'malloc|free' -o graph.svg\n"
    "  tacho flamegraph --off-cpu --wakers -o waits.svg\n"
    "  tacho flamegraph --wall -o wall.svg\n"
    "  tacho flamegraph --base old.data -i new.data -o difference.svg\n"
    "  tacho flamegraph --base a1.data,a2.data -i b1.data --also b2.data --per app:request -o "
    "difference.svg\n"
    "  tacho record -e cpu-clock,syscall -a -g -- sleep 10 && tacho flamegraph --slowest 1% -o slow.svg\n"
    "  stackcollapse-jstack.pl threads | tacho flamegraph --folded - > graph.svg\n\n";

struct Options {
  ReadingOptions reading;
  FlameSource source;
  std::string folded;  // a file with folded text; empty: a capture is read
  std::string title, highlight, palette;
  std::uint64_t width = 1200;
  double least_width = 0.1;                     // px
  bool is_inverted = false, has_roots = false;  // has_roots: --by was given
  std::vector<std::string> also;                // more captures, added to that of -i
  std::vector<std::string> base;                // the captures before, for a difference
  WidthOf width_of = WidthOf::After;
  bool is_normalized = false;
  bool matches_calls = true;  // of a difference: renamed functions are found by their calls

  bool is_difference() const { return !base.empty() || source.slow.is_asked_for(); }
  // Whether each side has several captures, so that noise is known.
  bool has_noise() const { return base.size() >= 2 && !also.empty(); }
};

Result<> set_palette(Options& options, std::string_view text) {
  std::string known;
  for (const FramePalette& palette : frame_palettes()) {
    if (palette.name == text) {
      options.palette = text;
      return Done{};
    }
    known += (known.empty() ? "" : ", ") + std::string(palette.name);
  }
  return use_error("--palette: '" + std::string(text) + "' is not known; it is one of " + known);
}

Result<> set_width_of(Options& options, std::string_view text) {
  constexpr std::pair<std::string_view, WidthOf> kWidths[] = {{"after", WidthOf::After},
                                                              {"before", WidthOf::Before},
                                                              {"larger", WidthOf::Larger},
                                                              {"common", WidthOf::Common}};
  const auto* const width = std::ranges::find(kWidths, text, &std::pair<std::string_view, WidthOf>::first);
  if (width == std::end(kWidths))
    return use_error("--width-of: '" + std::string(text) +
                     "' is not known; it is after, before, larger or common");
  options.width_of = width->second;
  return Done{};
}

std::string palettes_help() {
  std::string help = "the meaning of colours:";
  for (const FramePalette& palette : frame_palettes())
    help += fmt::format("{} {}: {}", palette.name == "safe" ? "" : ";", palette.name, palette.help);
  return help + " (default: safe; wait with --off-cpu, change with --base); in a browser p changes it";
}

cli::Option files_option(std::string name, std::string help, std::vector<std::string>& files) {
  return {name, cli::Takes::Value, "FILE,...", std::move(help),
          [name, &files](std::string_view text) -> Result<> {
            for (std::string& file : parse_name_list(text)) files.push_back(std::move(file));
            return files.empty() ? use_error(name + ": no file is given") : Result<>(Done{});
          }};
}

cli::CommandLine describe(Options& options) {
  auto line = command_line(
      "flamegraph",
      "Draws the stacks of a capture as a flame graph: one self-contained SVG file for any viewer. A "
      "browser can zoom (click), search (/), select by arrow keys, invert and filter; ? lists "
      "the keys, and the URL has the state. The width of a frame is the weight "
      "of its stacks, as tacho folded prints them.");
  line.epilog = std::string(kExamples) + line.epilog;
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(cli::text("--title", "TEXT",
                           "the title (default: Flame graph, and the command "
                           "that was recorded)",
                           options.title));
  rows.push_back(cli::number("--width", "PX",
                             "width without a script; in a browser the graph fills the window "
                             "(default: 1200)",
                             200, 100'000, options.width));
  rows.push_back(
      {"--min-width", cli::Takes::Value, "PX",
       "do not draw frames below this width (default: 0.1); of the others "
       "the widest 20,000 are drawn. In a browser, a search counts the frames that are not drawn, and "
       "zooming in draws them",
       [&options](std::string_view text) -> Result<> {
         const std::string number(text);
         char* end = nullptr;
         options.least_width = std::strtod(number.c_str(), &end);
         const bool is_sound = end != number.c_str() && *end == '\0' && options.least_width >= 0 &&
                               std::isfinite(options.least_width);
         if (!is_sound) return use_error("--min-width: '" + number + "' is no number from 0 up");
         return Done{};
       }});
  rows.push_back(cli::flag("--inverted", "callers at the top: an icicle graph", options.is_inverted));
  rows.push_back(cli::flag("--reverse", "start from the running functions, with their callers above them",
                           options.source.is_reversed));
  rows.push_back(files_option("--also", "more captures (with --folded: folded stacks) to add to that of -i",
                              options.also));
  rows.push_back(no_renames_option(options.matches_calls));
  rows.push_back(
      files_option("--base",
                   "draw the difference from the sum of these captures (with --folded: folded stacks): "
                   "frames whose percentage grew are orange, those whose percentage fell are blue; "
                   "frames that are gone are in a second graph. Changes below 0.05 points are grey. "
                   "With several captures here and with --also, changes below the noise are grey too: "
                   "the range of the frame's percentages in the captures before plus that in those "
                   "after, or with four captures a side what 99 % of chance differences are below",
                   options.base));
  rows.push_back(
      cli::text("--per", "EVENT",
                "with --base: compare costs per EVENT, not percentages. Weights are divided by the number of "
                "EVENTs (the sum of their periods); changes are in percent of the cost of an EVENT before. "
                "EVENT itself is not drawn",
                options.source.per));
  add_slow_options(rows, options.source.slow, "draw a difference within the capture");
  rows.push_back(
      {"--width-of", cli::Takes::Value, "WHAT",
       "with --base: the width of frames: after (the default), before, larger or common; larger and "
       "common are taken stack by stack",
       [&options](std::string_view text) { return set_width_of(options, text); }});
  rows.push_back(
      cli::flag("--normalize", "with --base: scale the totals before to those after", options.is_normalized));
  rows.push_back({"--by", cli::Takes::Value, "LIST",
                  "root frames, outermost first: " + std::string(kRootFrameNames) +
                      " (default: comm; event,comm if several events of one unit have samples)",
                  [&options](std::string_view text) -> Result<> {
                    auto roots = parse_root_frames("--by", text);
                    if (!roots) return std::move(roots.error());
                    options.source.roots = std::move(*roots);
                    options.has_roots = true;
                    return Done{};
                  }});
  rows.push_back(
      cli::text("--highlight", "REGEX",
                "mark functions whose names match, and print their percentage: an extended regular "
                "expression",
                options.highlight));
  rows.push_back({"--palette", cli::Takes::Value, "NAME", palettes_help(),
                  [&options](std::string_view text) { return set_palette(options, text); }});
  rows.push_back(
      cli::text("--folded", "FILE",
                "draw folded stacks (lines of root;...;leaf and a number) instead of a capture; - is "
                "standard input",
                options.folded));
  rows.push_back(event_list_option(
      "--event-filter,--event",
      "default: all; those with the same unit of weights are one graph, below their names, and "
      "each other unit has its own graph",
      options.source.event));
  rows.push_back(
      cli::text("--weight", "WHAT",
                "the width of frames: period (a period of 0 counts 1), samples, or a field of the "
                "payload or tracepoint (default: the payload's field tagged role:weight, else period)",
                options.source.weight));
  add_filter_options(rows, options.reading.session.filter);
  add_wait_options(rows, options.source.waits);
  rows.push_back(truncated_stacks_option(options.reading.session.symbols.cut_mark));
  rows.push_back(
      cli::flag("--wall",
                "all time of each thread, from start to end: on CPU, runnable, and blocked by "
                "a wait, with the waker after a frame '-- waker --' (recorded by -g -e "
                "cpu-clock,offcpu,waking,runqlat, or cpu-clock, sched:sched_switch and sched:sched_waking); "
                "--by then takes comm, pid and tid (default: comm,tid)",
                options.source.is_wall));
  return line;
}

// The share of frames that match; a match inside another match is not counted again.
double share_of_marked(const FlameTree& tree, const FlameFrames& frames, const NamePattern& pattern) {
  std::vector<std::optional<bool>> known(frames.size());
  std::vector<bool> is_inside(tree.nodes().size());
  double sum = 0;
  for (std::size_t i = 1; i < tree.nodes().size(); ++i) {
    const FlameTree::Node& node = tree.nodes()[i];
    if (is_inside[node.parent]) {
      is_inside[i] = true;
      continue;
    }
    auto& matches = known[node.frame];
    if (!matches) matches = pattern.is_in(frames[node.frame].name);
    is_inside[i] = *matches;
    if (*matches) sum += node.width;
  }
  return tree.width() > 0 ? sum / tree.width() : 0;
}

// The stacks whose weights have one unit, which can be added up.
struct Graph {
  std::string unit;
  FlameTree tree;
  std::vector<std::string> events{};  // their names
  FlameWeight all{};                  // of a difference: the totals, of which shares are taken
  std::optional<FlameTree> gone{};    // of a difference: the frames that only the side before has
};

// The picture: frames, a graph for each unit, and notes.
struct Picture {
  Graph& graph_of(std::string_view unit) {
    const auto known = std::ranges::find(graphs, unit, &Graph::unit);
    if (known != graphs.end()) return *known;
    graphs.push_back({std::string(unit), FlameTree(frames.number_of("all", "", FrameKind::All))});
    for (const Side side : captures) graphs.back().tree.begin_capture(side);
    return graphs.back();
  }
  void begin_capture(Side side) {
    captures.push_back(side);
    for (Graph& graph : graphs) graph.tree.begin_capture(side);
  }
  bool has_several() const { return graphs.size() > 1; }

  FlameFrames frames;
  std::vector<Graph> graphs;
  std::vector<Side> captures;  // for the noise of a difference
  FlameLook look;
  FlameWeight units;  // number of --per's events
  ModuleBuilds builds_before, builds_after;
  std::uint64_t folded_bytes = 0;  // of the texts read so far
  // The frame's source line. An empty function: no frame has one.
  std::function<std::string(std::uint32_t frame)> line_of;
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "cpu-clock, 9.93 s"; "page-faults, 1,234", whose unit is the event.
std::string events_and_weight(const Graph& graph) {
  const std::string events = printable(joined(graph.events));
  const double weight = graph.tree.width();
  if (graph.unit == "ns") return events + ", " + quantity_text(weight, graph.unit);
  return events + ", " + with_commas(weight) +
         (graph.unit.empty() || graph.unit == events ? "" : " " + graph.unit);
}

// In lines about one of several graphs: "cpu-clock: "; else empty.
std::string events_prefix(const Picture& picture, const Graph& graph) {
  return picture.has_several() ? printable(joined(graph.events)) + ": " : "";
}

std::string_view usual_palette(const Options& options, bool is_difference) {
  if (is_difference) return "change";
  return options.source.waits.is_asked_for && !options.source.is_wall ? "wait" : "safe";
}

// Source lines of frames of at least kLeastWithLine: few, so that looking them up is fast.
void add_lines(Picture& picture, std::span<const FlamePane> panes, double width) {
  if (!picture.line_of) return;
  picture.look.lines.resize(picture.frames.size());
  std::vector<bool> is_known(picture.frames.size());
  for (const FlamePane& pane : panes) {
    const double least = pane.tree->width() * kLeastWithLine / width;
    for (const DrawnFrame& drawn : pane.drawing.frames) {
      const FlameTree::Node& node = pane.tree->nodes()[drawn.node];
      if (node.width < least || is_known[node.frame]) continue;
      is_known[node.frame] = true;
      picture.look.lines[node.frame] = picture.line_of(node.frame);
    }
  }
}

// For costs per event: scales the weights before to the number of events after. Fractions of the scaled total
// are then costs per event.
void divide_by_units(Picture& picture, Graph& graph) {
  FlameLook& look = picture.look;
  const FlameWeight units = picture.units, sum = graph.tree.sum();
  look.notes.push_back(fmt::format("{} per {}: {:.6g} before ({:.6g} of them), {:.6g} after ({:.6g})",
                                   graph.unit.empty() ? "weight" : graph.unit, look.per,
                                   sum.before / units.before, units.before, sum.after / units.after,
                                   units.after));
  graph.tree.scale_before(units.after / units.before);
  look.units = units.after;
}

// The weights of both sides: shares alone do not say that the program became faster.
std::string totals_text(const std::string& unit, const FlameWeight& sum) {
  std::string text = fmt::format("total: {} before, {} after", quantity_text(sum.before, unit),
                                 quantity_text(sum.after, unit));
  if (sum.before > 0) text += fmt::format(" ({:+.1f} %)", 100 * (sum.after / sum.before - 1));
  return text;
}

bool is_code(FrameKind kind) {
  return kind == FrameKind::User || kind == FrameKind::Kernel || kind == FrameKind::Inlined ||
         kind == FrameKind::Jit || kind == FrameKind::Bpf;
}

// Returns the line about functions that are compared by name; empty: there are none.
std::string match_frames(Picture& picture, bool matches_calls) {
  std::vector<FunctionToMatch> frames;
  for (std::uint32_t i = 0; i < picture.frames.size(); ++i) {
    const FlameFrame& frame = picture.frames[i];
    frames.push_back({frame.name, frame.module, static_cast<char>(frame.kind)});
  }
  CallsToMatch calls;
  for (FunctionToMatch& frame : frames) frame.share = 0;
  for (const Graph& graph : picture.graphs) {
    const std::vector<FlameTree::Node>& nodes = graph.tree.nodes();
    std::vector<FlameWeight> totals(nodes.size());
    const FlameWeight all = graph.tree.sum();
    for (std::size_t i = nodes.size(); i-- > 0;) {
      totals[i] += nodes[i].self;
      const bool is_before = totals[i].before > 0, is_after = totals[i].after > 0;
      frames[nodes[i].frame].is_before |= is_before;
      frames[nodes[i].frame].is_after |= is_after;
      if (nodes[i].parent == FlameTree::kNone) continue;
      totals[nodes[i].parent] += totals[i];
      const FlameWeight share{all.before > 0 ? totals[i].before / all.before : 0,
                              all.after > 0 ? totals[i].after / all.after : 0};
      frames[nodes[i].frame].share += std::max(share.before, share.after);
      const std::uint32_t caller = nodes[nodes[i].parent].frame;
      if (matches_calls && is_code(picture.frames[caller].kind))
        calls.add_call({caller, nodes[i].frame, share.before, share.after});
    }
  }
  const MatchedFunctions matched =
      match_functions(frames, {calls.all(), picture.builds_before, picture.builds_after});
  if (!matched.is_any()) return {};
  for (Graph& graph : picture.graphs) graph.tree.replace_frames(matched.same);
  const std::string text = matched.text();
  return text.empty() ? text : "functions compared by name: " + text;
}

// Whether no frame at the depth of the root frames (--by) has weights both before and after, although both
// sides have weights.
bool has_no_common_root(const FlameTree& tree, std::size_t roots) {
  std::vector<std::size_t> depths;
  FlameWeight seen;
  for (const FlameTree::Node& node : tree.nodes()) {
    depths.push_back(node.parent == FlameTree::kNone ? 0 : depths[node.parent] + 1);
    if (depths.back() != roots) continue;
    if (node.total.before > 0 && node.total.after > 0) return false;
    seen += node.total;
  }
  return roots > 0 && seen.before > 0 && seen.after > 0;
}

std::string title_of_slow(const SlowQuestion& slow) {
  return slow.condition != nullptr
             ? "Flame graph of slow intervals against the others"
             : fmt::format("Flame graph of the slowest {:g} % against the others", 100 * slow.share);
}

// Adds up the weights of a graph, with the lines about them.
void add_up(Picture& picture, Graph& graph, const Options& options) {
  FlameLook& look = picture.look;
  look.has_noise = graph.tree.measure_noise();
  if (!options.base.empty() && look.per.empty())
    look.notes.push_back(events_prefix(picture, graph) + totals_text(graph.unit, graph.tree.sum()));
  if (const FlameWeight all = graph.tree.sum(); options.is_normalized && all.before > 0 && all.after > 0)
    graph.tree.scale_before(all.after / all.before);
  if (!look.per.empty()) divide_by_units(picture, graph);
  graph.tree.add_up(options.width_of);
  graph.all = graph.tree.total();
  if (!look.per.empty()) graph.all.after = graph.all.before;
  if (picture.has_several())
    graph.tree.name_root(picture.frames.number_of("all: " + events_and_weight(graph), "", FrameKind::All));
  if (look.is_difference) graph.gone.emplace(graph.tree.gone());
}

std::string title_of(const Options& options, bool is_difference) {
  return !options.title.empty()               ? printable(options.title)
         : options.source.slow.is_asked_for() ? title_of_slow(options.source.slow)
         : is_difference                      ? "Flame graph of a difference"
         : options.source.is_wall             ? "Wall graph: the time of threads"
         : options.source.waits.is_asked_for  ? "Off-CPU graph: the waits of threads"
                                              : "Flame graph";
}

// One graph for each unit, and in a difference one for what is gone.
std::vector<FlamePane> panes_of(const Picture& picture, const Options& options) {
  const bool is_slow = options.source.slow.is_asked_for();
  const double least = options.least_width / (static_cast<double>(options.width) - 20);
  const std::size_t gone = picture.look.is_difference ? kMostGone : 0, share = picture.graphs.size();
  constexpr double kLeastGap = 3;  // px; browser/flame_graph.js has the same
  const double gap = kLeastGap / (static_cast<double>(options.width) - 20);
  const FlameLimits limits{least, (kMostFrames - gone) / share, kMostThin / share, gap};
  std::vector<FlamePane> panes;
  const auto add = [&](const Graph& graph, std::string heading, std::string_view kind, const FlameTree& tree,
                       const FlameLimits& most) {
    panes.push_back({std::move(heading), kind, printable(joined(graph.events)), graph.unit, graph.all, &tree,
                     choose_frames(tree, picture.frames, most)});
  };
  for (const Graph& graph : picture.graphs) {
    const bool has_gone = graph.gone && graph.gone->width() > 0;
    std::string heading = has_gone ? (is_slow ? "In slow intervals" : "After") : "";
    if (picture.has_several()) {
      const std::string all = events_and_weight(graph);
      heading = heading.empty() ? all : all + ", " + (is_slow ? "in slow intervals" : "after");
    }
    add(graph, heading, "all", graph.tree, limits);
    if (!has_gone) continue;
    const double part = 100 * graph.gone->width() / graph.all.before;
    add(graph,
        events_prefix(picture, graph) +
            (is_slow ? fmt::format("Never in slow intervals: {:.2f} % of the others", part)
                     : fmt::format("Gone: {:.2f} % of the total before", part)),
        "gone", *graph.gone, {least, gone / share, kMostThin / share, gap});
  }
  return panes;
}

// The lines about frames that are not drawn.
void note_thin_frames(FlameLook& look, std::span<const FlamePane> panes) {
  std::size_t thin = 0, left_out = 0;
  double share = 0;
  for (const FlamePane& pane : panes) {
    thin += pane.drawing.thin.size();
    left_out += pane.drawing.left_out;
    if (pane.tree->width() > 0) share = std::max(share, pane.drawing.left_out_width / pane.tree->width());
  }
  if (thin + left_out > 0)
    look.notes.push_back(with_commas(static_cast<double>(thin + left_out)) +
                         " frames are too thin to be drawn");
  if (left_out > 0)
    look.notes.push_back(fmt::format(
        "{} of them, with up to {:.2f} % of a graph, are not in this file, and a search does not count them",
        with_commas(static_cast<double>(left_out)), 100 * share));
}

Result<> draw(Picture& picture, TextOutput& out, const Options& options, std::vector<std::string> notes,
              format::WorkerPool& pool) {
  FlameLook& look = picture.look;
  look.notes = std::move(notes);
  picture.frames.show_parameters();
  if (picture.graphs.empty()) (void)picture.graph_of("");
  if (picture.has_several())
    look.notes.emplace_back("weights of different units are not added up: each has its own graph");
  if (!options.base.empty())
    if (std::string matched = match_frames(picture, options.matches_calls); !matched.empty())
      look.notes.push_back(std::move(matched));
  for (Graph& graph : picture.graphs) add_up(picture, graph, options);
  look.title = title_of(options, look.is_difference);
  look.palette = options.palette.empty() ? usual_palette(options, look.is_difference) : options.palette;
  look.is_inverted = options.is_inverted;
  look.width = static_cast<unsigned>(options.width);
  look.least = options.least_width;
  std::optional<NamePattern> pattern;
  if (!options.highlight.empty()) {
    pattern.emplace(options.highlight);
    look.is_marked = [&pattern](std::string_view name) { return pattern->is_in(name); };
    for (const Graph& graph : picture.graphs)
      look.notes.push_back(fmt::format("{}marked: {}: {:.2f} % of all", events_prefix(picture, graph),
                                       printable(options.highlight),
                                       100 * share_of_marked(graph.tree, picture.frames, *pattern)));
  }
  const std::vector<FlamePane> panes = panes_of(picture, options);
  note_thin_frames(look, panes);
  add_lines(picture, panes, static_cast<double>(options.width) - 20);
  return write_flame_svg(out, picture.frames, panes, look, pool);
}

// The time of the file's last change: for a capture the end of the recording.
std::string date_of(const std::string& path) {
  struct stat status {};
  if (path == "-" || ::stat(path.c_str(), &status) != 0) return {};
  std::tm when{};
  ::gmtime_r(&status.st_mtime, &when);
  char text[64] = "";
  (void)std::strftime(text, sizeof text, ", %Y-%m-%d %H:%M UTC", &when);
  return text;
}

std::string_view prefix_of(Side side) { return side == Side::Before ? "before: " : "after: "; }

FlameWeight on_side(Side side, FlameWeight weight) {
  return side == Side::Before ? FlameWeight{weight.after, 0} : weight;
}

// Adds stacks to the picture, as weights of that side.
StackCallback adding_to(Picture& picture, Side side) {
  return [&picture, side](std::span<const std::uint32_t> stack, FlameWeight weight, std::string_view unit) {
    (void)picture.graph_of(unit).tree.add_stack(stack, on_side(side, weight));
  };
}

// The units of a capture's weights: "ns, samples".
std::string units_of(const FlameFacts& facts) {
  std::vector<std::string> units;
  for (const FlameEvent& event : facts.events) units.push_back(event.unit);
  std::ranges::sort(units);
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return joined(units);
}

// Reads the captures of both sides into a picture.
struct PictureReader {
  Result<FlameFacts> read(Session& session, TextOutput& out, const std::string& name, Side side) {
    if (options.has_noise()) picture.begin_capture(side);
    auto read = read_flame_samples(
        session, options.source, picture.frames, [&](Sink& sink) { run_with_progress(session, sink, out); },
        adding_to(picture, side));
    if (!read) return read;
    if (!options.source.per.empty() && read->units == 0)
      return use_error("--per: " + printable(name) + " has no sample of " + printable(options.source.per));
    std::vector<std::string> names;
    for (const FlameEvent& event : read->events) {
      names.push_back(event.name);
      const auto graph = std::ranges::find(picture.graphs, event.unit, &Graph::unit);
      if (graph == picture.graphs.end() ||
          std::ranges::find(graph->events, event.name) != graph->events.end())
        continue;
      graph->events.push_back(event.name);
    }
    if (options.has_noise())
      for (Graph& graph : picture.graphs) graph.tree.count_units(read->units);
    for (const auto& [module, builds] : read->builds)
      (side == Side::Before ? picture.builds_before : picture.builds_after)[module].insert(builds.begin(),
                                                                                           builds.end());
    picture.units += side == Side::Before ? FlameWeight{read->units, 0} : FlameWeight{0, read->units};
    std::string note = with_origin(printable(joined(names)), session.features().environment);
    if (!options.base.empty() || !options.also.empty()) note = printable(name) + date_of(name) + ": " + note;
    if (!options.base.empty()) note.insert(0, prefix_of(side));
    if (!note.empty()) notes.push_back(std::move(note));
    std::ranges::copy(read->legend, std::back_inserter(notes));
    return read;
  }

  // Reads the captures of --base or --also.
  Result<> read_others(Side side, const SessionOptions& like, TextOutput& out, Shown& shown) {
    const std::string option = side == Side::Before ? "--base" : "--also";
    for (const std::string& name : side == Side::Before ? options.base : options.also) {
      SessionOptions wanted = like;
      wanted.input = name;
      auto session = Session::open(std::move(wanted));
      if (!session) return std::move(session.error()).in(option);
      read_head(*session);
      auto other = read(*session, out, name, side);
      if (!other) return std::move(other.error()).in(option + " " + printable(name));
      const std::string these = units_of(*other), those = units_of(facts);
      if (these != those && other->has_samples && facts.has_samples)
        return use_error(option + " " + printable(name) + ": stacks are weighted by " + these +
                         ", those of " + printable(like.input) + " by " + those +
                         "; use --event and --weight to choose one");
      session->report_missing_symbols();
      for (std::string& line : findings_text(session->diagnostics(), name))
        shown.notes.push_back(std::move(line));
      if (session->diagnostics().incomplete()) shown.status = cli::kIncomplete;
      if (!other->has_samples)
        shown.notes.push_back("tacho flamegraph: " + printable(name) + " has no samples");
    }
    return Done{};
  }

  const Options& options;
  Picture& picture;
  FlameFacts facts{};                // of the capture of -i
  std::vector<std::string> notes{};  // a line for each capture
};

Result<Shown> show(Session& session, const SessionOptions& wanted, TextOutput& out, const Options& options) {
  read_head(session);
  Picture picture;
  PictureReader captures{options, picture};
  auto facts = captures.read(session, out, wanted.input, Side::After);
  if (!facts) return std::move(facts.error());
  captures.facts = std::move(*facts);
  // Before source lines are looked up: a file without source lines is not reported as missing.
  session.report_missing_symbols();
  Shown shown(Symbols::NotUsed);
  for (const Side side : {Side::After, Side::Before})
    if (auto read = captures.read_others(side, wanted, out, shown); !read) return std::move(read.error());
  picture.look.per = printable(captures.facts.per);
  picture.look.is_difference = options.is_difference();
  if (options.source.slow.is_asked_for()) {
    picture.look.before_name = "in the others";
    picture.look.after_name = "in slow ones";
  }
  picture.line_of = [&](std::uint32_t frame) {
    return source_line(session.resolver(), captures.facts.addresses.address_of(frame));
  };
  if (!captures.facts.has_samples)
    captures.facts.notes.insert(captures.facts.notes.begin(),
                                "the capture has no samples, or none that pass the filters");
  if (picture.graphs.empty()) std::ranges::copy(captures.facts.notes, std::back_inserter(captures.notes));
  if (auto drawn = draw(picture, out, options, std::move(captures.notes), session.pool()); !drawn)
    return std::move(drawn.error());
  if (!options.base.empty() && std::ranges::all_of(picture.graphs, [&](const Graph& graph) {
        return has_no_common_root(graph.tree, options.source.roots.size());
      }))
    shown.notes.emplace_back(
        "tacho flamegraph: before and after have no thread name in common (or what --by says), so that every "
        "frame is new or gone; --by none leaves thread names out");
  for (const std::string& note : captures.facts.notes) shown.notes.push_back("tacho flamegraph: " + note);
  return shown;
}

// Reads folded stacks in this process: text needs no worker and no symbols.
Result<FoldedText> read_folded(const std::string& name, const Options& options, Picture& picture, Side side) {
  std::ifstream file;
  if (name != "-") {
    std::error_code ignored;
    if (std::filesystem::equivalent(options.reading.output, name, ignored))
      return use_error("-o: " + options.reading.output + " is one of the folded texts itself");
    file.open(name, std::ios::binary);
    if (!file) return Error{printable(name) + ": cannot be opened"};
  }
  if (options.has_noise()) picture.begin_capture(side);
  std::istream& text = name == "-" ? std::cin : file;
  // A node takes up to 100 bytes. In stacks of real programs a frame has more than 16 bytes of text.
  constexpr std::uint64_t kNodesAlways = 200'000, kBytesOfNode = 16;
  const std::uint64_t before = picture.folded_bytes;
  FlameTree& tree = picture.graph_of("").tree;
  const auto take = [&](std::span<const std::uint32_t> stack, FlameWeight weight) {
    return tree.add_stack(stack, on_side(side, weight));
  };
  FoldedText read =
      read_folded_text(text, options.source.is_reversed, picture.frames, take, [&](std::uint64_t bytes) {
        picture.folded_bytes = before + bytes;
        tree.limit_nodes(static_cast<std::size_t>(kNodesAlways + picture.folded_bytes / kBytesOfNode));
      });
  if (text.bad())
    return Error{(name == "-" ? "standard input" : printable(name)) +
                 ": cannot be read; --folded takes a file of folded stacks"};
  if (read.stacks == 0)
    std::fprintf(stderr, "tacho flamegraph: %s has no folded stacks\n", printable(name).c_str());
  if (read.faults > 0)
    std::fprintf(
        stderr, "tacho: %s: %zu of %zu lines are not folded stacks and are left out, the first is line %zu\n",
        printable(name).c_str(), read.faults, read.lines, read.first_fault);
  if (read.cut_stacks > 0)
    std::fprintf(
        stderr,
        "tacho: %s: stacks that end early: %zu; they are deeper, or have more different frames, than "
        "stacks of a program\n",
        printable(name).c_str(), read.cut_stacks);
  return read;
}

Result<cli::ExitStatus> show_folded(const Options& options) {
  Picture picture;
  const auto after = read_folded(options.folded, options, picture, Side::After);
  if (!after) return after.error();
  std::size_t faults = after->faults + after->cut_stacks;
  picture.look.is_difference = after->has_two_weights || !options.base.empty();
  std::vector<std::string> notes;
  const auto note = [&](const std::string& name, Side side) {
    if (!options.base.empty())
      notes.push_back(std::string(prefix_of(side)) + printable(name) + date_of(name));
  };
  note(options.folded, Side::After);
  for (const Side side : {Side::After, Side::Before}) {
    for (const std::string& name : side == Side::After ? options.also : options.base) {
      const auto more = read_folded(name, options, picture, side);
      if (!more) return more.error();
      faults += more->faults + more->cut_stacks;
      note(name, side);
    }
  }
  std::vector<std::string> texts = options.reading.other_inputs;
  texts.push_back(options.folded);
  auto output = options.reading.output.empty() || options.reading.output == "-"
                    ? Result<OutputFile>(standard_output(Paging::Never))
                    : OutputFile::create(options.reading.output, mode_of_output(texts));
  if (!output) return std::move(output.error());
  TextOutput out(std::move(*output));
  format::WorkerPool pool(1);
  if (auto drawn = draw(picture, out, options, std::move(notes), pool); !drawn)
    return std::move(drawn.error());
  if (auto written = out.finish(); !written) return std::move(written.error());
  return faults == 0 ? cli::kWhole : cli::kIncomplete;
}

}  // namespace

Result<cli::ExitStatus> run_flamegraph(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    options.reading.paging = Paging::Never;
    if (options.reading.output.empty() && ::isatty(STDOUT_FILENO) != 0)
      return use_error("standard output is a terminal; write the picture to a file: -o graph.svg");
    if (!options.highlight.empty()) {
      const NamePattern pattern(options.highlight);
      if (!pattern.is_sound()) return use_error("--highlight: " + pattern.fault());
    }
    const bool has_base = !options.base.empty(), has_per = !options.source.per.empty();
    if (options.source.is_wall && !options.has_roots)
      options.source.roots = {{RootKind::Comm}, {RootKind::Tid}};
    if (options.source.is_wall && !options.folded.empty())
      return use_error("--wall needs a capture: leave out --folded");
    if (auto sound = check_stack_source(options.source, options.reading.session.filter); !sound)
      return std::move(sound.error());
    const bool has_others = has_base || has_per || !options.also.empty() || !options.folded.empty();
    if (options.source.slow.is_asked_for() && has_others)
      return use_error(
          "--slowest and --slow-where compare parts of one capture: leave out --base, --also, --per and "
          "--folded");
    options.reading.other_inputs = options.also;
    options.reading.other_inputs.insert(options.reading.other_inputs.end(), options.base.begin(),
                                        options.base.end());
    const bool is_difference = options.is_difference() || !options.folded.empty();
    if (has_per && (!has_base || !options.folded.empty() || options.is_normalized))
      return use_error(
          "--per is for a difference of captures: give the captures before with --base, and leave out "
          "--folded and --normalize");
    if (!is_difference && (options.width_of != WidthOf::After || options.is_normalized))
      return use_error(
          "--width-of and --normalize are for a difference: give the captures before with --base");
    if (!is_difference && options.palette == "change")
      return use_error("--palette change is for a difference: give the captures before with --base");
    if (!options.folded.empty()) return show_folded(options);
    if ((has_base || !options.also.empty()) && options.reading.session.filter.condition != nullptr)
      return use_error("--where cannot be used with --base or --also; --comm, --pid, --time and others can");
    options.source.expands_inlines = options.reading.session.symbols.inlines == symbolize::Inlines::All;
    return show_session_beside(options.reading,
                               [&options](Session& session, const SessionOptions& wanted, TextOutput& out) {
                                 return show(session, wanted, out, options);
                               });
  });
}

}  // namespace tacho::report
