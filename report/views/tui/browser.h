// Browser: a scrolled list of a report's rows with call graphs that open and close. It has the cursor, what
// is open, and the layout of the lines. It depends neither on the profile nor on curses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/samples/ids.h"
#include "report/views/tui/frame.h"

namespace tacho::report {

// When a column is left out to make room for the last one, mostly the function: never, before columns of
// names, or after them. Of several the rightmost is left out first, and the last column never.
enum class Spare : std::uint8_t { No, BeforeNames, AfterNames };

struct BrowsedColumn {
  std::string header;
  std::size_t width = 0;
  bool is_name = false;   // may be shortened in the middle
  bool is_right = false;  // right-aligned header
  bool is_share = false;  // a percentage, coloured by its value
  Spare spare = Spare::No;
};

// A node of a call graph: frames with one callee each.
struct BrowsedNode {
  std::vector<std::string> frames;
  std::vector<FunctionId> functions;  // of the frames, for annotating and zooming
  std::string share;                  // "22.76%"; empty: it has no siblings, so none is shown
  std::uint32_t first_child = 0, children = 0;
  std::uint64_t weight = 0;      // of all call chains through the node
  std::uint64_t own_weight = 0;  // of those that end in its last frame
};

class BrowsedRows {
 public:
  virtual ~BrowsedRows() = default;
  virtual std::size_t size() const = 0;
  virtual std::vector<BrowsedColumn> columns() const = 0;
  // A text for each column, neither shortened nor padded; `share`: percent, for percentages.
  struct Cell {
    std::string text;
    double share = 0;
    Style style = Style::Normal;  // of a cell that is no share
  };
  virtual std::vector<Cell> cells(std::size_t row) const = 0;
  // Identifies the row by its names: the same after another reading.
  virtual std::string identity(std::size_t row) const = 0;
  virtual bool has_graph(std::size_t row) const = 0;
  // Node 0 is the root, without frames.
  virtual std::vector<BrowsedNode> graph(std::size_t row) const = 0;
};

class Browser {
 public:
  // A line: a row, and a line of its call graph from 1 on; 0: the row itself.
  struct Position {
    std::size_t row = 0, line = 0;
    bool operator==(const Position&) const = default;
    auto operator<=>(const Position&) const = default;
  };

  // `rows` must outlive it. Call changed() when the rows change.
  explicit Browser(const BrowsedRows& rows) : rows_(&rows) {}

  // Call it when the rows are others: closes all call graphs and sets the cursor to row `at`, or to the last.
  void changed(std::size_t at = 0);
  // Call it when only texts of call graphs changed: these stay open.
  void graphs_changed();
  // False: not a key of the list.
  bool on_key(const KeyPress& press);
  // Draws `height` lines of the frame from `first` on, with the header.
  void draw(Frame& frame, std::size_t first, std::size_t height);

  // Text of all rows with their open call graphs, with full names.
  std::string text() const;

  bool is_empty() const { return rows_->size() == 0; }
  Position cursor() const { return cursor_; }
  void move_to(Position position);
  // Whether the cursor is at a line of a call graph, and the function of that line.
  bool is_at_frame() const { return cursor_.line > 0; }
  FunctionId function_at_cursor() const;
  // Opens all of a row's call graph.
  void open_all(std::size_t row);

  // The cursor and the open call graphs, to restore them after another reading: by names, since numbers
  // change.
  struct Memory {
    struct OpenRow {
      std::string row;
      std::set<std::string> first_open, last_open;  // nodes, by the frames on the path to them
    };
    std::vector<OpenRow> open;
    std::string cursor;  // empty: the first row
    std::size_t line = 0, scrolled = 0;
    std::size_t above = 0;  // rows on the screen above the cursor's
    bool has_head = true, is_wide = false;
  };
  Memory remember() const;
  // Call it after the constructor. If the cursor's row is gone, the cursor keeps its number.
  void restore(const Memory& memory);

 private:
  struct Line {
    std::uint32_t node = 0, frame = 0;
    std::size_t indent = 0;
    char sign = ' ';
  };
  struct Open {
    std::vector<BrowsedNode> nodes;
    std::vector<bool> first_open, last_open;  // by node: whether its other frames, its children are shown
    std::vector<Line> lines;
  };

  Open& open_row(std::size_t row);
  static void make_lines(Open& one);
  static std::vector<std::string> paths_of(const std::vector<BrowsedNode>& nodes);
  std::size_t lines_of(std::size_t row) const;
  bool step_down(Position& position) const;
  bool step_up(Position& position) const;
  void move(std::ptrdiff_t lines);
  void toggle();
  void close_or_go_to_parent();
  char sign_of(Position position) const;
  void scroll_to_cursor(std::size_t height);
  void draw_head(Frame& frame, std::size_t at, const std::vector<BrowsedColumn>& columns) const;
  void draw_row(Frame& frame, std::size_t at, std::size_t row,
                const std::vector<BrowsedColumn>& columns) const;
  void draw_line(Frame& frame, std::size_t at, Position position) const;
  std::vector<BrowsedColumn> fitted(std::size_t width) const;
  // Draws at the horizontal scroll position.
  void put_text(Frame& frame, std::size_t at, std::size_t column, Style style, std::string_view text) const;

  const BrowsedRows* rows_;
  std::map<std::size_t, Open> open_;
  Position cursor_, top_;
  std::size_t height_ = 1;    // when last drawn
  std::size_t first_ = 0;     // the frame's line of top_, when last drawn
  std::size_t scrolled_ = 0;  // columns, with is_wide_
  bool has_head_ = true, is_wide_ = false;
};

}  // namespace tacho::report
