#include "report/views/tui/command_tui.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <utility>

#include "report/views/report/command_report.h"
#include "report/views/report/report_options.h"
#include "report/views/tui/link.h"
#include "report/views/tui/screen.h"
#include "report/views/tui/walk.h"

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
  frame.put(middle, 2, Style::Normal, fmt::format("Reading: {}   ({})", megabytes(read), keys));
  const auto room = static_cast<double>(size.width > 4 ? size.width - 4 : 0);
  const auto filled = static_cast<std::size_t>(room * std::min(share, 1.0));
  frame.put(middle + 1, 2, Style::Bar, std::string(filled, ' '));
  return frame;
}

// The rows of the capture that another one is compared with.
struct BaseRows {
  ReportOptions options;
  std::optional<Session> session;
  std::optional<ReportSink> sink;
};

// Reads a capture, and shows its rows meanwhile and afterwards. What a person chose stays when it is read
// again for other sort keys, or for a part of its time.
class Walker : private CaptureReadings {
 public:
  // `base`: a capture to compare with from the beginning; empty: none.
  Walker(const SessionOptions& wanted, TextOutput& out, ReportOptions options, std::string base, int keys)
      : wanted_(wanted),
        times_before_(wanted.filter.time_text),
        options_(std::move(options)),
        wanted_base_(std::move(base)),
        link_(out, keys) {}

  Result<Shown> run(Session& first) {
    std::optional<Session> again;
    for (;;) {
      Session& session = again ? *again : first;
      auto shown = read_and_walk(session);
      if (!shown || flow_ != Walk::Flow::ReadAgain) return shown;
      auto opened = open(wanted_);
      if (!opened) return std::move(opened.error());
      again.emplace(std::move(*opened));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBetween{100};  // looks at the keys while something is read

  static Result<Session> open(const SessionOptions& options) {
    auto opened = Session::open(options);
    if (!opened) return std::move(opened.error());
    read_head(*opened);
    if (opened->has_condition())
      if (auto bound = opened->bind_condition(); !bound) return std::move(bound.error());
    return opened;
  }

  Result<Session> open(const std::function<void(SessionOptions&)>& change) override {
    if (!can_be_read_again(wanted_.input)) return Error{"a pipe is read once; record into a file"};
    SessionOptions options = wanted_;
    options.filter.comms = options_.filter.comms;
    options.filter.pids = options_.filter.pids;
    options.filter.tids = options_.filter.tids;
    change(options);
    return open(options);
  }
  bool run(Session& session, Sink& sink) override {
    return run(session, sink, options_.reading.session.input);
  }
  const std::string& input() const override { return options_.reading.session.input; }
  const std::string& base_name() const override { return base_name_; }

  // Esc and q end it early.
  bool run(Session& session, Sink& sink, const std::string& name) {
    std::stop_source stop;
    RunControl control;
    control.cancel = stop.get_token();
    Clock::time_point last = Clock::now();
    control.progress = [&](const ReadProgress& read) {
      if (Clock::now() - last < kBetween) return;
      last = Clock::now();
      const auto press = link_.show(progress_frame(link_.size(), name, read, "Esc: stop"));
      if (!press || press->key == Key::Escape || press->is('q')) stop.request_stop();
    };
    session.run(sink, control);
    return !stop.stop_requested();
  }

  Result<const ReportSink*> base(const std::string& path, const std::string& sort) override {
    const bool is_known = base_ && (path.empty() || path == base_name_);
    if (is_known) {
      const auto columns = base_->sink->columns_of(sort);
      if (!columns) return columns.error();
      if (*columns) return &*base_->sink;
    }
    if (wanted_.filter.condition != nullptr)
      return Error{"--where holds for one capture; --comm, --pid and others do for both"};
    const std::string name = path.empty() ? base_name_ : path;
    auto rows = std::make_unique<BaseRows>();
    rows->options = options_;
    if (is_known) {  // the keys are others than those of the command line
      rows->options.sort = sort;
      rows->options.fields.clear();
    }
    SessionOptions options = wanted_;
    options.input = name;
    // Those of the other capture.
    options.filter.time_text.clear();
    options.filter.condition = nullptr;
    auto session = open(options);
    if (!session) return std::move(session.error());
    rows->session.emplace(std::move(*session));
    rows->sink.emplace(*rows->session, rows->options, false);
    if (auto arranged = rows->sink->arrange(); !arranged) return std::move(arranged.error());
    const bool is_whole = run(*rows->session, *rows->sink, name);
    if (const auto failure = rows->sink->failure()) return *failure;
    if (!is_whole) return Error{name + ": reading was stopped"};
    if (rows->sink->empty()) return Error{name + ": it has no samples to compare with"};
    rows->sink->settle();
    base_ = std::move(rows);
    base_name_ = name;
    return &*base_->sink;
  }

  Result<Shown> read_and_walk(Session& session) {
    flow_ = Walk::Flow::Stay;
    if (auto checked = check_events(session, options_.reading); !checked) return checked.error();
    // The times of the first reading are those to choose from.
    WalkSink sink(session, options_, is_times_known_ ? nullptr : &times_);
    ReportSink& rows = sink.rows();
    if (!session.layout().is_pipe)
      if (auto arranged = rows.arrange(); !arranged) return std::move(arranged.error());
    SampleChoice of_box;
    of_box.box = box_;
    ChosenSamples boxed(session, of_box, sink);
    if (auto found = boxed.find(); !found) return std::move(found.error());
    read_all(session, sink, box_ ? static_cast<Sink&>(boxed) : sink);
    if (!rows.is_arranged())
      if (auto arranged = rows.arrange(); !arranged) return std::move(arranged.error());
    if (const auto failure = rows.failure()) return *failure;
    rows.report(session.diagnostics());
    Shown shown(Symbols::Used);
    shown.notes = rows.notes();
    if (flow_ == Walk::Flow::Stay && rows.empty() && (box_ || wanted_.filter.time_text != times_before_)) {
      leave_rows();
      message_ = box_ ? "no sample is in that box: rows count all of them"
                      : "no sample is in that time: rows count all of it";
      if (!std::exchange(box_, std::nullopt)) {
        options_.filter.time_text = wanted_.filter.time_text = times_before_;
        if (memory_) memory_->times.chosen.reset();
      }
      flow_ = Walk::Flow::ReadAgain;
      return shown;
    }
    if (rows.empty()) {
      if (const std::string note = no_rows_note(session, options_); !note.empty())
        shown.notes.push_back(note);
      return shown;
    }
    walk(sink);
    if (flow_ == Walk::Flow::ReadAgain) read_otherwise();
    walk_.reset();
    return shown;
  }

  // Rows are shown as soon as there are some, and made anew while more come: at first twice a second, later
  // so seldom that a fifth of the time goes into them.
  // `to`: takes the samples for `sink`.
  void read_all(Session& session, WalkSink& sink, Sink& to) {
    constexpr std::chrono::milliseconds kNext{500};
    constexpr int kTimes = 5;
    std::stop_source stop;
    RunControl control;
    control.cancel = stop.get_token();
    Clock::time_point last = Clock::now(), due = last;
    control.progress = [&](const ReadProgress& read) {
      const auto now = Clock::now();
      if (now - last < kBetween) return;
      last = now;
      if (now >= due && (!walk_ || walk_->is_at_list()) && sink.rows().can_settle_early() &&
          !sink.rows().empty()) {
        sink.rows().settle_early();
        make_rows(sink);
        due = Clock::now() + std::max<Clock::duration>(kNext, kTimes * (Clock::now() - now));
      }
      if (walk_) walk_->progress(megabytes(read) + " read");
      if (!look(read)) return;
      is_cut_ = true;
      note_ = "stopped after " + megabytes(read);
      stop.request_stop();
    };
    is_cut_ = false;
    session.run(to, control);
    if (walk_) walk_->progress({});
    // A key ended the reading early: the times of the unread rest are unknown.
    if (flow_ == Walk::Flow::ReadAgain && !is_times_known_)
      times_ = {};
    else
      is_times_known_ = true;
  }

  // Draws, and does what keys say. True: reading stops.
  bool look(const ReadProgress& read) {
    if (!walk_) {
      const auto press = link_.show(progress_frame(link_.size(), input(), read, "q: leave"));
      if (press && !press->is('q')) return false;
      flow_ = Walk::Flow::Quit;
      return true;
    }
    for (bool is_drawn = false;;) {
      std::optional<KeyPress> press;
      if (is_drawn) {
        press = link_.ask();
      } else {
        Frame frame = walk_->draw(link_.size());
        frame.waits = false;
        press = link_.show(std::move(frame));
        is_drawn = true;
      }
      if (press && press->key == Key::None) return false;
      if (press && press->key == Key::Escape && walk_->is_at_list() && !walk_->can_undo()) return true;
      flow_ = press ? walk_->on_key(*press) : Walk::Flow::Quit;
      if (flow_ != Walk::Flow::Stay) return true;
      is_drawn = false;
    }
  }

  void leave_rows() {
    if (!walk_) return;
    memory_ = walk_->remember();
    walk_.reset();
  }

  void make_rows(WalkSink& sink) {
    leave_rows();
    walk_.emplace(sink.rows(), options_, sink.hits());
    walk_->times(is_times_known_ ? &times_ : nullptr);
    walk_->readings(this);
    walk_->box(box_);
    if (memory_) walk_->restore(*memory_);
    if (!message_.empty()) walk_->say(std::exchange(message_, {}));
    walk_->note(is_cut_ ? note_ : std::string());
  }

  // All is read.
  void walk(WalkSink& sink) {
    if (flow_ != Walk::Flow::Stay) return;
    sink.rows().settle();
    bool is_whole = false;  // what is shown is of all that was read
    while (flow_ == Walk::Flow::Stay) {
      // What stands over the list would be gone with its rows.
      if (!is_whole && (!walk_ || walk_->is_at_list())) {
        make_rows(sink);
        is_whole = true;
        if (const std::string base = std::exchange(wanted_base_, {}); !base.empty()) walk_->compare(base);
      }
      const auto press = link_.show(walk_->draw(link_.size()));
      flow_ = press ? walk_->on_key(*press) : Walk::Flow::Quit;
    }
  }

  // Sets what a key chose for the next reading: a time range, a box of a heat map, or sort keys.
  void read_otherwise() {
    std::string sort = walk_->sort_keys();
    if (const auto& times = walk_->wanted_times()) {
      options_.filter.time_text = wanted_.filter.time_text = times->empty() ? times_before_ : *times;
      message_ = times->empty() ? "rows count the whole time" : "rows count " + *times + " s";
    } else if (const auto& box = walk_->wanted_box()) {
      box_ = *box;
      message_ = box_ ? "rows count the box; Esc: all again" : "rows count all samples";
    } else {
      sort = walk_->wanted_sort();
      message_ = "read again for the sort keys " + sort;
      options_.sort = sort;
      options_.fields.clear();
    }
    leave_rows();
    memory_->sort = sort;
    memory_->message.clear();
  }

  SessionOptions wanted_;
  std::string times_before_;  // --time of the command line
  ReportOptions options_;
  std::string wanted_base_;
  Link link_;
  TimeCounts times_;
  bool is_times_known_ = false;
  std::optional<Walk> walk_;
  std::optional<Walk::Memory> memory_;
  Walk::Flow flow_ = Walk::Flow::Stay;
  std::string message_, note_;
  bool is_cut_ = false;  // reading was stopped
  std::optional<BoxChoice> box_;
  std::unique_ptr<BaseRows> base_;
  std::string base_name_;
};

Result<cli::ExitStatus> walk_report(ReportOptions& options, const std::string& base) {
  options.is_walked = true;
  if (auto prepared = prepare_report(options); !prepared) return std::move(prepared.error());
  auto screen = Screen::make();
  if (!screen) return std::move(screen.error());
  const ScreenPlan plan{.open_output = [&screen]() -> Result<OutputFile> { return screen->output(); },
                        .kept = {screen->keys()}};
  return show_on_screen(options.reading, plan,
                        [&](Session& session, const SessionOptions& wanted, TextOutput& out) {
                          return Walker(wanted, out, options, base, screen->keys()).run(session);
                        });
}

bool is_on_terminal() { return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0; }

Result<cli::ExitStatus> show_report(ReportOptions& options, const std::string& base = {}) {
  const std::string_view text_option = options.text_option();
  const bool is_asked_for = options.face == ReportFace::Screen;
  const bool is_possible = options.face != ReportFace::Text && text_option.empty() && is_on_terminal() &&
                           options.reading.session.input != "-";
  const std::string lack = is_possible ? why_no_screen() : std::string();
  if (is_possible && lack.empty()) return walk_report(options, base);
  if (is_asked_for && !text_option.empty())
    return use_error(
        fmt::format("{} is of text, which --stdio prints; the screen has no such thing", text_option));
  if (is_asked_for) {
    return use_error((lack.empty() ? "the screen needs a terminal for input and output" : lack) +
                     "; tacho report --stdio prints text");
  }
  if (!lack.empty()) std::fprintf(stderr, "tacho: %s: text is printed\n", lack.c_str());
  return print_report(options);
}

}  // namespace

Result<cli::ExitStatus> run_report(const std::vector<std::string>& arguments) {
  ReportOptions options;
  return run_command(describe_report(options), arguments, [&options] { return show_report(options); });
}

Result<cli::ExitStatus> run_tui(const std::vector<std::string>& arguments) {
  ReportOptions options;
  std::string base;
  auto line = describe_report(options);
  line.options.insert(line.options.begin(),
                      cli::text("--base", "FILE",
                                "compare with this capture, which was before: columns before, after and "
                                "difference (in the view: B)",
                                base));
  line.program = "tacho tui";
  line.synopsis = "[FILE] [options]";
  line.description =
      "Shows a report on the terminal, to be walked through: rows with their call graphs, filters, zooms, "
      "annotated code. It is what tacho report opens on a terminal, and takes its options; h lists the keys, "
      "and docs/terminal.md explains them.";
  line.words = [&options](const std::vector<std::string>& words) -> Result<> {
    if (words.size() > 1) return use_error("'" + words[1] + "' is one word too many: tacho tui FILE");
    if (words.size() == 1) options.reading.session.input = words[0];
    return Done{};
  };
  return run_command(line, arguments, [&options, &base] {
    options.face = ReportFace::Screen;
    return show_report(options, base);
  });
}

}  // namespace tacho::report
