#include "report/views/report/hierarchy_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/output/terminal.h"
#include "report/views/report/call_graph_text.h"

namespace tacho::report {

namespace {

using Kind = Column::Kind;
constexpr std::size_t kStep = 3;        // blanks for each level
constexpr std::size_t kMostDots = 207;  // perf's limit

// The indentation of `nodes` groups of columns: the first is on the left, and the last has none after it.
std::size_t steps(std::size_t nodes) { return nodes < 2 ? 0 : (nodes - 2) * kStep; }

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::string_view without_indent(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

FilterBits decided_by(const SortKey& key) {
  if (key.of == KeyOf::Comm || key.of == KeyOf::Thread) return kByThread;
  if (key.name == "dso") return kByModule;
  return key.name == "symbol" ? kBySymbol : FilterBits{0};
}

std::size_t node_count(const HierarchyPlan& plan) {
  return plan.levels.size() + (plan.is_first_both ? 0 : 1);
}

}  // namespace

HierarchyPlan HierarchyText::plan(std::size_t leader, std::size_t members) const {
  struct Node {
    std::size_t level = 0;
    std::vector<Column> columns;
  };
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < columns_->sorted.size(); ++i) {
    const Column& column = columns_->sorted[i];
    if (!cells_.is_of(column, leader, members)) continue;
    auto node = std::ranges::find(nodes, columns_->levels[i], &Node::level);
    if (node == nodes.end()) node = nodes.insert(node, {columns_->levels[i], {}});
    node->columns.push_back(column);
  }
  HierarchyPlan plan;
  if (nodes.empty()) return plan;
  plan.left = nodes.front().columns;
  plan.is_first_both = nodes.front().level != 0;
  for (Node& node : nodes) {
    if (node.level == 0) continue;
    FilterBits decides = 0;
    for (const Column& column : node.columns) {
      if (column.kind == Kind::Key) decides |= decided_by(*columns_->keys[column.key].key);
    }
    plan.levels.push_back({std::move(node.columns), decides});
  }
  return plan;
}

HierarchyText::Cells HierarchyText::cells_of(const Hierarchy& hierarchy, const HierarchyPlan& plan) const {
  Cells cells;
  const auto measured = [&](const Column& column) {
    Cell cell = cells_.cell_of(column, hierarchy.members(), 0);
    if (column.kind != Kind::Key) return cell;
    // As in perf, rows of all levels count, each with the values of its first sample.
    for (const TreeRowId row : hierarchy.ids()) {
      if (hierarchy.row(row).filtered == 0)
        cell.width = std::max(cell.width, cells_.width_of(column, hierarchy.facts(row)));
    }
    return cell;
  };
  for (const Column& column : plan.left) cells.left.push_back(measured(column));
  for (const HierarchyLevel& level : plan.levels) {
    auto& of_level = cells.levels.emplace_back();
    for (const Column& column : level.columns) of_level.push_back(measured(column));
  }
  return cells;
}

void HierarchyText::write_head(TextOutput& out, const Cells& cells, const HierarchyPlan& plan) const {
  const bool is_aligned = options_->separator.empty();
  const std::string_view between = is_aligned ? std::string_view("  ") : options_->separator;
  const std::size_t indent = is_aligned ? steps(node_count(plan)) : 0;
  out.text("# ");
  out.blanks(indent);
  for (const Cell& cell : cells.left) {
    out.text(cells_.header(cell));
    out.text(between);
  }
  std::string names;
  std::size_t width = 0;
  for (std::size_t level = plan.is_first_both ? 1 : 0; level < cells.levels.size(); ++level) {
    if (!names.empty()) names += " / ";
    const std::size_t depth = level - (plan.is_first_both ? 1 : 0);
    std::size_t level_width = depth * kStep;
    for (std::size_t i = 0; i < cells.levels[level].size(); ++i) {
      const Cell& cell = cells.levels[level][i];
      if (i > 0) names += '+';
      names += trimmed(cell.header);
      level_width += cell.width + (i > 0 ? 1 : 0);
    }
    width = std::max(width, level_width);
  }
  out.text(names);
  out.text("\n# ");
  out.fill('.', std::min(indent, kMostDots));
  for (std::size_t i = 0; i < cells.left.size(); ++i) {
    if (i > 0) out.text(is_aligned ? std::string_view("..") : between);
    out.fill('.', std::min(cells.left[i].width, kMostDots));
  }
  out.text(between);
  std::size_t dots = std::min(std::max(width, names.size()), kMostDots);
  if (options_->room != 0 && is_aligned) {
    const std::size_t used = shown_width(out.view().substr(out.view().rfind('\n') + 1));
    dots = std::min(dots, options_->room - std::min(options_->room, used));
  }
  out.fill('.', dots);
  out.text("\n#\n");
}

std::string HierarchyText::cell_text(const Cell& cell, const Hierarchy& hierarchy, TreeRowId row,
                                     const FullValues& totals) const {
  if (cell.column.kind == Kind::Key) return cells_.key(cell, hierarchy.facts(row));
  std::vector<std::uint64_t> values;
  for (std::size_t member = 0; member < hierarchy.members(); ++member)
    values.push_back(hierarchy.value(cell.column.kind, row, member));
  return cells_.numbers(cell, values, totals.values_of(cell.column.kind));
}

void HierarchyText::write_row(TextOutput& out, const Hierarchy& hierarchy, TreeRowId row, const Cells& cells,
                              std::size_t nodes, const FullValues& totals) const {
  const bool is_aligned = options_->separator.empty();
  const std::string_view between = is_aligned ? std::string_view("  ") : options_->separator;
  const std::size_t begin = out.size();
  out.blanks(hierarchy.row(row).level * kStep);
  for (std::size_t i = 0; i < cells.left.size(); ++i) {
    if (is_aligned || i > 0) out.text(between);
    out.left(cell_text(cells.left[i], hierarchy, row, totals), cells.left[i].width);
  }
  if (is_aligned) out.blanks(steps(nodes));
  const auto& level = cells.levels[hierarchy.row(row).level];
  std::vector<std::string> texts;
  for (const Cell& cell : level) texts.emplace_back(without_indent(cell_text(cell, hierarchy, row, totals)));
  if (is_aligned) fit(texts, level, shown_width(out.view().substr(begin)) + between.size());
  for (const std::string& text : texts) {
    out.text(between);
    out.text(text);
  }
  out.character('\n');
}

// Cuts the names of a level, which begin at column `used`.
void HierarchyText::fit(std::vector<std::string>& texts, std::span<const Cell> cells,
                        std::size_t used) const {
  constexpr std::size_t kBetween = 2;
  std::size_t whole = used;
  for (const std::string& text : texts) whole += shown_width(text) + (&text == &texts.front() ? 0 : kBetween);
  if (options_->room == 0 || whole <= options_->room) return;
  std::vector<std::size_t> widths;
  std::vector<bool> are_names;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_key = cells[i].column.kind == Kind::Key;
    if (is_key) texts[i].resize(texts[i].find_last_not_of(' ') + 1);
    widths.push_back(shown_width(texts[i]));
    are_names.push_back(is_key);
  }
  fit_columns(widths, are_names, kBetween, std::max(options_->room, used + 1) - used);
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (are_names[i]) texts[i] = cut_in_the_middle(texts[i], widths[i]);
}

bool HierarchyText::is_shown(const Hierarchy& hierarchy, TreeRowId row, std::uint64_t total) const {
  return hierarchy.row(row).filtered == 0 &&
         percent_of(hierarchy.value(Kind::Overhead, row, 0), total) >= options_->percent_limit;
}

// The width of the columns before the first key.
std::size_t HierarchyText::numbers_width(std::size_t members) const {
  std::size_t width = 0;
  for (const Column& column : columns_->shown) {
    if (column.kind == Kind::Key) break;
    width += cells_.cell_of(column, members, 0).width + (width == 0 ? 0 : 2);
  }
  return width;
}

void HierarchyText::write(TextOutput& out, const Entries& entries, const Hierarchy& hierarchy,
                          const HierarchyPlan& plan) const {
  const Cells cells = cells_of(hierarchy, plan);
  if (!options_->is_quiet) write_head(out, cells, plan);
  FullValues totals;
  for (std::size_t member = 0; member < hierarchy.members(); ++member) {
    totals.weights.push_back(hierarchy.total(member, options_->is_relative));
    totals.latencies.push_back(hierarchy.total(member, options_->is_relative, Kind::Latency));
  }
  std::vector<GraphRow> graph_rows;
  std::optional<RowGraphs> graphs;
  for (const TreeRowId row : hierarchy.shown()) {
    if (hierarchy.row(row).is_leaf && is_shown(hierarchy, row, totals.weights[0]))
      graph_rows.push_back({hierarchy.entries_of(row), hierarchy.value(Kind::Overhead, row, 0)});
  }
  if (options_->graph)
    graphs.emplace(*options_, entries, tree_->functions(), GraphTotals{totals.weights[0], totals.weights[0]},
                   graph_rows);

  std::size_t lines = 0;
  for (const TreeRowId row : hierarchy.shown()) {
    if (options_->top != 0 && lines >= options_->top) break;
    if (!is_shown(hierarchy, row, totals.weights[0])) continue;
    write_row(out, hierarchy, row, cells, node_count(plan), totals);
    ++lines;
    if (hierarchy.row(row).is_leaf) {
      if (graphs) graphs->write_next(out, *tree_);
    } else if (std::ranges::none_of(hierarchy.below(row), [&](TreeRowId below) {
                 return is_shown(hierarchy, below, totals.weights[0]);
               })) {
      const std::size_t indent = steps(node_count(plan) + hierarchy.row(row).level + 1);
      out.blanks((options_->separator.empty() ? indent : 0) + numbers_width(hierarchy.members()) + 4);
      out.text(fmt::format("no entry >= {:.2f}%\n", options_->percent_limit));
      ++lines;
    }
    out.line_end();
  }
}

}  // namespace tacho::report
