// `tacho top`: shows a running recording on a terminal, else rows as text at intervals.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "cli/expression.h"
#include "format/container/pipe_writer.h"
#include "report/commands.h"
#include "report/query/expressions.h"
#include "report/samples/ordered_records.h"
#include "report/views/report/command_report.h"
#include "report/views/report/report_mode.h"
#include "report/views/report/report_options.h"
#include "report/views/table/table_counts.h"
#include "report/views/tui/link.h"
#include "report/views/tui/live_load.h"
#include "report/views/tui/live_table.h"
#include "report/views/tui/live_window.h"
#include "report/views/tui/report_view.h"
#include "report/views/tui/sample_list.h"
#include "report/views/tui/screen.h"

namespace tacho::report {
namespace {

using Clock = LiveWindow::Clock;
using std::chrono::milliseconds;

constexpr std::uint64_t kMostMilliseconds = 24 * 60 * 60 * 1000;
constexpr std::size_t kMostWindow = std::size_t{256} << 20;  // bytes
constexpr std::size_t kPrintedRows = 20;

struct TopOptions {
  ReportOptions report;
  std::uint64_t delay = 2000, window = 15'000;  // ms
  bool zeroes = false, is_text = false, shows_idle = false;
  // Of a recorder: show its table first.
  bool has_table = false;
  // The table is a histogram for each key, or one for all.
  bool has_buckets = false, has_no_keys = false;
  TableRequest table;
  std::string table_columns, table_where;
  std::string kept = "top.data";  // path of captures that the key w writes
};

// Sink of one session of tacho top. Its sinks are made at the first record: in a pipe, events come after the
// start.
class LiveSink : public Sink {
 public:
  // `opened`: the table's row whose samples the list counts; nullopt: all.
  LiveSink(Session& session, const TopOptions& options, const std::optional<TableCounts::Keys>& opened,
           std::string opened_text)
      : session_(session), options_(options), opened_(opened), opened_text_(std::move(opened_text)) {}
  Flow on_sample(const ResolvedSample& sample) override {
    if (options_.has_table && !takes(sample)) return failure_ ? Flow::Stop : Flow::Continue;
    return current_sink().on_sample(sample);
  }
  Flow on_non_sample(const NonSampleRecord& other) override { return current_sink().on_non_sample(other); }
  void begin_anew() {
    view_sink_.reset();
    events_.reset();
    rows_.clear();
  }
  // Null: there are no rows.
  ViewSink* view_sink() { return view_sink_ && !view_sink_->rows_sink().empty() ? &*view_sink_ : nullptr; }
  std::optional<Error> failure() {
    return failure_ ? failure_ : view_sink_ ? view_sink_->rows_sink().failure() : std::nullopt;
  }
  // Null: the events are not known yet.
  const TableCounts* table() const { return counts_ ? &*counts_ : nullptr; }
  const TableCounts::Rows& table_rows() const { return rows_; }
  // The list of the opened row's events; null: no row is open, or it has none.
  SampleList* events() const { return events_ && events_->size() > 0 ? events_.get() : nullptr; }

 private:
  ViewSink& current_sink() {
    return view_sink_ ? *view_sink_ : view_sink_.emplace(session_, options_.report);
  }
  Result<> find_table() {
    counts_.emplace();
    if (!options_.table_where.empty()) {
      auto where = parse_where("--where", options_.table_where);
      if (!where) return std::move(where.error());
      where_ = std::move(*where);
      if (auto bound = where_->bind(session_.events(), session_.features()); !bound) return bound;
    }
    return counts_->find_columns(options_.table, options_.table_columns, {}, session_);
  }
  // Counts the sample in the table. Returns whether the list counts it too.
  bool takes(const ResolvedSample& sample) {
    if (!counts_) {
      if (auto found = find_table(); !found) {
        failure_ = std::move(found.error());
        return false;
      }
    }
    if (where_ && !where_->holds(sample, &session_.resolver())) return false;
    TableEvent* const event = counts_->event(sample.event_index);
    if (event == nullptr) return !opened_;
    TableCounts::Keys keys;
    if (!options_.has_no_keys) keys = counts_->keys_of(*event, sample);
    if (options_.has_buckets) {
      const ExpressionValue value = event->value ? event->value->value(sample) : ExpressionValue();
      if (value.kind != ExpressionValue::Kind::Whole) return !opened_;
      keys.emplace_back(static_cast<std::int64_t>(Distribution().index_of(value.whole)));
    }
    const bool is_taken = !opened_ || keys == *opened_;
    if (is_taken && opened_ && !failure_) list(sample);
    TableCounts::add_row(rows_, std::move(keys), *event, sample);
    return is_taken;
  }

  void list(const ResolvedSample& sample) {
    if (!events_) {
      auto list = SampleList::collect(session_, opened_text_);
      if (!list) {
        failure_ = std::move(list.error());
        return;
      }
      events_ = std::move(*list);
    }
    (void)events_->sink().on_sample(sample);  // a full list ignores further samples
  }

  Session& session_;
  const TopOptions& options_;
  const std::optional<TableCounts::Keys>& opened_;
  std::string opened_text_;
  std::unique_ptr<SampleList> events_;
  std::unique_ptr<SampleCondition> where_;  // --where of the table; null: none
  std::optional<TableCounts> counts_;
  TableCounts::Rows rows_;
  std::optional<ViewSink> view_sink_;
  std::optional<Error> failure_;
};

// tacho top. One reader reads the recording into a LiveWindow. A session reads the window through a pipe;
// when the older half of the window is dropped a new session starts, so memory for processes, locations and
// stacks is bounded too.
class Top {
 public:
  // `link`: to the screen; null: rows are printed as text.
  Top(TopOptions& options, const SessionOptions& wanted, TextOutput& out, Link* link)
      : options_(options),
        wanted_(wanted),
        out_(out),
        link_(link),
        window_(milliseconds(options.window), kMostWindow),
        zeroes_(options.zeroes) {
    if (options.has_table) table_ = std::make_unique<LiveTable>();
    shows_table_ = options.has_table;
  }

  Result<Shown> run() {
    format::Following following{.waits = [this] { return !is_over_; }, .shows_at_once = true};
    format::ReadOptions with = wanted_.capture;
    with.keep_all = true;
    with.following = &following;
    auto reader = format::CaptureReader::open("-", diagnostics_, with);
    if (!reader) return std::move(reader.error());
    if (reader->layout().order != std::endian::native || !reader->layout().is_pipe)
      return use_error("tacho top shows what is recorded on this machine; tacho tui FILE shows a capture");
    reader_.emplace(std::move(*reader));
    records_.emplace(*reader_, diagnostics_);
    records_->use(no_filter_);
    wait_for_head();
    while (!is_over_)
      if (auto done = run_session(); !done) return std::move(done.error());
    return Shown(Symbols::NotUsed);
  }

 private:
  // Reads the records of events and payload schemas, which precede the first kernel record.
  void wait_for_head() {
    show_waiting();
    while (!is_over_ && !has_kernel_record_ && !has_ended_) collect(Clock::now());
    if (reader_->events().empty()) is_over_ = true;
  }

  // Reads the recording into the window until `until`, and handles keys.
  void collect(Clock::time_point until) {
    constexpr unsigned kBetween = 4096;  // records
    OrderedRecord record;
    for (unsigned count = 0;;) {
      const auto step = has_ended_ ? OrderedRecords::Step::End : records_->next(record);
      if (step == OrderedRecords::Step::Record) {
        has_kernel_record_ = has_kernel_record_ || record.view.type < format::abi::kRecordUserStart;
        const format::EventAttr& attr = reader_->events()[record.event].attr;
        if (record.view.type == format::abi::kRecordSample) load_.take_sample(record.view, attr);
        window_.take_record(record, attr);
        if (++count % kBetween != 0) continue;
      }
      if (step == OrderedRecords::Step::End && !std::exchange(has_ended_, true)) until = {};
      take_keys();
      if (is_over_ || reads_anew_) return;
      const auto now = Clock::now();
      if (is_held() && window_.is_full(now)) begin_half(now);
      if (!is_held() && (now >= until || is_due_)) {
        if (!has_ended_ || !is_last_shown_) return;
      }
    }
  }

  // Handles keys. Waits for one if the recording has ended.
  void take_keys() {
    if (link_ == nullptr) {
      is_over_ = is_over_ || out_.is_done() || (has_ended_ && is_last_shown_);
      return;
    }
    if (has_ended_ && is_last_shown_) return on_key(link_->show(frame()));
    do {
      if (is_drawn_)
        on_key(link_->ask());
      else
        draw();
    } while (!is_drawn_ && !is_over_ && !reads_anew_);
  }

  void on_key(const std::optional<KeyPress>& pressed) {
    if (!pressed) {
      is_over_ = true;
      return;
    }
    if (pressed->key == Key::None) return;
    is_drawn_ = false;
    if (pressed->key == Key::Resize) return;
    // The views know nothing of the head above them.
    std::optional<KeyPress> press = pressed;
    const std::uint16_t head = load_.height(pressed->size);
    const bool is_mouse = press->key == Key::Click || press->key == Key::DoubleClick;
    if (is_mouse && press->row < head) return;
    press->size.height = static_cast<std::uint16_t>(press->size.height - head);
    if (is_mouse) press->row = static_cast<std::uint16_t>(press->row - head);
    const bool is_at_list = !is_covered();
    if (is_at_list && press->is('f')) {
      is_frozen_ = !is_frozen_;
      is_due_ = !is_frozen_;
    } else if (is_at_list && press->is('z')) {
      zeroes_ = !zeroes_;
      say(zeroes_ ? "rows count samples since the previous refresh" : "rows count the whole window");
      reads_whole_window_ = true;
    } else if (is_at_list && press->is('w')) {
      write_capture();
    } else if (shows_table_) {
      on_table_key(*press);
    } else if (shows_events_ && events_ != nullptr) {
      on_events_key(*press);
    } else if (is_at_list && events_ != nullptr && (press->is('v') || press->is('l'))) {
      shows_events_ = true;
    } else if (table_ && is_at_list && press->key == Key::Escape && (!view_ || !view_->can_undo())) {
      shows_table_ = true;
      if (std::exchange(opened_, std::nullopt)) reads_anew_ = true;
    } else if (!view_) {
      is_over_ = press->is('q');
    } else {
      const auto flow = view_->on_key(*press);
      if (flow == ReportView::Flow::Quit) is_over_ = true;
      if (flow == ReportView::Flow::Save && !view_->write_saved(*link_, frame())) is_over_ = true;
      if (flow == ReportView::Flow::ReadAgain) {
        options_.report.columns.sort = view_->wanted_sort();
        options_.report.columns.fields.clear();
        has_other_sort_ = reads_anew_ = true;
      }
    }
  }

  void on_table_key(const KeyPress& press) {
    switch (table_->on_key(press)) {
      case LiveTable::Flow::Stay:
        break;
      case LiveTable::Flow::Open:
        opened_ = table_->keys_here();
        opened_text_ = table_->text_here();
        shows_table_ = false;
        reads_anew_ = is_just_opened_ = true;
        break;
      case LiveTable::Flow::All:
        shows_table_ = false;
        break;
      case LiveTable::Flow::Quit:
        is_over_ = true;
        break;
    }
  }

  void on_events_key(const KeyPress& press) {
    const auto flow = events_->on_key(press);
    if (flow == SampleList::Flow::Unknown) events_->say("no such key here; Esc: back");
    if (flow != SampleList::Flow::Leave) return;
    shows_events_ = false;
    is_due_ = true;
    if (has_stacks_) return;
    shows_table_ = true;
    opened_.reset();
    reads_anew_ = true;
  }

  // Whether an overlay or another view is over the rows and gets the keys.
  bool is_covered() const {
    if (shows_events_ && events_ != nullptr) return true;
    return shows_table_ ? table_->is_held() : view_.has_value() && !view_->is_at_list();
  }

  void say(std::string message) {
    if (shows_table_) return table_->say(std::move(message));
    if (view_) return view_->say(std::move(message));
    message_ = std::move(message);  // shown with the next rows
  }
  bool is_held() const { return is_frozen_ || is_covered(); }

  // Drops the older half of the window; the session cannot go on after that.
  void begin_half(Clock::time_point now) {
    window_.begin_half(now);
    reads_whole_window_ = true;
  }

  // Runs one session, until the window's older half is dropped.
  Result<> run_session() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return system_error("a pipe", errno);
    const format::Fd from(ends[0]);
    to_ = format::Fd(ends[1]);
    if (auto done = begin_feeding(); !done) return done;
    SessionOptions options = wanted_;
    format::Following following{.waits =
                                    [this] {
                                      feed();
                                      return true;
                                    },
                                .shows_at_once = true};
    options.input = fmt::format("/proc/self/fd/{}", from.get());
    options.capture.following = &following;
    options.in_step = true;
    if (needs_source_lines(options_.report)) options.symbols.source_lines = symbolize::SourceLines::Yes;
    auto session = Session::open(options);
    if (!session) return std::move(session.error());
    LiveSink sink(*session, options_, opened_, opened_text_);
    std::stop_source stop;
    RunControl control;
    control.cancel = stop.get_token();
    control.progress = [&](const ReadProgress& read) {
      feed();
      // The last record is a FINISHED_ROUND.
      if (read.bytes_read + format::kRecordHeaderSize < fed_bytes_ || !is_all_fed()) return;
      show_and_collect(sink);
      if (is_over_ || reads_whole_window_ || failure_) stop.request_stop();
    };
    session->run(sink, control);
    if (!failure_) failure_ = sink.failure();
    leave_rows();
    if (failure_) return std::move(*failure_);
    return Done{};
  }

  void show_and_collect(LiveSink& sink) {
    // Samples in the window were already counted: the old rows are shown for one more interval.
    const bool begins_anew = std::exchange(is_catching_up_, false) && zeroes_ && memory_;
    reads_anew_ = is_due_ = false;
    if (begins_anew)
      sink.begin_anew();
    else
      show(sink);
    if (is_over_ || failure_) return;
    const auto now = Clock::now();
    if (window_.is_full(now)) begin_half(now);
    // A key may have requested another session.
    if (!reads_anew_) collect(now + milliseconds(options_.delay));
    window_.finish_round();
    if (is_over_) return;
    if (std::exchange(reads_anew_, false)) reads_whole_window_ = true;
    if (reads_whole_window_ || !zeroes_) return;
    leave_rows();
    sink.begin_anew();
  }

  // Call it before the sink's rows and events are destroyed.
  void leave_rows() {
    events_ = nullptr;
    if (!view_) return;
    memory_ = view_->remember();
    view_.reset();
  }

  // Shows rows of the samples that the session has read so far.
  void show(LiveSink& sink) {
    leave_rows();
    is_last_shown_ = has_ended_;
    shown_at_ = Clock::now();
    load_.refresh(shown_at_);
    if ((failure_ = sink.failure())) return;
    if (table_ && sink.table() != nullptr) {
      table_->update(*sink.table(), sink.table_rows(),
                     options_.has_buckets ? LiveTable::Form::Buckets : LiveTable::Form::Table);
      is_table_known_ = true;
    }
    ViewSink* const view_sink = sink.view_sink();
    if (view_sink == nullptr && !reads_anew_) is_just_opened_ = false;
    if (view_sink == nullptr)
      return shows_table_ && is_table_known_ && link_ == nullptr ? print() : show_waiting();
    view_sink->rows_sink().session().use_last_names();
    const ReportTable& rows = view_sink->rows_sink().finish();
    events_ = sink.events();
    has_stacks_ = rows.profile().looks_at_stacks();
    // Without call chains all samples are in the function of the recorder's probe.
    if (std::exchange(is_just_opened_, false)) shows_events_ = !has_stacks_ && events_ != nullptr;
    view_.emplace(rows, options_.report, view_sink->hits(), ReportView::Source::Live);
    if (memory_) {
      if (std::exchange(has_other_sort_, false)) memory_->sort = options_.report.columns.sort;
      view_->restore(*memory_);
    } else {
      view_->begin_with_events();
    }
    view_->note(note());
    if (has_ended_) say("the recording has ended; q: quit, w: write it");
    if (!message_.empty()) view_->say(std::exchange(message_, {}));
    if (link_ != nullptr) return draw();
    print();
  }

  std::string note() const {
    std::string times = note_of_times();
    return opened_ && !shows_table_ ? opened_text_ + ", " + times : times;
  }
  std::string note_of_times() const {
    const auto shown = std::max(shown_at_ - window_.begin_time(), Clock::duration::zero());
    std::string note =
        zeroes_ ? std::string("zeroed at each refresh")
                : fmt::format("last {} s", std::chrono::duration_cast<std::chrono::seconds>(shown).count());
    if (window_.lost() > 0) note += fmt::format(", {} lost", window_.lost());
    if (is_frozen_) note += ", frozen";
    return note;
  }

  Frame frame() {
    const ScreenSize size = link_->size();
    const std::uint16_t head = load_.height(size);
    return load_.with_head(body({size.width, static_cast<std::uint16_t>(size.height - head)}), size);
  }

  // What is below the head.
  Frame body(ScreenSize size) {
    if (shows_table_ && is_table_known_) {
      table_->note(note());
      return table_->draw(size);
    }
    const auto message = [size](const std::string& title, std::string_view text) {
      Frame frame(size);
      frame.bar(0, Style::Bar, title);
      frame.put_text(frame.size.height / 2U, 2, Style::Normal, text);
      return frame;
    };
    if (is_just_opened_) return message(opened_text_, "Reading the events of the window ...");
    if (opened_ && !shows_table_ && !view_)
      return message(note(), "The window has no event of this row any more (Esc: back)");
    if (shows_events_ && events_ != nullptr) {
      Frame events(size);
      if (events.has_room()) events_->draw(events);
      return events;
    }
    if (view_) {
      view_->note(note());
      return view_->draw(size);
    }
    Frame waiting(size);
    waiting.bar(0, Style::Bar, "tacho top: no sample yet");
    if (waiting.size.height > 1)
      waiting.last_line(has_ended_ ? "the recording has ended; q: quit" : "q: quit");
    waiting.draws = !memory_;  // the old rows are still shown
    return waiting;
  }

  void draw() {
    Frame next = frame();
    next.waits = false;
    is_drawn_ = true;
    on_key(link_->show(std::move(next)));
  }
  void show_waiting() {
    if (link_ != nullptr) draw();
  }

  // The list as text, as on a screen of `rows` lines.
  void print() {
    const auto width =
        static_cast<std::uint16_t>(std::clamp<std::size_t>(options_.report.reading.width, 100, 1000));
    const auto rows =
        options_.report.look.top == 0 ? kPrintedRows : std::min<std::size_t>(options_.report.look.top, 1000);
    const ScreenSize size{width, static_cast<std::uint16_t>(rows + 3)};
    if (shows_table_) table_->note(note());
    Frame frame = shows_table_ ? table_->draw(size) : view_->draw(size);
    frame.rows.pop_back();
    while (!frame.rows.empty() && text_of(frame.rows.back()).empty()) frame.rows.pop_back();
    for (const FrameRow& row : frame.rows) out_.text(text_of(row) + "\n");
    out_.text("\n");
    out_.flush();
  }

  // Starts the input of a session: header, older half and newer half of the window (part_ 0 to 2).
  Result<> begin_feeding() {
    head_.clear();
    const auto write = [this](format::Bytes bytes) -> Result<> {
      head_.insert(head_.end(), bytes.begin(), bytes.end());
      return Done{};
    };
    auto head = format::PipeWriter::create(write, reader_->events(), reader_->take_features(),
                                           {.compression_level = {}});
    if (!head) return std::move(head.error());
    window_.finish_round();
    part_ = at_ = fed_bytes_ = 0;
    skips_older_ = zeroes_ && !is_first_;
    is_first_ = reads_whole_window_ = false;
    is_catching_up_ = true;
    feed();
    return Done{};
  }
  std::array<format::Bytes, 3> parts() const { return {head_, window_.older(), window_.newer()}; }
  bool is_all_fed() const { return part_ == 2 && at_ == window_.newer().size(); }
  // Writes as much as fits into the pipe.
  void feed() {
    // The older half was dropped: a new session will read the window.
    if (reads_whole_window_) return;
    for (;;) {
      const format::Bytes bytes = parts().at(part_);
      if (at_ == bytes.size() || (part_ == 1 && skips_older_)) {
        if (part_ == 2) return;
        ++part_;
        at_ = 0;
        continue;
      }
      const ssize_t count = ::write(to_.get(), bytes.data() + at_, bytes.size() - at_);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return;
      at_ += static_cast<std::size_t>(count);
      fed_bytes_ += static_cast<std::uint64_t>(count);
    }
  }

  void write_capture() {
    window_.finish_round();
    const auto path = link_->save(frame(), SavedAs::Capture, options_.kept, parts());
    if (!path) return say("w: " + path.error().what);
    if (!*path) {
      is_over_ = true;
      return;
    }
    std::size_t size = 0;
    for (const format::Bytes part : parts()) size += part.size();
    say(fmt::format("wrote {} ({:.1f} MB): tacho report -i {}", **path, static_cast<double>(size) / 1e6,
                    **path));
  }

  TopOptions& options_;
  const SessionOptions& wanted_;
  TextOutput& out_;
  Link* link_;

  format::Diagnostics diagnostics_;
  std::optional<format::CaptureReader> reader_;
  Filter no_filter_;
  std::optional<OrderedRecords> records_;
  LiveWindow window_;
  LiveLoad load_;
  Clock::time_point shown_at_ = Clock::now();  // when the rows were made

  format::Fd to_;                   // the session's pipe
  bool has_kernel_record_ = false;  // the recording has one
  std::vector<std::byte> head_;
  std::size_t part_ = 0, at_ = 0;  // the next part and offset to write to the session
  std::uint64_t fed_bytes_ = 0;

  std::optional<ReportView> view_;
  std::optional<ReportView::Memory> memory_;
  std::unique_ptr<LiveTable> table_;  // a recorder's table; null: none
  bool shows_table_ = false, is_table_known_ = false;
  std::optional<TableCounts::Keys> opened_;  // the table's row that the list counts
  std::string opened_text_;
  SampleList* events_ = nullptr;  // list of that row's events; null: none
  bool shows_events_ = false, has_stacks_ = false, is_just_opened_ = false;
  std::string message_;
  std::optional<Error> failure_;
  bool zeroes_;
  bool is_first_ = true, is_catching_up_ = false, skips_older_ = false;
  bool is_drawn_ = true;  // false: a key changed what is shown
  bool is_frozen_ = false, is_due_ = false, is_over_ = false;
  bool has_ended_ = false, is_last_shown_ = false;
  bool reads_anew_ = false;          // the sort keys changed: collect() returns
  bool reads_whole_window_ = false;  // with a new session
  bool has_other_sort_ = false;
};

Result<cli::ExitStatus> show_screen(TopOptions& options) {
  auto screen = Screen::make();
  if (!screen) return std::move(screen.error());
  screen->save_captures(options.kept);
  const ScreenPlan plan = screen->plan();
  return show_alone(options.report.reading, &plan, [&](const SessionOptions& wanted, TextOutput& out) {
    Link link(out, *screen);
    return Top(options, wanted, out, &link).run();
  });
}

Result<cli::ExitStatus> show_top(TopOptions& options) {
  ReportOptions& report = options.report;
  report.view.is_interactive = report.view.is_live = true;
  report.view.hides_idle = !options.shows_idle;
  if (report.columns.sort.empty()) report.columns.sort = "dso,symbol";
  if (auto prepared = prepare_report(report); !prepared) return std::move(prepared.error());
  report.reading.session.input = "-";
  report.reading.file_seconds = 0;  // no limit: the session's time is not that of a file
  report.reading.paging = Paging::Never;
  const std::string no_screen = options.is_text ? std::string() : why_no_screen();
  if (no_screen.empty() && !options.is_text) return show_screen(options);
  std::fprintf(stderr, "tacho top: %s%srows are printed as text, every %.1f s\n", no_screen.c_str(),
               no_screen.empty() ? "" : ": ", static_cast<double>(options.delay) / 1000);
  return show_alone(report.reading, nullptr, [&options](const SessionOptions& wanted, TextOutput& out) {
    return Top(options, wanted, out, nullptr).run();
  });
}

}  // namespace

Result<cli::ExitStatus> run_top(const std::vector<std::string>& arguments) {
  TopOptions options;
  auto line = describe_report(options.report);
  line.program = "tacho-report top";
  line.options.insert(
      line.options.begin(),
      {cli::number("--delay", "MS", "time between refreshes", 1, kMostMilliseconds, options.delay),
       cli::number("--window", "MS", "duration of each half of the window", 1, kMostMilliseconds,
                   options.window),
       cli::flag("--zero", "count anew at each refresh", options.zeroes),
       cli::flag("--show-idle", "also count the kernel's idle loop", options.shows_idle),
       cli::flag("--text", "print text", options.is_text),
       cli::text("--keep", "FILE", "path of captures that the key w writes", options.kept),
       cli::flag("--table", "show a table first, as tacho table", options.has_table),
       cli::flag("--table-buckets", "the table is a histogram, as tacho hist", options.has_buckets),
       cli::flag("--table-without-keys", "one histogram", options.has_no_keys),
       cli::text("--table-by", "KEYS", "like --by of tacho table", options.table.by),
       cli::text("--table-columns", "LIST", "like --columns of tacho table", options.table_columns),
       cli::text("--table-where", "EXPR", "like --where of tacho table", options.table_where),
       {"--table-value", cli::Takes::Value, "EXPR", "like --value of tacho table",
        [&options](std::string_view text) -> Result<> {
          auto value = cli::parse_expression("--value", text);
          if (!value) return std::move(value.error());
          options.table.value = std::move(*value);
          return Done{};
        }}});
  return run_command(line, arguments, [&options] { return show_top(options); });
}

}  // namespace tacho::report
