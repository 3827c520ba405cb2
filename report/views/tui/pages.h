// Overlays of the list: text pages, menus, questions. Each handles its keys and draws itself; the view acts
// on the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "report/output/text_output.h"
#include "report/views/tui/frame.h"

namespace tacho::report {

// The text that `write` prints, and its lines.
std::string written_text(const std::function<void(TextOutput&)>& write);
std::vector<std::string> written_lines(const std::function<void(TextOutput&)>& write);

// A scrolled text: help, the capture's header.
class TextPage {
 public:
  // `closers`: characters that close it besides q. `hints`: the last line.
  TextPage(std::string title, std::vector<std::string> lines, std::string closers = {},
           std::string hints = "arrows, Space: scroll  q: back")
      : title_(std::move(title)),
        closers_(std::move(closers)),
        hints_(std::move(hints)),
        lines_(std::move(lines)) {}
  static TextPage help(std::vector<std::string> lines) { return {"Keys", std::move(lines), "h?"}; }
  // False: the key closes the page.
  bool on_key(const KeyPress& press);
  void draw(Frame& frame);

 private:
  std::string title_, closers_, hints_;
  std::vector<std::string> lines_;
  std::size_t top_ = 0, left_ = 0, height_ = 1;
};

// The help page: keys of all views, those of `here` first. `is_live`: in tacho top.
enum class KeysOf : std::uint8_t { List, Callers, Flame, Times, Compared, Code, Samples, HeatMap, Histogram };
std::vector<std::string> help_lines(KeysOf here, bool is_live);

class Menu {
 public:
  Menu(std::string title, std::vector<std::string> items)
      : title_(std::move(title)), items_(std::move(items)) {}
  enum class Answer : std::uint8_t { None, Chosen, Closed };
  Answer on_key(const KeyPress& press);
  std::size_t chosen() const { return at_; }
  void draw(Frame& frame);

 private:
  std::string title_;
  std::vector<std::string> items_;
  std::size_t at_ = 0, top_ = 0;
  std::size_t first_row_ = 0, rows_ = 0, column_ = 0, width_ = 0;  // when last drawn
};

// A line for text input at the bottom of the screen.
class Question {
 public:
  Question(std::string label, std::string text) : label_(std::move(label)), text_(std::move(text)) {}
  enum class Answer : std::uint8_t { None, Changed, Given, Closed };
  Answer on_key(const KeyPress& press);
  const std::string& text() const { return text_; }
  void draw(Frame& frame) const;

 private:
  std::string label_, text_;
};

}  // namespace tacho::report
