#include "report/views/tui/hist_view.h"

#include <utility>

#include "report/output/text_output.h"

namespace tacho::report {

Result<std::unique_ptr<HistView>> HistView::read(CaptureReadings& readings, const SampleChoice& choice,
                                                 const std::string& event, const std::string& field) {
  std::unique_ptr<HistView> view(new HistView(readings, choice));
  HistOptions& options = view->options_;
  options.event = event;
  options.field = field;
  options.by = kNoKey;
  options.reading.session.input = readings.input();
  if (auto done = view->read_values(); !done) return std::move(done.error());
  return view;
}

Result<> HistView::read_values() {
  auto session = readings_->open_session([this](SessionOptions& options) {
    options.wants_stacks = choice_.looks_at_functions() && choice_.looks_at_callers;
  });
  if (!session) return std::move(session.error());
  Result<> done = Done{};
  bool is_empty = false, is_whole = true;
  auto lines = written_lines([&](TextOutput& out) {
    HistSink sink(*session, out, options_);
    ChosenSamples chosen(*session, choice_, sink);
    if (auto found = chosen.find_box(); !found) {
      done = std::move(found);
      return;
    }
    is_whole = readings_->run_session(*session, chosen);
    if (sink.error) {
      done = std::move(*sink.error);
      return;
    }
    sink.finish();
    is_empty = sink.is_empty();
  });
  if (!done) return done;
  if (is_empty) return Error{"no sample of these rows has the field"};
  page_.emplace("Histogram of " + printable(options_.event) + ": " + printable(options_.field) +
                    (is_whole ? "" : ", reading was stopped"),
                std::move(lines), "",
                "q: back  l: row width  k: one for each comm, cpu, ...  arrows: scroll");
  return done;
}

void HistView::ask(bool is_for_rows) {
  asks_for_rows_ = is_for_rows;
  if (is_for_rows)
    question_.emplace("Row width (1000, 100us; empty: powers of two):", rows_text_);
  else
    question_.emplace("A histogram for each (comm, cpu, a field; empty: one):",
                      options_.by == kNoKey ? "" : options_.by);
}

void HistView::answer(const std::string& text) {
  const HistOptions before = options_;
  Result<> done = Done{};
  if (!asks_for_rows_) {
    options_.by = text.empty() ? std::string(kNoKey) : text;
  } else if (text.empty()) {
    options_.step = {};
  } else if (auto width = parse_row_width(text)) {
    options_.step = *width;
  } else {
    done = std::move(width.error());
  }
  if (done) done = read_values();
  if (done) {
    if (asks_for_rows_) rows_text_ = text;
    return;
  }
  options_ = before;
  message_ = done.error().what;
}

HistView::Flow HistView::on_key(const KeyPress& press) {
  message_.clear();
  if (question_) {
    const auto given = question_->on_key(press);
    const std::string text = question_->text();
    if (given == Question::Answer::Given || given == Question::Answer::Closed) question_.reset();
    if (given == Question::Answer::Given) answer(text);
    return Flow::Stay;
  }
  if (press.is('l') || press.is('k')) {
    ask(press.is('l'));
  } else if (press.is('h') || press.is('?')) {
    return Flow::Unknown;
  } else if (!page_->on_key(press)) {
    return Flow::Leave;
  }
  return Flow::Stay;
}

void HistView::draw(Frame& frame) {
  page_->draw(frame);
  if (!message_.empty()) frame.last_line(message_);
  if (question_) question_->draw(frame);
}

}  // namespace tacho::report
