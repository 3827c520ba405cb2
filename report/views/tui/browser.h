// The list of a report's rows with their call graphs, opened and closed: where the cursor is, what is open,
// what stands on which line of the screen. Where rows come from it does not know; nor does it know curses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/views/tui/frame.h"

namespace tacho::report {

struct BrowsedColumn {
  std::string header;
  std::size_t width = 0;
  bool is_name = false;   // gives up room, cut in the middle
  bool is_right = false;  // the header
  bool is_share = false;  // its text is a percentage, coloured by it
};

// A node of a call graph: frames that follow each other without a choice.
struct BrowsedNode {
  std::vector<std::string> frames;
  std::vector<std::uint32_t> functions;  // of the frames: what annotating and zooming go by
  std::string share;                     // "22.76%"; empty: not shown, as no other node is beside it
  std::uint32_t first_child = 0, children = 0;
  std::uint64_t weight = 0;
};

class BrowsedRows {
 public:
  virtual ~BrowsedRows() = default;
  virtual std::size_t size() const = 0;
  virtual std::vector<BrowsedColumn> columns() const = 0;
  // A text for each column, not cut and not padded, and in `share` what of 100 it is where it is one.
  struct Cell {
    std::string text;
    double share = 0;
  };
  virtual std::vector<Cell> cells(std::size_t row) const = 0;
  // What it is of, without its numbers: the same in rows that are made anew.
  virtual std::string identity(std::size_t row) const = 0;
  virtual bool has_graph(std::size_t row) const = 0;
  // Node 0 is the root, without frames.
  virtual std::vector<BrowsedNode> graph(std::size_t row) const = 0;
};

class Browser {
 public:
  // Where a line stands: a row, and the line of its open graph from 1 up; 0: the row itself.
  struct Position {
    std::size_t row = 0, line = 0;
    bool operator==(const Position&) const = default;
    auto operator<=>(const Position&) const = default;
  };

  // `rows` must outlive it, and call changed() when they are others.
  explicit Browser(const BrowsedRows& rows);

  // Rows are others now: nothing is open, the cursor stands at row `at` or the last.
  void changed(std::size_t at = 0);
  // Rows are the same, their call graphs have other texts: what is open stays open.
  void graphs_changed();
  // Whether the key means something here, and was done.
  bool on_key(const KeyPress& press);
  // Draws `height` rows of the frame from `first` on, the head included.
  void draw(Frame& frame, std::size_t first, std::size_t height);

  // All rows with the call graphs that are open, names whole.
  std::string text() const;

  bool is_empty() const { return rows_->size() == 0; }
  Position cursor() const { return cursor_; }
  void move_to(Position position);
  // The function at the cursor within a graph; nothing at a row itself: the row says it.
  bool is_at_frame() const { return cursor_.line > 0; }
  std::uint32_t function_at_cursor() const;
  bool is_wide() const { return is_wide_; }
  // Opens all of a row's graph.
  void open_all(std::size_t row);

  // Where the cursor is and what is open, for rows that are made anew: by names, as their numbers change.
  struct Memory {
    struct OpenRow {
      std::string row;
      std::set<std::string> first_open, last_open;  // nodes, by the frames that lead to them
    };
    std::vector<OpenRow> open;
    std::string cursor;  // empty: the first row, whichever it is
    std::size_t line = 0, above = 0,
                scrolled = 0;  // above: rows between the screen's first one and the cursor
    bool has_head = true, is_wide = false;
  };
  Memory remember() const;
  // After the constructor. Rows that are gone are closed, and a cursor on one stays in its position.
  void restore(const Memory& memory);

 private:
  struct Line {
    std::uint32_t node = 0, frame = 0;
    std::size_t indent = 0;
    char sign = ' ';
  };
  struct Open {
    std::vector<BrowsedNode> nodes;
    std::vector<bool> first_open, last_open;  // of each node: its further frames, its children
    std::vector<Line> lines;
  };

  Open& open(std::size_t row);
  void set_all(Open& one, bool is_open);
  static void make_lines(Open& one);
  static std::vector<std::string> paths_of(const std::vector<BrowsedNode>& nodes);
  std::size_t lines_of(std::size_t row) const;
  bool step_down(Position& position) const;
  bool step_up(Position& position) const;
  void move(std::ptrdiff_t lines);
  void toggle();
  void close_or_leave();
  bool is_open_here() const;
  char sign_of(Position position) const;
  void keep_in_sight(std::size_t height);
  void draw_head(Frame& frame, std::size_t at, const std::vector<BrowsedColumn>& columns) const;
  void draw_row(Frame& frame, std::size_t at, std::size_t row,
                const std::vector<BrowsedColumn>& columns) const;
  void draw_line(Frame& frame, std::size_t at, Position position) const;
  std::vector<BrowsedColumn> fitted(std::size_t width) const;
  // On the frame, as scrolled to the right.
  void put(Frame& frame, std::size_t at, std::size_t column, Style style, std::string_view text) const;

  const BrowsedRows* rows_;
  std::map<std::size_t, Open> open_;
  Position cursor_, top_;
  std::size_t height_ = 1;    // of the last drawing
  std::size_t first_ = 0;     // the frame's row of top_ there
  std::size_t scrolled_ = 0;  // columns, with is_wide_
  bool has_head_ = true, is_wide_ = false;
};

}  // namespace tacho::report
