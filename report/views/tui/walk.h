// The interactive view of a report: what keys do, and what the screen shows. It runs where the capture is
// read; on_key() and draw() are all of it, so that tests need no terminal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/profile/code_hits.h"
#include "report/views/tui/browser.h"
#include "report/views/tui/code_view.h"
#include "report/views/tui/flame_view.h"
#include "report/views/tui/frame.h"
#include "report/views/tui/pages.h"
#include "report/views/tui/time_strip.h"
#include "report/views/tui/walked_rows.h"

namespace tacho::report {

class Walk {
 public:
  enum class Flow : std::uint8_t { Stay, Quit, ReadAgain };
  // Live: of a recording that goes on. It has keys more, which its caller takes (live_keys()).
  enum class Of : std::uint8_t { Capture, Live };

  // What is passed must outlive it. `hits`: of the same run.
  Walk(ReportSink& sink, const ReportOptions& options, const CodeHits& hits, Of of = Of::Capture);

  Flow on_key(const KeyPress& press);
  Frame draw(ScreenSize size);
  // With Flow::ReadAgain: the sort keys that the profile had no facts for; and the time that rows shall count
  // (as --time takes it; empty: all), or nothing where that stays.
  const std::string& wanted_sort() const { return wanted_sort_; }
  const std::optional<std::string>& wanted_times() const { return wanted_times_; }
  void say(std::string message) { message_ = std::move(message); }
  // Stands behind the list's title: "last 20 s".
  void note(std::string note) { note_ = std::move(note); }
  // Stands before the hints in the last line: "34 of 100 MB read".
  void progress(std::string progress) { progress_ = std::move(progress); }
  // When samples were taken, to choose a range from; must outlive this. Null: unknown.
  void times(const TimeCounts* times) { times_ = times; }

  // Nothing stands over the list or in its place, which would be gone with these rows.
  bool can_undo() const { return !before_.empty() || strip_; }
  bool is_at_list() const {
    return sandwiches_.empty() && !code_ && !flame_ && !page_ && !menu_ && !question_;
  }
  // What a person chose, for the rows of another reading.
  struct Memory {
    std::string sort;
    WalkedRows::NamedChoice choice;
    std::vector<WalkedRows::NamedChoice> before;
    Browser::Memory browser;
    bool shows_debug = false;
    std::string message;
    TimeStrip::Place times;
  };
  Memory remember() const;
  void restore(const Memory& memory);

 private:
  Flow on_list_key(const KeyPress& press);
  Flow on_menu(std::size_t item);
  Flow on_answer(const std::string& text);
  bool on_zoom_key(const KeyPress& press);
  void open_times();
  std::optional<Flow> on_times_key(const KeyPress& press);
  bool on_page_key(const KeyPress& press);
  void choose(const RowChoice& choice);
  void zoom(const RowChoice& choice);
  void zoom_out();
  Flow undo();
  void next_event(bool is_forward);
  void ask(std::string label, std::string text, std::function<Flow(const std::string&)> done,
           std::function<void(const std::string&)> changed = {}, std::function<void()> left = {});
  void offer(std::string title, std::vector<std::pair<std::string, std::function<Flow()>>> items);
  void offer_events();
  void offer_actions();
  void ask_for_filter();
  void ask_for_limit();
  void ask_for_sort();
  void next_order(bool is_forward);
  void annotate();
  void sandwich();
  void show_flame();
  Flow on_flame_key(const KeyPress& press);
  void show_help();
  void show_header();
  // Of the row or frame at the cursor; null: there is none.
  const Function* function_here() const;
  const Thread* thread_here() const;
  std::string function_name(const Function& function) const;
  std::string status() const;

  ReportSink& sink_;
  const ReportOptions& options_;
  const CodeHits& hits_;
  WalkedRows rows_;
  Browser browser_;
  std::vector<RowChoice> before_;  // zooms, to be undone
  std::string message_;            // for one key
  std::string note_, progress_;
  const TimeCounts* times_ = nullptr;
  std::optional<TimeStrip> strip_;
  TimeStrip::Place times_place_;  // while it is closed
  std::optional<std::string> wanted_times_;
  Of of_;
  std::string wanted_sort_;
  bool shows_debug_ = false;

  // The callers and callees of a function, in place of the list.
  class Sides;
  struct Sandwich {
    std::unique_ptr<Sides> rows;
    std::unique_ptr<Browser> browser;
    std::string title;
  };
  std::vector<std::shared_ptr<Sandwich>> sandwiches_;  // the last one is shown
  std::unique_ptr<CodeSource> code_source_;            // once something is annotated
  std::unique_ptr<CodeView> code_;
  std::optional<FlameView> flame_;
  std::optional<TextPage> page_;
  std::optional<Menu> menu_;
  std::vector<std::function<Flow()>> menu_actions_;
  std::optional<Question> question_;
  std::function<Flow(const std::string&)> answered_;
  std::function<void(const std::string&)> answer_changed_;
  std::function<void()> answer_left_;
  bool wants_yes_ = false;  // any key but Enter and y is a no
};

}  // namespace tacho::report
