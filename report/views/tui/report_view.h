// ReportView: the interactive view of a report, from keys (on_key()) to frames (draw()). It runs in the
// reading process, and tests need no terminal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/profile/annotated_code.h"
#include "report/views/annotate/command_annotate.h"
#include "report/views/tui/browser.h"
#include "report/views/tui/code_view.h"
#include "report/views/tui/compared_rows.h"
#include "report/views/tui/flame_view.h"
#include "report/views/tui/frame.h"
#include "report/views/tui/heat_view.h"
#include "report/views/tui/hist_view.h"
#include "report/views/tui/pages.h"
#include "report/views/tui/report_rows.h"
#include "report/views/tui/sample_choice.h"
#include "report/views/tui/sample_list.h"
#include "report/views/tui/time_strip.h"

namespace tacho::report {

class Link;

class ReportView {
 public:
  // Save: write saved() to a file.
  enum class Flow : std::uint8_t { Stay, Quit, ReadAgain, Save };
  // Live: a running recording (tacho top). The caller handles its additional keys.
  enum class Source : std::uint8_t { Capture, Live };

  // Arguments must outlive it. `hits`: of the same run.
  ReportView(const ReportTable& table, const ReportOptions& options, const CodeHits& hits,
             Source source = Source::Capture);

  Flow on_key(const KeyPress& press);
  Frame draw(ScreenSize size);
  // With Flow::ReadAgain, what the next reading changes: the sort keys,
  const std::string& wanted_sort() const { return wanted_sort_; }
  // the time range, as a value of --time (empty: all; nullopt: unchanged),
  const std::optional<std::string>& wanted_times() const { return wanted_times_; }
  // or the box of a heat map (the inner nullopt: none; the outer one: unchanged).
  const std::optional<std::optional<BoxChoice>>& wanted_box() const { return wanted_box_; }
  const std::string& sort_keys() const { return rows_.sort_keys(); }
  struct SavedText {
    SavedAs as = SavedAs::Rows;
    std::string name;  // SavedAs::Code: the function
    std::string text;
  };
  const SavedText& saved() const { return saved_; }
  // Has the terminal process write it while that shows `frame`. False: that process has exited.
  bool write_saved(Link& link, Frame frame);
  // Opens the menu of events, as in perf report, if there are several.
  void begin_with_events();
  // Shows annotated code instead of the list: first the hottest function that the options choose; keys lead
  // to all others. Leaving the code ends the view. An error: there is no such function. The options must
  // outlive this.
  Result<> begin_with_code(const AnnotateOptions& options);
  // After begin_with_code(), if no function has code: the functions without. Empty: code is shown.
  const MissingCode& missing_code() const { return missing_code_; }
  void say(std::string message) { message_ = std::move(message); }
  // Shown after the list's title: "last 20 s".
  void note(std::string note) { note_ = std::move(note); }
  // Shown before the key hints in the last line: "34 of 100 MB read".
  void progress(std::string progress) { progress_ = std::move(progress); }
  // Samples over time, to select a range; must outlive this. Null: unknown.
  void times(const TimeCounts* times) { times_ = times; }
  // Further readings, for views of single samples and other captures; must outlive this. Null: not possible.
  void readings(CaptureReadings* readings) { readings_ = readings; }
  // The box of a heat map that the rows count.
  void box(const std::optional<BoxChoice>& box) { box_ = box; }
  // Compares with this capture; empty: the one compared with before.
  void compare(const std::string& path);

  // Whether Esc undoes a zoom, a time range, a box or a comparison.
  bool can_undo() const { return !before_.empty() || strip_ || box_ || compared_; }
  // Whether the list is shown, without an overlay or another view.
  bool is_at_list() const {
    return sandwiches_.empty() && !code_ && !flame_ && !page_ && !menu_ && !question_ && !samples_ &&
           !heat_ && !hist_;
  }
  // The user's choices, to restore them after another reading.
  struct Memory {
    std::string sort;
    ReportRows::NamedChoice choice;
    std::vector<ReportRows::NamedChoice> before;
    Browser::Memory browser;
    bool shows_debug = false;
    std::string message;
    TimeStrip::State times;
    bool is_compared = false, compares_callees = false;
    ComparedRows::Order compared_order = ComparedRows::Order::Delta;
  };
  Memory remember() const;
  void restore(const Memory& memory);

 private:
  Flow on_list_key(const KeyPress& press);
  bool on_zoom_key(const KeyPress& press);
  void open_times();
  std::optional<Flow> on_times_key(const KeyPress& press);
  bool on_page_key(const KeyPress& press);
  Browser& list() { return compared_ ? *compared_->browser : browser_; }
  const Browser& list() const { return compared_ ? *compared_->browser : browser_; }
  // The list, or the callers and callees over it.
  Browser& shown_list() { return sandwiches_.empty() ? list() : *sandwiches_.back()->browser; }
  const Browser& shown_list() const { return sandwiches_.empty() ? list() : *sandwiches_.back()->browser; }
  // The number of the row at the cursor; nullopt: there is none, or only the compared capture has it.
  std::optional<std::size_t> row_here() const;
  void choose(const RowChoice& choice);
  bool on_compared_key(const KeyPress& press);
  // Why single samples cannot be read; empty: they can.
  std::string why_no_samples(std::string_view key) const;
  SampleChoice samples_of_list() const;
  std::string title_of_callers(std::size_t width = 0) const;  // 0: whole
  std::string title_of_list() const;
  // `width`: columns; 0: no limit.
  std::string title_of_rows(std::size_t width = 0) const;
  void list_samples(bool of_row);
  void list_samples_of(const HitFunction& function);
  void offer_views();
  void offer_captures();
  Flow on_code_key(const KeyPress& press);
  void open_hottest();
  Flow save_rows();
  void offer_fields(bool is_map);
  // Shows a view that was read, or why it cannot be.
  template <class View>
  void open_view(std::unique_ptr<View>& view, Result<std::unique_ptr<View>> read) {
    if (read)
      view = std::move(*read);
    else
      message_ = read.error().what;
  }
  // The keys of the list of samples and of the histogram.
  template <class View>
  Flow on_key_of(std::unique_ptr<View>& view, const KeyPress& press) {
    const auto flow = view->on_key(press);
    if (flow == View::Flow::Leave) view.reset();
    if (flow == View::Flow::Unknown) show_help();
    return Flow::Stay;
  }
  Flow on_heat_key(const KeyPress& press);
  Flow undo();
  void next_event(bool is_forward);
  void ask(std::string label, std::string text, std::function<Flow(const std::string&)> done,
           std::function<void(const std::string&)> changed = {}, std::function<void()> left = {});
  struct MenuItem {
    std::string text;
    std::function<Flow()> action;
  };
  void offer(std::string title, std::vector<MenuItem> items);
  void offer_events();
  void offer_actions();
  void ask_for_filter();
  void ask_for_limit();
  void ask_for_sort();
  void on_compare();  // starts or ends the comparison
  void end_comparison();
  void next_order(bool is_forward);
  void annotate();
  void sandwich();
  void show_flame();
  Flow on_flame_key(const KeyPress& press);
  void show_help();
  void show_header();
  // The function of the row or frame at the cursor; null: there is none.
  const Function* function_here() const;
  // The thread or module of all samples of the row at the cursor; null, nullopt: they have several.
  const Thread* thread_here() const;
  std::optional<const symbolize::Module*> module_here() const;
  std::string status() const;

  const ReportTable& table_;
  const ReportOptions& options_;
  const CodeHits& hits_;
  ReportRows rows_;
  Browser browser_;
  std::vector<RowChoice> before_;  // choices before each zoom, for Esc
  std::string message_;            // shown until the next key
  std::string note_, progress_;
  const TimeCounts* times_ = nullptr;
  std::optional<TimeStrip> strip_;
  TimeStrip::State strip_state_;  // while it is closed
  std::optional<std::string> wanted_times_;
  std::optional<std::optional<BoxChoice>> wanted_box_;
  std::optional<BoxChoice> box_;
  CaptureReadings* readings_ = nullptr;
  Source source_;
  SavedText saved_;
  std::string wanted_sort_;
  bool shows_debug_ = false;

  // The list with the rows of another capture.
  struct Compared {
    std::string path;
    std::unique_ptr<ReportRows> before;
    std::unique_ptr<ComparedRows> rows;
    std::unique_ptr<Browser> browser;
  };
  std::unique_ptr<Compared> compared_;

  // The view of a function's callers and callees.
  class SandwichRows;
  struct Sandwich {
    std::unique_ptr<SandwichRows> rows;
    std::unique_ptr<Browser> browser;
  };
  std::vector<std::shared_ptr<Sandwich>> sandwiches_;  // the last one is shown
  std::unique_ptr<CodeSource> code_source_;            // made when code is first annotated
  std::unique_ptr<CodeView> code_;
  const AnnotateOptions* annotated_ = nullptr;  // of begin_with_code(); null: leaving code shows the list
  // The functions that the options of begin_with_code() choose, by their start.
  std::set<std::pair<const symbolize::Module*, std::uint64_t>> begin_with_;
  MissingCode missing_code_;
  std::optional<FlameView> flame_;
  std::unique_ptr<SampleList> samples_;
  std::unique_ptr<HeatView> heat_;
  std::unique_ptr<HistView> hist_;
  std::optional<TextPage> page_;
  std::optional<Menu> menu_;
  std::vector<MenuItem> menu_items_;
  std::optional<Question> question_;
  std::function<Flow(const std::string&)> answered_;
  std::function<void(const std::string&)> answer_changed_;
  std::function<void()> answer_left_;
  bool wants_yes_ = false;  // the question is answered by y or Enter; other keys mean no
};

}  // namespace tacho::report
