// `tacho report` and `tacho annotate` on a terminal, and `tacho tui`: the interactive view.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "report/commands.h"
#include "report/filter_options.h"
#include "report/views/annotate/command_annotate.h"
#include "report/views/report/command_report.h"
#include "report/views/report/report_mode.h"
#include "report/views/report/report_options.h"
#include "report/views/tui/compared_rows.h"
#include "report/views/tui/link.h"
#include "report/views/tui/report_view.h"
#include "report/views/tui/screen.h"

namespace tacho::report {
namespace {

std::string megabytes(const ReadProgress& read) {
  constexpr double kMegabyte = 1e6;
  return fmt::format("{:.0f} of {:.0f} MB", static_cast<double>(read.bytes_read) / kMegabyte,
                     static_cast<double>(read.bytes_total) / kMegabyte);
}

Frame progress_frame(ScreenSize size, const std::string& input, const ReadProgress& read,
                     std::string_view keys) {
  Frame frame(size);
  frame.waits = false;
  const double share = read.bytes_total == 0
                           ? 0
                           : static_cast<double>(read.bytes_read) / static_cast<double>(read.bytes_total);
  frame.bar(0, Style::Bar, "tacho: " + input);
  const std::size_t middle = size.height / 2;
  frame.put_text(middle, 2, Style::Normal, fmt::format("Reading: {}   ({})", megabytes(read), keys));
  const auto room = static_cast<double>(size.width > 4 ? size.width - 4 : 0);
  const auto filled = static_cast<std::size_t>(room * std::min(share, 1.0));
  frame.put_text(middle + 1, 2, Style::Bar, std::string(filled, ' '));
  return frame;
}

// The captures of the working directory, by their first bytes, as perf report's key s finds them.
std::vector<std::string> captures_here() {
  constexpr std::size_t kMost = 512;
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("."), ::closedir);
  if (folder == nullptr) return names;
  while (const dirent* const entry = ::readdir(folder.get())) {
    if (names.size() == kMost) break;
    if (entry->d_type != DT_REG && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) continue;
    const format::Fd file(::open(entry->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    std::array<char, 8> magic{};
    if (::read(file.get(), magic.data(), magic.size()) != static_cast<ssize_t>(magic.size())) continue;
    const std::string_view begin(magic.data(), magic.size());
    if (begin == "PERFILE2" || begin == "2ELIFREP") names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

// The rows of the capture that another one is compared with.
struct BaseRows {
  ReportOptions options;
  std::optional<Session> session;
  std::optional<ReportSink> sink;
  const ReportTable* table = nullptr;  // of the sink
};

// Reads a capture and shows its rows, already while it is read. Zooms, filters and the cursor are restored
// when the capture is read again for other sort keys, a time range or a box of a heat map.
class InteractiveReport : private CaptureReadings {
 public:
  // `base`: a capture to compare with from the beginning; empty: none. `code`: shows code in place of rows;
  // null: rows.
  InteractiveReport(const SessionOptions& wanted, Link link, ReportOptions options, std::string base,
                    const AnnotateOptions* code)
      : wanted_(wanted),
        times_before_(wanted.filter.time_text),
        lines_before_(wanted.symbols.source_lines),
        first_input_(options.reading.session.input),
        options_(std::move(options)),
        wanted_base_(std::move(base)),
        code_(code),
        link_(link) {}

  Result<Shown> run(Session& first) {
    auto current = std::make_unique<Reading>(first, options_);
    if (auto done = read(*current); !done) return std::move(done.error());
    for (;;) {
      if (flow_ == ReportView::Flow::Stay && current->rows_sink().empty()) return without_rows(*current);
      if (auto shown = show(*current); !shown) return std::move(shown.error());
      if (flow_ != ReportView::Flow::ReadAgain) return finish(*current);
      current = replace(std::move(current));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kKeyInterval{100};  // while reading, keys are handled this often

  // A session and its rows.
  struct Reading {
    Reading(Session& first, const ReportOptions& with) : session(&first), options(with) {}
    Reading(Session&& again, const ReportOptions& with)
        : own(std::move(again)), session(&*own), options(with) {}
    ReportSink& rows_sink() const { return sink->rows_sink(); }

    std::optional<Session> own;
    Session* session;
    ReportOptions options;
    std::unique_ptr<ViewSink> sink;
    const ReportTable* table = nullptr;                            // null until all was read
    std::string note;                                              // how much of it was read; empty: all
    std::optional<std::pair<std::uint64_t, std::uint64_t>> times;  // the range chosen with the key T
  };
  // What is restored if another reading fails.
  struct State {
    SessionOptions wanted;
    ReportOptions options;
    std::optional<BoxChoice> box;
    TimeCounts times;
    bool is_times_known;
    ReportView::Memory memory;
  };

  static Result<Session> open_session(const SessionOptions& options) {
    auto opened = Session::open(options);
    if (!opened) return std::move(opened.error());
    read_head(*opened);
    if (opened->has_condition())
      if (auto bound = opened->bind_condition(); !bound) return std::move(bound.error());
    return opened;
  }

  Result<Session> open_session(const std::function<void(SessionOptions&)>& change) override {
    if (!can_be_read_again(wanted_.input)) return Error{"a pipe is read once; record into a file"};
    SessionOptions options = wanted_;
    options.filter.comms = options_.filter.comms;
    options.filter.pids = options_.filter.pids;
    options.filter.tids = options_.filter.tids;
    change(options);
    return open_session(options);
  }
  bool run_session(Session& session, Sink& sink) override {
    return run_session(session, sink, options_.reading.session.input);
  }
  const std::string& input() const override { return options_.reading.session.input; }
  const std::string& base_name() const override { return base_name_; }
  std::vector<std::string> captures() const override {
    auto names = captures_here();
    std::erase(names, input());
    return names;
  }
  Result<> change_to(const std::string& path) override {
    SessionOptions options = wanted_;
    options.input = path;
    if (auto opened = open_session(options); !opened) return std::move(opened.error());
    changed_to_ = path;
    return Done{};
  }

  // Esc and q end it early.
  bool run_session(Session& session, Sink& sink, const std::string& name) {
    std::stop_source stop;
    RunControl control;
    control.cancel = stop.get_token();
    Clock::time_point last = Clock::now();
    control.progress = [&](const ReadProgress& read) {
      if (Clock::now() - last < kKeyInterval) return;
      last = Clock::now();
      const auto press = link_.show(progress_frame(link_.size(), name, read, "Esc: stop"));
      if (!press || press->key == Key::Escape || press->is('q')) stop.request_stop();
    };
    session.run(sink, control);
    return !stop.stop_requested();
  }

  Result<const ReportTable*> base(const std::string& path, const std::string& sort) override {
    const bool is_known = base_ && (path.empty() || path == base_name_);
    if (is_known) {
      const auto columns = base_->table->columns_of(sort);
      if (!columns) return columns.error();
      if (*columns) return base_->table;
    }
    if (wanted_.filter.condition != nullptr)
      return Error{"--where is for one capture; --comm, --pid and others are for both"};
    const std::string name = path.empty() ? base_name_ : path;
    auto rows = std::make_unique<BaseRows>();
    rows->options = options_;
    if (is_known) {  // the keys are others than those of the command line
      rows->options.columns.sort = sort;
      rows->options.columns.fields.clear();
    }
    SessionOptions options = wanted_;
    options.input = name;
    if (needs_source_lines(rows->options)) options.symbols.source_lines = symbolize::SourceLines::Yes;
    // --time and --where are for the first capture only.
    options.filter.time_text.clear();
    options.filter.condition = nullptr;
    auto session = open_session(options);
    if (!session) return std::move(session.error());
    rows->session.emplace(std::move(*session));
    rows->sink.emplace(*rows->session, rows->options, false);
    if (auto arranged = rows->sink->arrange(); !arranged) return std::move(arranged.error());
    const bool is_whole = run_session(*rows->session, *rows->sink, name);
    if (const auto failure = rows->sink->failure()) return *failure;
    if (!is_whole) return Error{name + ": reading was stopped"};
    if (rows->sink->empty()) return Error{name + ": it has no samples to compare with"};
    rows->table = &rows->sink->finish();
    base_ = std::move(rows);
    base_name_ = name;
    return base_->table;
  }
  Result<const RenamedFunctions*> renames() override {
    const std::pair captures(base_name_, input());
    if (!renamed_ || renamed_->first != captures)
      renamed_.emplace(captures, renamed_between(base_name_, input(), wanted_,
                                                 [this](Session& session, Sink& sink) -> Result<> {
                                                   if (run_session(session, sink, "renamed functions"))
                                                     return Done{};
                                                   return Error{"reading was stopped"};
                                                 }));
    const Result<RenamedFunctions>& found = renamed_->second;
    if (!found) return Error(found.error());
    return &*found;
  }

  Result<> read(Reading& reading) {
    Session& session = *reading.session;
    flow_ = ReportView::Flow::Stay;
    is_stopped_ = false;
    if (auto checked = check_events(session, options_.reading); !checked) return std::move(checked.error());
    // Only the first reading counts samples over time: the key T chooses from the whole capture.
    reading.sink = std::make_unique<ViewSink>(session, reading.options, is_times_known_ ? nullptr : &times_);
    if (memory_) reading.times = memory_->times.chosen;
    ReportSink& rows = reading.rows_sink();
    if (!session.layout().is_pipe)
      if (auto arranged = rows.arrange(); !arranged) return std::move(arranged.error());
    SampleChoice of_box;
    of_box.box = box_;
    ChosenSamples boxed(session, of_box, *reading.sink);
    if (auto found = boxed.find_box(); !found) return std::move(found.error());
    read_all(reading, box_ ? static_cast<Sink&>(boxed) : *reading.sink);
    if (!rows.is_arranged())
      if (auto arranged = rows.arrange(); !arranged) return std::move(arranged.error());
    if (const auto failure = rows.failure()) return *failure;
    rows.report(session.diagnostics());
    return Done{};
  }

  Shown without_rows(const Reading& reading) const {
    Shown shown(Symbols::Used);
    shown.notes = reading.rows_sink().notes();
    if (const std::string note = no_rows_note(*reading.session, reading.options); !note.empty())
      shown.notes.push_back(note);
    return shown;
  }

  Shown finish(const Reading& reading) {
    Shown shown(Symbols::Used);
    shown.notes = reading.rows_sink().notes();
    if (code_ != nullptr && view_ && !view_->missing_code().empty()) {
      std::ranges::move(view_->missing_code().lines(printable(input())), std::back_inserter(shown.notes));
      shown.status = cli::kIncomplete;
    }
    // The command reports the findings of the first session.
    if (input() != first_input_)
      std::ranges::move(findings_text(reading.session->diagnostics(), input()),
                        std::back_inserter(shown.notes));
    view_.reset();
    return shown;
  }

  // Reads the capture again for what a key chose. If that fails, is stopped or finds no samples, the current
  // rows stay.
  std::unique_ptr<Reading> replace(std::unique_ptr<Reading> current) {
    State before{wanted_, options_, box_, times_, is_times_known_, view_->remember()};
    before.memory.times.chosen = current->times;
    has_before_ = true;
    std::unique_ptr<Reading> next;
    std::string failure;
    do {
      apply_choice();
      next.reset();
      auto session = open_session(wanted_);
      if (!session) {
        failure = session.error().what;
        break;
      }
      next = std::make_unique<Reading>(std::move(*session), options_);
      const auto done = read(*next);
      if (!done) failure = done.error().what;
    } while (failure.empty() && flow_ == ReportView::Flow::ReadAgain);
    has_before_ = false;
    if (failure.empty() && flow_ == ReportView::Flow::Stay) {
      if (is_stopped_)
        failure = "reading was stopped: rows are as before";
      else if (next->rows_sink().empty())
        failure =
            box_ ? "no sample is in that box: rows are as before" : "no sample is there: rows are as before";
    }
    if (failure.empty()) return next;
    view_.reset();
    wanted_ = std::move(before.wanted);
    options_ = std::move(before.options);
    box_ = std::move(before.box);
    times_ = std::move(before.times);
    is_times_known_ = before.is_times_known;
    memory_ = std::move(before.memory);
    message_ = std::move(failure);
    flow_ = ReportView::Flow::Stay;
    return current;
  }

  // Reads all samples into `to`, which gives them to the reading's sink. Rows are shown as soon as there are
  // some, and refreshed at first twice a second, later less often, so that refreshing takes at most a fifth
  // of the time.
  void read_all(Reading& reading, Sink& to) {
    constexpr std::chrono::milliseconds kNext{500};
    constexpr int kTimes = 5;
    std::stop_source stop;
    RunControl control;
    control.cancel = stop.get_token();
    Clock::time_point last = Clock::now(), due = last;
    control.progress = [&](const ReadProgress& read) {
      const auto now = Clock::now();
      if (now - last < kKeyInterval) return;
      last = now;
      const bool is_due = now >= due && code_ == nullptr && (!view_ || view_->is_at_list());
      const ReportTable* const rows = is_due ? reading.rows_sink().rows_so_far() : nullptr;
      if (rows != nullptr) {
        make_rows(reading, *rows);
        due = Clock::now() + std::max<Clock::duration>(kNext, kTimes * (Clock::now() - now));
      }
      if (view_) view_->progress(megabytes(read) + " read");
      if (!handle_keys(read)) return;
      is_stopped_ = true;
      reading.note = "stopped after " + megabytes(read);
      stop.request_stop();
    };
    reading.session->run(to, control);
    if (view_) view_->progress({});
    // A key ended the reading early: the times of the unread rest are unknown.
    if (flow_ == ReportView::Flow::ReadAgain && !is_times_known_)
      times_ = {};
    else
      is_times_known_ = true;
  }

  // Draws and handles keys while the capture is read. True: reading stops.
  bool handle_keys(const ReadProgress& read) {
    if (!view_) {
      const auto press = link_.show(
          progress_frame(link_.size(), input(), read, has_before_ ? "Esc: stop  q: quit" : "q: quit"));
      if (press && press->key == Key::Escape && has_before_) return true;
      if (press && !press->is('q')) return false;
      flow_ = ReportView::Flow::Quit;
      return true;
    }
    for (bool is_drawn = false;;) {
      std::optional<KeyPress> press;
      if (is_drawn) {
        press = link_.ask();
      } else {
        Frame frame = view_->draw(link_.size());
        frame.waits = false;
        press = link_.show(std::move(frame));
        is_drawn = true;
      }
      if (press && press->key == Key::None) return false;
      if (press && press->key == Key::Escape && view_->is_at_list() && (has_before_ || !view_->can_undo()))
        return true;
      take(press);
      if (flow_ != ReportView::Flow::Stay) return true;
      is_drawn = false;
    }
  }

  void leave_rows() {
    if (!view_) return;
    memory_ = view_->remember();
    view_.reset();
  }

  void make_rows(const Reading& reading, const ReportTable& rows) {
    leave_rows();
    view_.emplace(rows, reading.options, reading.sink->hits());
    view_->times(is_times_known_ ? &times_ : nullptr);
    view_->readings(this);
    view_->box(box_);
    if (memory_) view_->restore(*memory_);
    if (!message_.empty()) view_->say(std::exchange(message_, {}));
    view_->note(reading.note);
  }

  // After reading: shows the rows and handles keys, until a key quits or needs another reading.
  Result<> show(Reading& reading) {
    if (flow_ != ReportView::Flow::Stay) return Done{};
    if (reading.table == nullptr) reading.table = &reading.rows_sink().finish();
    bool is_whole = false;  // the shown rows count everything that was read
    while (flow_ == ReportView::Flow::Stay) {
      // Not while an overlay or another view is open, which refers to the rows.
      if (!is_whole && (!view_ || view_->is_at_list())) {
        make_rows(reading, *reading.table);
        is_whole = true;
        if (code_ != nullptr) {
          if (auto begun = view_->begin_with_code(*code_); !begun) return begun;
          if (!view_->missing_code().empty() && view_->is_at_list()) return Done{};
        } else if (!has_taken_keys_) {
          view_->begin_with_events();
        }
        if (const std::string base = std::exchange(wanted_base_, {}); !base.empty()) view_->compare(base);
      }
      take(link_.show(view_->draw(link_.size())));
    }
    return Done{};
  }

  void take(const std::optional<KeyPress>& press) {
    has_taken_keys_ = has_taken_keys_ || (press && press->key != Key::Resize);
    flow_ = press ? view_->on_key(*press) : ReportView::Flow::Quit;
    if (flow_ == ReportView::Flow::Save)
      flow_ = view_->write_saved(link_, view_->draw(link_.size())) ? ReportView::Flow::Stay
                                                                   : ReportView::Flow::Quit;
  }

  // Sets the options of the next reading to what a key chose: another capture, a time range, a box of a heat
  // map, or sort keys.
  void apply_choice() {
    std::string sort = view_->sort_keys();
    if (const std::string path = std::exchange(changed_to_, {}); !path.empty()) {
      wanted_.input = options_.reading.session.input = path;
      wanted_.filter.time_text = options_.filter.time_text = times_before_;
      options_.view.shown_times.clear();
      // Times, zooms and open rows are not restored, as they are of the other capture.
      leave_rows();
      ReportView::Memory fresh;
      fresh.sort = sort;
      fresh.choice.leader = memory_->choice.leader;
      fresh.choice.choice.percent_limit = options_.look.percent_limit;
      fresh.choice.choice.symbol = options_.filter.symbol_part;
      memory_ = std::move(fresh);
      box_.reset();
      times_ = {};
      is_times_known_ = false;
      message_ = "rows are of " + input();
      return;
    }
    if (const auto& times = view_->wanted_times()) {
      options_.filter.time_text = wanted_.filter.time_text = times->empty() ? times_before_ : *times;
      leave_rows();
      const auto& chosen = memory_->times.chosen;
      options_.view.shown_times =
          chosen ? short_seconds(chosen->first) + " to " + short_seconds(chosen->second) + " s" : "";
      if (!chosen)
        message_ = "rows count the whole time";
      else if (memory_->is_compared)
        message_ = fmt::format("After: {}; Before: all of {}; Backspace: all", options_.view.shown_times,
                               base_name_);
      else
        message_ = fmt::format("rows count {}; Backspace: the whole time", options_.view.shown_times);
    } else if (const auto& box = view_->wanted_box()) {
      box_ = *box;
      message_ = box_ ? "rows count the box; Esc: all again" : "rows count all samples";
    } else {
      sort = view_->wanted_sort();
      message_ = "read again for the sort keys " + sort;
      options_.columns.sort = sort;
      options_.columns.fields.clear();
      wanted_.symbols.source_lines =
          needs_source_lines(options_) ? symbolize::SourceLines::Yes : lines_before_;
    }
    leave_rows();
    memory_->sort = sort;
    memory_->message.clear();
  }

  SessionOptions wanted_;
  std::string times_before_;             // --time of the command line
  symbolize::SourceLines lines_before_;  // of the command line
  std::string first_input_;
  ReportOptions options_;
  std::string wanted_base_;
  const AnnotateOptions* code_;
  Link link_;
  TimeCounts times_;
  bool is_times_known_ = false;
  std::optional<ReportView> view_;
  bool has_taken_keys_ = false;  // after the first key, no menu opens by itself
  std::optional<ReportView::Memory> memory_;
  ReportView::Flow flow_ = ReportView::Flow::Stay;
  std::string message_;
  bool is_stopped_ = false;  // the last reading, by a key
  bool has_before_ = false;  // there are rows to go back to
  std::string changed_to_;   // the capture that the last key chose; empty: the same
  std::optional<BoxChoice> box_;
  std::unique_ptr<BaseRows> base_;
  std::string base_name_;
  std::optional<std::pair<std::pair<std::string, std::string>, Result<RenamedFunctions>>>
      renamed_;  // of base, input
};

Result<cli::ExitStatus> show_interactive(ReportOptions& options, const std::string& base,
                                         const AnnotateOptions* code = nullptr) {
  options.view.is_interactive = true;
  if (auto prepared = prepare_report(options); !prepared) return std::move(prepared.error());
  auto screen = Screen::make();
  if (!screen) return std::move(screen.error());
  const ScreenPlan plan = screen->plan();
  return show_on_screen(options.reading, plan,
                        [&](Session& session, const SessionOptions& wanted, TextOutput& out) {
                          const Link link(out, *screen);
                          return InteractiveReport(wanted, link, options, base, code).run(session);
                        });
}

// Whether rows or code are shown on the screen; otherwise as text. An error: --tui was given, and the screen
// cannot be used. `command`: in messages.
template <class Options>
Result<bool> is_for_screen(const Options& options, std::string_view command) {
  using Face = decltype(options.face);
  const std::string_view text_option = options.text_option();
  const bool is_on_terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  const bool is_pipe = options.reading.session.input == "-";
  const bool is_possible = options.face != Face::Text && text_option.empty() && is_on_terminal && !is_pipe;
  const std::string no_screen = is_possible ? why_no_screen() : std::string();
  if (is_possible && no_screen.empty()) return true;
  if (options.face == Face::Screen && !text_option.empty())
    return use_error(
        fmt::format("{} is for the text of --stdio and has no effect on the screen", text_option));
  if (options.face == Face::Screen)
    return use_error(fmt::format("{}; tacho {} --stdio prints text",
                                 is_pipe ? "the screen shows a file, not a pipe: record into a file"
                                 : no_screen.empty() ? "the screen needs a terminal for input and output"
                                                     : no_screen,
                                 command));
  if (!no_screen.empty()) std::fprintf(stderr, "tacho: %s: text is printed\n", no_screen.c_str());
  return false;
}

Result<cli::ExitStatus> show_report(ReportOptions& options, const std::string& base) {
  const auto on_screen = is_for_screen(options, "report");
  if (!on_screen) return Error(on_screen.error());
  if (*on_screen) return show_interactive(options, base);
  return base.empty() ? print_report(options) : print_comparison(options, base);
}

// Adds --base and what belongs to it as the first options: it changes what the command shows.
void add_base_options(cli::CommandLine& line, ReportOptions& options, std::string& base) {
  line.options.insert(line.options.begin(),
                      cli::text("--base", "FILE",
                                "compare with this capture, which was before: percent before and after, "
                                "and the difference; as text, --json and --csv by --sort dso,symbol, as "
                                "perf diff (in the view: B)",
                                base));
  line.options.insert(line.options.begin() + 1, no_renames_option(options.matches_calls));
}

}  // namespace

Result<cli::ExitStatus> run_report(const std::vector<std::string>& arguments) {
  ReportOptions options;
  std::string base;
  auto line = describe_report(options);
  add_base_options(line, options, base);
  return run_command(line, arguments, [&options, &base] { return show_report(options, base); });
}

// perf annotate opens a view too, of the hottest function.
Result<cli::ExitStatus> run_annotate(const std::vector<std::string>& arguments) {
  AnnotateOptions options;
  options.reading.session.wants_stacks = false;
  return run_command(describe_annotate(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    prepare_annotate(options);
    const auto on_screen = is_for_screen(options, "annotate");
    if (!on_screen) return Error(on_screen.error());
    if (!*on_screen) return print_annotate(options);
    ReportOptions report;
    report.reading = options.reading;
    report.columns.sort = "comm,dso,symbol";
    report.wants_children = false;
    report.grouping = options.grouping;
    return show_interactive(report, {}, &options);
  });
}

Result<cli::ExitStatus> run_tui(const std::vector<std::string>& arguments) {
  ReportOptions options;
  std::string base;
  auto line = describe_report(options);
  add_base_options(line, options, base);
  line.program = "tacho tui";
  line.description =
      "Shows an interactive report on the terminal: rows with their call graphs, filters, zooms, annotated "
      "code. tacho report opens the same view on a terminal. It takes the options of tacho report; h lists "
      "the keys, and docs/terminal.md explains them.";
  return run_command(line, arguments, [&options, &base] {
    options.face = ReportFace::Screen;
    return show_report(options, base);
  });
}

}  // namespace tacho::report
