#include "report/views/flamegraph/flame_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "report/output/frame_colours.h"
#include "report/output/packed_data.h"
#include "report/output/quantity_text.h"
#include "report/output/svg_text.h"

namespace tacho::report {

std::uint32_t FlameFrames::number_of(std::string_view name, std::string_view module, FrameKind kind,
                                     std::string_view linker_name) {
  const NameId name_id = names_.id_of(name, linker_name);
  if (const auto known = numbers_.find({name_id, module, kind}); known != numbers_.end())
    return known->second;
  const auto number = static_cast<std::uint32_t>(frames_.size());
  const FlameFrame kept{names_.name(name_id), texts_.keep(module), kind, name_id};
  frames_.push_back(kept);
  numbers_.emplace(std::tuple(name_id, kept.module, kind), number);
  return number;
}

std::uint32_t FlameFrames::as_kind(std::uint32_t number, FrameKind kind) {
  const FlameFrame frame = frames_[number];
  return number_of(frame.name, frame.module, kind, names_.linker_name(frame.name_id));
}

void FlameFrames::show_parameters() {
  for (FlameFrame& frame : frames_) {
    const std::string_view shown = names_.shown(frame.name_id);
    if (shown != frame.name) frame.name = texts_.keep(printable(shown));
  }
}

std::vector<std::uint32_t> FlameFrames::ranks() const {
  std::vector<std::uint32_t> order(frames_.size()), ranks(frames_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [this](std::uint32_t number) {
    const FlameFrame& frame = frames_[number];
    return std::tuple(frame.name, frame.module, frame.kind, number);
  });
  for (std::uint32_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = rank;
  return ranks;
}

std::uint32_t FlameTree::child(std::uint32_t parent, std::uint32_t frame, bool may_be_made) {
  const std::uint64_t hash = children_.hash(parent, frame);
  const auto is_same = [&](std::uint32_t known) {
    return nodes_[known].parent == parent && nodes_[known].frame == frame;
  };
  if (!may_be_made) return children_.find(hash, is_same);
  return children_.find_or_make(hash, is_same, [&] {
    // A vector that doubles would need three times its size while it grows.
    if (nodes_.size() == nodes_.capacity()) nodes_.reserve(nodes_.size() + nodes_.size() / 4 + 64);
    nodes_.push_back({.parent = parent, .frame = frame});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  });
}

bool FlameTree::add_stack(std::span<const std::uint32_t> stack, FlameWeight weight) {
  std::size_t same = 0;
  while (same < stack.size() && same < path_.size() && nodes_[path_[same]].frame == stack[same]) ++same;
  path_.resize(same);
  for (const std::uint32_t frame : stack.subspan(same)) {
    const std::uint32_t next = child(path_.empty() ? 0 : path_.back(), frame, nodes_.size() < most_nodes_);
    if (next == kNone) break;
    path_.push_back(next);
  }
  const bool is_whole = path_.size() == stack.size();
  const std::uint32_t leaf = path_.empty() ? 0 : path_.back();
  nodes_[leaf].self += weight;
  if (captures_.empty()) return is_whole;
  std::vector<double>& own = captures_.back().own;
  if (own.size() < nodes_.size()) own.resize(nodes_.size());
  own[leaf] += weight.before + weight.after;
  return is_whole;
}

void FlameTree::replace_frames(std::span<const std::uint32_t> frames) {
  FlameTree made(nodes_.front().frame);
  std::vector<std::uint32_t> moved(nodes_.size());  // by node: its number in the new tree
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i > 0) moved[i] = made.child(moved[nodes_[i].parent], frames[nodes_[i].frame]);
    made.nodes_[moved[i]].self += nodes_[i].self;
  }
  for (const CaptureWeights& capture : captures_) {
    CaptureWeights& same = made.captures_.emplace_back(CaptureWeights{capture.side, capture.units, {}});
    same.own.resize(made.nodes_.size());
    for (std::size_t i = 0; i < capture.own.size(); ++i) same.own[moved[i]] += capture.own[i];
  }
  nodes_ = std::move(made.nodes_);
  captures_ = std::move(made.captures_);
}

std::vector<double> FlameTree::shares_of(const CaptureWeights& capture, double cost_of_unit) const {
  std::vector<double> shares = capture.own;
  shares.resize(nodes_.size());
  for (std::size_t i = nodes_.size(); i-- > 1;) shares[nodes_[i].parent] += shares[i];
  const double whole = cost_of_unit > 0 ? capture.units * cost_of_unit : shares.front();
  for (double& share : shares) share = whole > 0 ? share / whole : 0;
  return shares;
}

namespace {

// The shares of one side's captures, by node.
struct SideShares {
  std::size_t captures = 0;
  std::vector<double> least, most, sum, squares;

  void add(const std::vector<double>& shares) {
    if (captures++ == 0) {
      least = most = shares;
      sum.resize(shares.size());
      squares.resize(shares.size());
    }
    for (std::size_t i = 0; i < shares.size(); ++i) {
      least[i] = std::min(least[i], shares[i]);
      most[i] = std::max(most[i], shares[i]);
      sum[i] += shares[i];
      squares[i] += shares[i] * shares[i];
    }
  }
  double count() const { return static_cast<double>(captures); }
  // Of squared distances from the mean.
  double spread(std::size_t i) const { return std::max(0.0, squares[i] - sum[i] * sum[i] / count()); }
};

// Student's t of a 99 % interval.
double t_of(std::size_t freedom) {
  constexpr std::pair<std::size_t, double> kTable[] = {{6, 3.71},  {8, 3.36},  {10, 3.17}, {14, 2.98},
                                                       {20, 2.85}, {40, 2.70}, {80, 2.64}};
  double t = kTable[0].second;
  for (const auto& [least, value] : kTable)
    if (freedom >= least) t = value;
  return t;
}

constexpr std::size_t kLeastForMeans = 4;  // captures a side

}  // namespace

// Captures of one side differ by chance. With four a side or more, a change is significant if it is outside
// the 99 % interval of the difference of the means; with fewer, of which means say little, if it is larger
// than the range of the captures before plus that of the captures after.
bool FlameTree::measure_noise() {
  SideShares before, after;
  double units = 0;
  for (const CaptureWeights& capture : captures_) units += capture.side == Side::Before ? capture.units : 0;
  const double cost_of_unit = units > 0 ? sum().before / units : 0;
  for (const CaptureWeights& capture : captures_)
    (capture.side == Side::Before ? before : after).add(shares_of(capture, cost_of_unit));
  if (before.captures < 2 || after.captures < 2) return false;
  const double freedom = before.count() + after.count() - 2;
  const double scale =
      t_of(static_cast<std::size_t>(freedom)) * std::sqrt((1 / before.count() + 1 / after.count()) / freedom);
  const bool is_of_means = std::min(before.captures, after.captures) >= kLeastForMeans;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    nodes_[i].noise = is_of_means ? scale * std::sqrt(before.spread(i) + after.spread(i))
                                  : before.most[i] - before.least[i] + after.most[i] - after.least[i];
  return true;
}

namespace {

double width_of(const FlameWeight& weight, WidthOf width) {
  switch (width) {
    case WidthOf::Before:
      return weight.before;
    case WidthOf::Larger:
      return std::max(weight.before, weight.after);
    case WidthOf::Common:
      return std::min(weight.before, weight.after);
    case WidthOf::After:
      break;
  }
  return weight.after;
}

}  // namespace

// Children are after their parents, so in reverse order each node has its final value when it is added.
// The larger or common part is taken stack by stack, so for a frame it may differ from that of its totals.
void FlameTree::add_up(WidthOf width) {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    node.self_width = width_of(node.self, width);
    node.total += node.self;
    node.width += node.self_width;
    if (node.parent == kNone) continue;
    nodes_[node.parent].total += node.total;
    nodes_[node.parent].width += node.width;
  }
}

void FlameTree::scale_before(double factor) {
  for (Node& node : nodes_) node.self.before *= factor;
}

FlameWeight FlameTree::sum() const {
  FlameWeight all;
  for (const Node& node : nodes_) all += node.self;
  return all;
}

FlameTree FlameTree::gone() const {
  std::vector<bool> is_needed(nodes_.size());
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    if (node.total.after == 0 && node.self.before > 0) is_needed[i] = true;
    if (is_needed[i] && node.parent != kNone) is_needed[node.parent] = true;
  }
  FlameTree gone(nodes_.front().frame);
  std::vector<std::uint32_t> to(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (i != 0 && !is_needed[i]) continue;
    if (i != 0) {
      to[i] = static_cast<std::uint32_t>(gone.nodes_.size());
      // The noise of the vanished part of a caller that still exists is unknown.
      const double noise = node.total.after == 0 ? node.noise : 0;
      gone.nodes_.push_back({.parent = to[node.parent], .frame = node.frame, .noise = noise});
    }
    if (node.total.after == 0) gone.nodes_[to[i]].self.before = node.self.before;
  }
  gone.add_up(WidthOf::Before);
  return gone;
}

namespace {

using Nodes = std::vector<FlameTree::Node>;

// Keeps the widest `most`. A parent is at least as wide as its children and is before them, so none is left
// out while a child stays.
void keep_widest(std::vector<std::uint32_t>& chosen, const Nodes& nodes, std::size_t most) {
  if (chosen.size() <= most) return;
  const auto widest_first = [&](std::uint32_t node) { return std::pair(-nodes[node].width, node); };
  const auto end = chosen.begin() + static_cast<std::ptrdiff_t>(most);
  std::ranges::nth_element(chosen, end, {}, widest_first);
  chosen.erase(end, chosen.end());
}

// Chosen nodes by parent; siblings by name.
class Siblings {
 public:
  Siblings(const std::vector<std::uint32_t>& chosen, const Nodes& nodes,
           const std::vector<std::uint32_t>& ranks)
      : begin_(nodes.size() + 1), by_parent_(chosen.size()) {
    for (const std::uint32_t node : chosen)
      if (node != 0) ++begin_[nodes[node].parent + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<std::uint32_t> next = begin_;
    for (const std::uint32_t node : chosen)
      if (node != 0) by_parent_[next[nodes[node].parent]++] = node;
    for (std::size_t parent = 0; parent < nodes.size(); ++parent)
      std::sort(
          by_parent_.begin() + begin_[parent], by_parent_.begin() + begin_[parent + 1],
          [&](std::uint32_t a, std::uint32_t b) { return ranks[nodes[a].frame] < ranks[nodes[b].frame]; });
  }
  std::span<const std::uint32_t> of(std::uint32_t parent) const {
    return std::span(by_parent_).subspan(begin_[parent], begin_[parent + 1] - begin_[parent]);
  }

 private:
  std::vector<std::uint32_t> begin_;  // by parent, in by_parent_
  std::vector<std::uint32_t> by_parent_;
};

// Adds the frames that are not drawn.
void add_thin(FlameDrawing& drawing, const FlameTree& tree, const std::vector<std::uint32_t>& ranks,
              std::size_t most) {
  const Nodes& nodes = tree.nodes();
  std::vector<bool> is_there(nodes.size());
  for (const DrawnFrame& drawn : drawing.frames) is_there[drawn.node] = true;
  std::vector<std::uint32_t> thin;
  for (std::uint32_t i = 1; i < nodes.size(); ++i)
    if (nodes[i].width > 0 && !is_there[i]) thin.push_back(i);
  drawing.left_out = thin.size() - std::min(thin.size(), most);
  keep_widest(thin, nodes, most);
  for (const std::uint32_t node : thin) is_there[node] = true;
  if (drawing.left_out > 0)
    for (std::uint32_t i = 1; i < nodes.size(); ++i)
      if (!is_there[i] && is_there[nodes[i].parent]) drawing.left_out_width += nodes[i].width;
  const std::size_t drawn = drawing.frames.size();
  drawing.thin.reserve(thin.size());
  const Siblings siblings(thin, nodes, ranks);
  for (std::uint32_t i = 0; i < drawn + drawing.thin.size(); ++i) {
    const std::uint32_t caller = i < drawn ? drawing.frames[i].node : drawing.thin[i - drawn].node;
    for (const std::uint32_t callee : siblings.of(caller)) drawing.thin.push_back({callee, i});
  }
}

// The gaps beside drawn frames.
void add_gaps(FlameDrawing& drawing, const FlameTree& tree, double least) {
  const Nodes& nodes = tree.nodes();
  std::vector<double> drawn_width(nodes.size());  // of callees
  std::vector<std::size_t> thin(nodes.size());    // number of callees
  std::vector<bool> is_drawn(nodes.size());
  for (const DrawnFrame& drawn : drawing.frames) is_drawn[drawn.node] = true;
  for (std::uint32_t i = 1; i < nodes.size(); ++i) {
    if (is_drawn[i]) drawn_width[nodes[i].parent] += nodes[i].width;
    if (!is_drawn[i] && nodes[i].width > 0) ++thin[nodes[i].parent];
  }
  for (const DrawnFrame& drawn : drawing.frames) {
    const FlameTree::Node& node = nodes[drawn.node];
    const double width = node.width - node.self_width - drawn_width[drawn.node];
    if (thin[drawn.node] == 0 || width < least) continue;
    drawing.gaps.push_back({drawn.row + 1, drawn.x + drawn_width[drawn.node], width, thin[drawn.node]});
    drawing.rows = std::max(drawing.rows, drawn.row + 2);
  }
}

}  // namespace

FlameDrawing choose_frames(const FlameTree& tree, const FlameFrames& frames, const FlameLimits& limits) {
  const Nodes& nodes = tree.nodes();
  const double thinnest = limits.least * tree.width();
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    if (i == 0 || (nodes[i].width > 0 && nodes[i].width >= thinnest)) chosen.push_back(i);
  keep_widest(chosen, nodes, limits.drawn);
  const std::vector<std::uint32_t> ranks = frames.ranks();
  const Siblings siblings(chosen, nodes, ranks);
  FlameDrawing drawing;
  std::vector<DrawnFrame> waiting{{0, 0, 0}};
  while (!waiting.empty()) {
    const DrawnFrame frame = waiting.back();
    waiting.pop_back();
    drawing.frames.push_back(frame);
    drawing.rows = std::max(drawing.rows, frame.row + 1);
    double x = frame.x;
    const auto first = static_cast<std::ptrdiff_t>(waiting.size());
    for (const std::uint32_t child : siblings.of(frame.node)) {
      waiting.push_back({child, frame.row + 1, x});
      x += nodes[child].width;
    }
    std::reverse(waiting.begin() + first, waiting.end());
  }
  add_thin(drawing, tree, ranks, limits.thin);
  add_gaps(drawing, tree, limits.gap * tree.width());
  return drawing;
}

// The script of the picture, as text (flamegraph.js and what it imports, joined by cmake/join_modules.cmake).
extern const std::string_view kFlamegraphScript;

namespace {

constexpr int kRowHeight = 17, kFrameHeight = 16, kGap = 10;  // px; flamegraph.js has the same

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

// The modules of the first graph by their self weight, and then those of the others alone.
std::vector<std::string_view> modules_of(const FlameFrames& frames, std::span<const FlamePane> panes) {
  std::map<std::string_view, double> weights;
  for (const FlamePane& pane : panes)
    for (const FlameTree::Node& node : pane.tree->nodes())
      weights[frames[node.frame].module] += &pane == &panes.front() ? node.self_width : 0;
  return ranked_modules(weights);
}

std::string class_of(const FlameFrame& frame, const FlameTree::Node& node, const FlamePane& pane,
                     const FlameLook& look, const std::map<std::string_view, std::size_t>& ranks) {
  if (look.palette == "module") return frame.module.empty() ? "a0" : module_class(ranks.at(frame.module));
  if (look.palette == "change")
    return change_class(share_of(node.total.before, pane.all.before),
                        share_of(node.total.after, pane.all.after), node.noise);
  return frame_class(static_cast<char>(frame.kind), frame.name);
}

std::string style() {
  const std::vector<FrameFill> all = frame_fills();
  std::string css =
      "svg{overflow-anchor:none}#bg{fill:#fff}text{fill:#1b1b1b;direction:ltr;unicode-bidi:isolate;"
      "white-space:pre}"
      ".title{font-size:17px}g.frames{cursor:pointer;stroke:#fff;stroke-width:.35}"
      "g.labels,.gaps text{pointer-events:none}.gaps rect{fill:#e4e4e4;cursor:zoom-in}.gaps "
      "text{fill:#595959}"
      ".x0{fill:#33404d}text.x{fill:#f5f5f5}rect.match.match.match{fill:#9c179e}text.match{fill:#f5f5f5}"
      "rect.marked.marked{stroke:#1b1b1b;stroke-width:2}rect.up{opacity:.55}"
      ".searching g.frames rect:not(.match){opacity:.4}"
      "rect.cursor{fill:none;stroke:#000;stroke-width:3;pointer-events:none}"
      ".live "
      ".head{overflow:visible}foreignObject{pointer-events:none}.headbox,.foot,.help{pointer-events:auto}"
      ".headbox,.tip,.foot,.help{font:12px system-ui,sans-serif;color:#1b1b1b;overflow-wrap:anywhere}"
      ".headbox{padding:8px 10px 2px;background:#fff}"
      ".headbox h1{font-size:17px;font-weight:600;margin:0 0 4px}.headbox p{margin:0 0 4px}"
      ".legend span{margin-right:10px;white-space:nowrap}.legend svg{vertical-align:-2px}"
      ".tools *{font:inherit;margin:0 4px 4px 0;padding:3px 7px;color:inherit;background:#f4f4f4;"
      "border:1px solid #767676;border-radius:4px}"
      ".tools .search{width:15em;max-width:90%}.found{min-height:1.3em}"
      ".tip{background:#fff;border:1px solid #767676;border-radius:4px;padding:5px 8px}"
      ".foot{background:#fff;border-top:1px solid #767676;padding:3px 10px 5px;max-height:180px;"
      "overflow:auto}.foot:empty{display:none}"
      ".help{background:#fff;border:1px solid #767676;border-radius:6px;margin:20px auto;padding:4px 16px;"
      "max-width:480px}.help dl{display:grid;grid-template-columns:auto 1fr;gap:4px 14px}"
      ".help dt{font-weight:600}.help dd{margin:0}"
      "svg:focus{outline:none}svg:focus-visible,.help:focus-visible{outline:2px solid "
      "#0b57d0;outline-offset:-2px}"
      ".tools *:focus-visible{outline:2px solid #0b57d0}@media print{.headbox .tools{display:none}}";
  for (const FrameFill& fill : all) css += fmt::format("{}{{fill:#{:06x}}}", fill.selector, fill.light);
  css +=
      "@media screen and "
      "(prefers-color-scheme:dark){#bg{fill:#16181c}text{fill:#f5f5f5}g.frames{stroke:#16181c}"
      "rect.match.match.match{fill:#f0a6f5}text.match{fill:#1b1b1b}.gaps rect{fill:#33363c}.gaps "
      "text{fill:#b4b4b4}rect.marked.marked{stroke:#f5f5f5}"
      "rect.cursor{stroke:#fff}.headbox,.tip,.foot,.help{color:#f5f5f5}.headbox{background:#16181c}"
      ".tip,.foot,.help{background:#22252b}.tools *{background:#2d3138}";
  for (const FrameFill& fill : all) css += fmt::format("{}{{fill:#{:06x}}}", fill.selector, fill.dark);
  return css + "}";
}

// A number in an attribute; integers without ".000".
std::string plain_number(double value) {
  return value == std::floor(value) && std::abs(value) < 9e15 ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{:.9g}", value);
}

// ---- the file -----------------------------------------------------------

struct Legend {
  std::string look;
  std::string text;
};

std::vector<Legend> legend(const FlameFrames& frames, std::span<const FlamePane> panes, const FlameLook& look,
                           const std::vector<std::string_view>& modules) {
  if (look.palette == "module") {
    std::vector<Legend> heaviest;
    for (std::size_t rank = 0; rank < std::min<std::size_t>(modules.size(), 8); ++rank)
      heaviest.push_back({module_class(rank), std::string(modules[rank])});
    return heaviest;
  }
  if (look.palette == "change")
    return {{"p4", look.per.empty() ? fmt::format("more of all than {}", look.before_name)
                                    : "costs more per " + look.per + " than before"},
            {"p1", "a little more"},
            {"d0", look.has_noise ? "as much, within the noise" : "as much"},
            {"q1", "a little less"},
            {"q4", "less"}};
  std::array<bool, 128> is_there{};
  for (const FlamePane& pane : panes)
    for (const DrawnFrame& drawn : pane.drawing.frames)
      is_there[static_cast<std::size_t>(frames[pane.tree->nodes()[drawn.node].frame].kind)] = true;
  std::vector<Legend> keys;
  for (const auto& [kind, word] : frame_kinds())
    if (!word.empty() && is_there[static_cast<std::size_t>(kind)])
      keys.push_back({fmt::format("{}0", kind), std::string(word)});
  return keys;
}

// Writes one picture.
class SvgPicture {
 public:
  SvgPicture(TextOutput& out, const FlameFrames& frames, std::span<const FlamePane> panes,
             const FlameLook& look)
      : out_(out), frames_(frames), panes_(panes), look_(look), modules_(modules_of(frames, panes)) {
    for (const std::string_view module : modules_) ranks_.emplace(module, ranks_.size());
  }

  Result<> write(format::WorkerPool& pool) {
    const auto keys = legend(frames_, panes_, look_, modules_);
    const double top = 58 + 16.0 * static_cast<double>(look_.notes.size()) + (keys.empty() ? 0 : 18);
    double height = top;
    for (const FlamePane& pane : panes_) height += height_of(pane);
    begin(height);
    head(keys);
    names();
    double y = top;
    for (const FlamePane& pane : panes_) {
      write_pane(pane, y);
      y += height_of(pane);
    }
    if (auto done = write_thin(pool); !done) return done;
    text("<script><![CDATA[\n");
    text(kFlamegraphScript);
    text("]]></script>\n</svg>\n");
    return Done{};
  }

 private:
  void text(std::string_view more) {
    out_.text(more);
    out_.line_end();
  }
  double height_of(const FlamePane& pane) const {
    return (pane.heading.empty() ? 0 : 22) + static_cast<double>(pane.drawing.rows) * kRowHeight + kGap;
  }

  void begin(double height) {
    text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text(fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} "
        "{1:.0f}\" font-family=\"system-ui,Verdana,sans-serif\" font-size=\"12\" class=\"{2}\" "
        "data-palette=\"{2}\" data-inverted=\"{3}\" data-least=\"{4}\"",
        look_.width, height, look_.palette, look_.is_inverted ? 1 : 0, plain_number(look_.least)));
    text(totals(panes_.front()));
    if (look_.is_difference)
      text(fmt::format(" data-was=\"{}\" data-is=\"{}\"", look_.before_name, look_.after_name));
    if (look_.has_noise) text(" data-noise=\"1\"");
    if (!look_.per.empty())
      text(fmt::format(" data-per=\"{}\" data-units=\"{}\"", xml_text(look_.per), plain_number(look_.units)));
    text(">\n<title>" + xml_text(look_.title) + "</title>\n<style>" + style() + "</style>\n");
    text("<rect id=\"bg\" width=\"100%\" height=\"100%\"/>\n");
  }

  // The unit and the totals of a graph, as attributes.
  std::string totals(const FlamePane& pane) const {
    std::string attributes = " data-unit=\"" + xml_text(pane.unit) + '"';
    if (!pane.events.empty()) attributes += " data-events=\"" + xml_text(pane.events) + '"';
    if (look_.is_difference)
      attributes += fmt::format(" data-before=\"{}\" data-after=\"{}\"", plain_number(pane.all.before),
                                plain_number(pane.all.after));
    return attributes;
  }

  void head(const std::vector<Legend>& keys) {
    text("<g class=\"head\">");
    text(fmt::format("<text x=\"10\" y=\"24\" class=\"title\">{}</text>\n", xml_text(look_.title)));
    double y = 44;
    for (const std::string& note : look_.notes) {
      text(fmt::format("<text x=\"10\" y=\"{:.0f}\" class=\"note\">{}</text>\n", y, xml_text(note)));
      y += 16;
    }
    double x = 10;
    for (const Legend& key : keys) {
      text(fmt::format(
          "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" class=\"{}\"/><text x=\"{:.0f}\" "
          "y=\"{:.0f}\">{}</text>\n",
          x, y - 8, key.look, x + 17, y + 2, xml_text(key.text)));
      x += 17 + kSvgLetter * static_cast<double>(key.text.size()) + 14;
    }
    y += keys.empty() ? 0 : 18;
    text(
        fmt::format("<text x=\"10\" y=\"{:.0f}\">A browser that runs its script can zoom and search, and has "
                    "tooltips.</text></g>\n",
                    y));
  }

  // The modules by rank, behind an empty line for frames of none. The drawn frames, each once: a name is in
  // the file once, however often it is drawn.
  void names() {
    numbers_.assign(frames_.size(), kNoNumber);
    std::string module_lines, name_lines, source_lines;
    for (const std::string_view module : modules_) module_lines += "\n" + xml_text(module);
    bool has_lines = false;
    std::uint32_t count = 0;
    for (const FlamePane& pane : panes_) {
      for (const DrawnFrame& drawn : pane.drawing.frames) {
        const std::uint32_t number = pane.tree->nodes()[drawn.node].frame;
        if (numbers_[number] != kNoNumber) continue;
        const FlameFrame& frame = frames_[number];
        name_lines +=
            fmt::format("{}{} {} {}", count == 0 ? "" : "\n", static_cast<char>(frame.kind),
                        frame.module.empty() ? 0 : ranks_.at(frame.module) + 1, xml_text(frame.name));
        source_lines += count == 0 ? "" : "\n";
        if (number < look_.lines.size() && !look_.lines[number].empty()) {
          source_lines += xml_text(look_.lines[number]);
          has_lines = true;
        }
        numbers_[number] = count++;
      }
    }
    names_ = count;
    text("<metadata class=\"modules\">" + module_lines + "</metadata>\n");
    text("<metadata class=\"names\">" + name_lines + "</metadata>\n");
    if (has_lines) text("<metadata class=\"lines\">" + source_lines + "</metadata>\n");
  }

  void write_pane(const FlamePane& pane, double y) {
    const double base = y + (pane.heading.empty() ? 0 : 22), wide = look_.width - 2.0 * kGap;
    const double left_out = share_of(pane.drawing.left_out_width, pane.tree->width());
    text(fmt::format("<g class=\"pane\" data-kind=\"{}\"{}{} transform=\"translate(0 {:.0f})\">\n", pane.kind,
                     panes_.size() == 1 ? "" : totals(pane),
                     left_out > 0 ? fmt::format(" data-left-out=\"{:.6f}\"", left_out) : "", base));
    if (!pane.heading.empty())
      text(fmt::format("<text x=\"10\" y=\"-7\" class=\"heading\">{}</text>\n", xml_text(pane.heading)));
    const double scale = share_of(wide, pane.tree->width());
    text("<g class=\"frames\">\n");
    for (const DrawnFrame& drawn : pane.drawing.frames) {
      const FlameTree::Node& node = pane.tree->nodes()[drawn.node];
      const FlameFrame& frame = frames_[node.frame];
      const double width = node.width * scale;
      text(fmt::format(
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" class=\"{}{}\" n=\"{}\" w=\"{}\"",
          kGap + drawn.x * scale, row_y(pane, drawn.row), width, kFrameHeight,
          class_of(frame, node, pane, look_, ranks_), is_marked(frame) ? " marked" : "", numbers_[node.frame],
          plain_number(node.width)));
      if (node.self_width > 0) text(fmt::format(" s=\"{}\"", plain_number(node.self_width)));
      if (look_.is_difference) {
        if (node.total.before > 0) text(fmt::format(" b=\"{}\"", plain_number(node.total.before)));
        if (node.total.after > 0) text(fmt::format(" a=\"{}\"", plain_number(node.total.after)));
        if (node.noise > 0) text(fmt::format(" e=\"{:.6f}\"", node.noise));
      }
      // A tool tip without a script, for frames that are wide enough.
      if (width >= 1) {
        text(fmt::format("><title>{} ({}, {:.2f} %)</title></rect>\n", xml_text(frame.name),
                         amount(node, pane), 100 * share_of(node.width, pane.tree->width())));
      } else {
        text("/>\n");
      }
    }
    text("</g>\n<g class=\"labels\">\n");
    for (const DrawnFrame& drawn : pane.drawing.frames) {
      const FlameTree::Node& node = pane.tree->nodes()[drawn.node];
      const FlameFrame& frame = frames_[node.frame];
      const std::string shown = fitting_name(frame.name, node.width * scale);
      if (shown.empty()) continue;
      const bool is_mark = frame.kind == FrameKind::Mark && look_.palette != "module";
      text(fmt::format("<text x=\"{:.1f}\" y=\"{}\"{}>{}</text>\n", kGap + drawn.x * scale + 3,
                       row_y(pane, drawn.row) + 12, is_mark ? " class=\"x\"" : "", xml_text(shown)));
    }
    text("</g>\n");
    write_gaps(pane, scale);
    text("</g>\n");
  }

  void write_gaps(const FlamePane& pane, double scale) {
    text("<g class=\"gaps\">\n");
    for (const FlameDrawing::Gap& gap : pane.drawing.gaps) {
      const double x = kGap + gap.x * scale, width = gap.width * scale;
      const auto y = row_y(pane, gap.row);
      text(fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>\n", x, y, width,
                       kFrameHeight));
      const double all = pane.kind == "gone" ? pane.all.before : pane.tree->width();
      std::string shown = fmt::format("{:.2f} %", 100 * share_of(gap.width, all));
      const std::string words = with_commas(static_cast<double>(gap.count)) + " thinner, " + shown;
      if (fitting_text(words, width) == words) shown = words;
      if (fitting_text(shown, width) == shown)
        text(fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", x + 3, y + 12, shown));
    }
    text("</g>\n");
  }

  std::uint32_t row_y(const FlamePane& pane, std::uint32_t row) const {
    return (look_.is_inverted ? row : pane.drawing.rows - 1 - row) * kRowHeight;
  }

  // Weights of folded text have no unit.
  std::string amount(const FlameTree::Node& node, const FlamePane& pane) const {
    return pane.unit.empty() ? with_commas(node.width) : xml_text(quantity_text(node.width, pane.unit));
  }
  bool is_marked(const FlameFrame& frame) const {
    return look_.is_marked && frame.kind != FrameKind::All && look_.is_marked(frame.name);
  }

  // Writes the thin frames of all panes as columns (packed_data.h). Pane N has N.caller (each as the
  // difference to the one before), N.name, N.total and N.self; in a difference N.before, N.after and N.noise.
  // Names are numbered on from those of drawn frames, and new ones are in "name.kind", "name.module" (a text)
  // and "name.marked"; their texts are the first ones.
  Result<> write_thin(format::WorkerPool& pool) {
    if (std::ranges::all_of(panes_, [](const FlamePane& pane) { return pane.drawing.thin.empty(); }))
      return Done{};
    PackedTexts texts;
    PackedColumn kinds("name.kind", ColumnForm::Byte), modules("name.module", ColumnForm::Numbers),
        marks("name.marked", ColumnForm::Byte);
    std::vector<std::uint32_t> made;  // new frames
    std::vector<PackedColumn> columns;
    for (std::size_t number = 0; number < panes_.size(); ++number) {
      const FlamePane& pane = panes_[number];
      const auto column = [number](std::string_view name, ColumnForm form = ColumnForm::Reals) {
        return PackedColumn(fmt::format("{}.{}", number, name), form);
      };
      PackedColumn caller = column("caller", ColumnForm::Numbers), name = column("name", ColumnForm::Numbers);
      PackedColumn total = column("total"), self = column("self"), before = column("before"),
                   after = column("after"), noise = column("noise");
      std::uint32_t last = 0;
      for (const ThinFrame& thin : pane.drawing.thin) {
        const FlameTree::Node& node = pane.tree->nodes()[thin.node];
        if (numbers_[node.frame] == kNoNumber) {
          numbers_[node.frame] = names_ + static_cast<std::uint32_t>(made.size());
          made.push_back(node.frame);
        }
        caller.add_number(thin.caller - std::exchange(last, thin.caller));
        name.add_number(numbers_[node.frame]);
        total.add_real(node.width);
        self.add_real(node.self_width);
        if (!look_.is_difference) continue;
        before.add_real(node.total.before);
        after.add_real(node.total.after);
        noise.add_real(node.noise);
      }
      for (PackedColumn* one : {&caller, &name, &total, &self, &before, &after, &noise})
        columns.push_back(std::move(*one));
    }
    std::map<std::string_view, std::size_t> module_texts;
    for (const std::uint32_t frame : made) texts.add_text(frames_[frame].name);
    for (const std::uint32_t number : made) {
      const FlameFrame& frame = frames_[number];
      const auto [module, is_new] = module_texts.try_emplace(frame.module, made.size() + module_texts.size());
      if (is_new) texts.add_text(frame.module);
      kinds.add_byte(static_cast<char>(frame.kind));
      modules.add_number(module->second);
      marks.add_byte(is_marked(frame) ? '\1' : '\0');
    }
    for (PackedColumn* one : {&kinds, &modules, &marks}) columns.push_back(std::move(*one));
    for (PackedColumn& one : std::move(texts).columns()) columns.push_back(std::move(one));
    return write_packed_data(out_, "null", columns, pool);
  }

  TextOutput& out_;
  const FlameFrames& frames_;
  std::span<const FlamePane> panes_;
  const FlameLook& look_;
  const std::vector<std::string_view> modules_;    // by rank
  std::map<std::string_view, std::size_t> ranks_;  // of them
  static constexpr std::uint32_t kNoNumber = ~0U;
  std::vector<std::uint32_t> numbers_;  // of frames in the file
  std::uint32_t names_ = 0;             // frames that are drawn
};

}  // namespace

Result<> write_flame_svg(TextOutput& out, const FlameFrames& frames, std::span<const FlamePane> panes,
                         const FlameLook& look, format::WorkerPool& pool) {
  return SvgPicture(out, frames, panes, look).write(pool);
}

}  // namespace tacho::report
