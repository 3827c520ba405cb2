#include "report/views/tui/sample_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "report/output/text_output.h"
#include "report/samples/filter.h"
#include "report/views/script/script_columns.h"

namespace tacho::report {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20, kMostBytes = std::size_t{512} << 20;
constexpr std::size_t kWidest = 40;      // columns of a cell, except the last one
constexpr std::size_t kCellScroll = 10;  // columns
constexpr char kCellSeparator = '\t';    // printable() texts have no tabs

std::string counted(std::size_t number) { return with_commas(static_cast<double>(number)); }

}  // namespace

// Sink that makes the lines. It formats each sample immediately: addresses in payloads can be resolved only
// at the sample's time.
class SampleList::Collector : public Sink {
 public:
  Collector(SampleList& list, Columns columns) : list_(list), columns_(std::move(columns)) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      list_.names_.push_back(printable(columns_.name(i)));
      list_.are_numbers_.push_back(columns_.is_number(i));
      list_.widths_.push_back(columns_of(list_.names_.back()));
    }
  }
  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    if (!columns_.has_line(sample.event_index)) return Flow::Continue;
    text_.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const ColumnValue value = columns_.cell(i, sample);
      const std::string cell = value.kind == ColumnValue::Kind::Nothing ? "-" : printable(value.text);
      if (i > 0) text_ += kCellSeparator;
      text_ += cell;
      if (cell.size() > list_.widths_[i])
        list_.widths_[i] = std::max(list_.widths_[i], std::min(columns_of(cell), kWidest));
    }
    taken_ += text_.size() + sizeof(Line);
    if (taken_ > kMostBytes) {
      is_full_ = true;
      return Flow::Stop;
    }
    list_.lines_.push_back({keep(), static_cast<std::uint32_t>(text_.size()), sample.stack, sample.location});
    return Flow::Continue;
  }
  bool is_full() const { return is_full_; }

 private:
  const char* keep() {
    const std::size_t size = text_.size();
    if (size > left_) {
      left_ = std::max(kBlock, size);
      list_.texts_.push_back(std::make_unique_for_overwrite<char[]>(left_));
      at_ = list_.texts_.back().get();
    }
    std::memcpy(at_, text_.data(), size);
    left_ -= size;
    return std::exchange(at_, at_ + size);
  }

  SampleList& list_;
  Columns columns_;
  std::string text_;
  char* at_ = nullptr;
  std::size_t left_ = 0, taken_ = 0;  // bytes
  bool is_full_ = false;
};

SampleList::SampleList(std::string title) : title_(std::move(title)) {}
SampleList::~SampleList() = default;
Sink& SampleList::sink() { return *collector_; }

Result<> SampleList::begin_list(Session& session) {
  session_ = &session;
  auto columns = Columns::find_columns("all", session);
  if (!columns) return std::move(columns.error());
  collector_ = std::make_unique<Collector>(*this, std::move(*columns));
  frames_.emplace(session.resolver(),
                  FrameLines::Options{.fields = {Field::Ip, Field::Sym, Field::Symoff, Field::Dso}});
  return Done{};
}

Result<std::unique_ptr<SampleList>> SampleList::collect(Session& session, std::string title) {
  std::unique_ptr<SampleList> list(new SampleList(std::move(title)));
  if (auto begun = list->begin_list(session); !begun) return std::move(begun.error());
  return list;
}

Result<std::unique_ptr<SampleList>> SampleList::read(CaptureReadings& readings, const SampleChoice& choice,
                                                     std::string title) {
  auto opened = readings.open_session([](SessionOptions& options) { options.wants_stacks = true; });
  if (!opened) return std::move(opened.error());
  std::unique_ptr<SampleList> list(new SampleList(std::move(title)));
  Session& session = list->owned_.emplace(std::move(*opened));
  if (choice.events) {  // its fields are columns
    auto& events = session.filter().events;
    events.clear();
    for (std::size_t i = 0; i < choice.events->second; ++i)
      std::ranges::move(parse_name_list(session.events()[choice.events->first + i].name),
                        std::back_inserter(events));
  }
  if (auto begun = list->begin_list(session); !begun) return std::move(begun.error());
  ChosenSamples chosen(session, choice, list->sink());
  if (auto found = chosen.find_box(); !found) return std::move(found.error());
  const bool is_whole = readings.run_session(session, chosen);
  if (!is_whole) list->note_ = "reading was stopped";
  if (list->collector_->is_full())
    list->note_ = "only the first ones: T in the list selects a time range, zooms filter";
  if (list->lines_.empty())
    return Error{is_whole ? "these rows have no samples"
                          : "reading was stopped before the first sample of these rows"};
  return list;
}

std::vector<std::string_view> SampleList::cells(const Line& line) const {
  std::vector<std::string_view> cells;
  std::string_view rest(line.text, line.size);
  for (std::size_t end = rest.find(kCellSeparator); end != rest.npos; end = rest.find(kCellSeparator)) {
    cells.push_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  cells.push_back(rest);
  return cells;
}

std::string SampleList::row_text(const std::vector<std::string_view>& cells) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t width = columns_of(cells[i]);
    const std::size_t blanks = width < widths_[i] ? widths_[i] - width : 0;
    if (i > 0) text += ' ';
    if (are_numbers_[i]) text.append(blanks, ' ');
    text += cells[i];
    if (!are_numbers_[i] && i + 1 < cells.size()) text.append(blanks, ' ');
  }
  return text;
}

TextPage SampleList::page_of(const Line& line) {
  std::size_t widest = 0;
  for (const std::string& name : names_) widest = std::max(widest, columns_of(name));
  std::vector<std::string> lines;
  const auto values = cells(line);
  for (std::size_t i = 0; i < values.size(); ++i)
    lines.push_back(padded_to(names_[i], widest + 2).append(values[i]));
  if (line.stack != nullptr && !line.stack->frames.empty()) {
    lines.insert(lines.end(), {"", "Call chain, callers below:"});
    const auto chain = written_lines([&](TextOutput& out) {
      for (const LocationId frame : line.stack->frames)
        frames_->write(out, session_->resolver().location(frame));
    });
    for (const std::string& frame : chain)
      lines.push_back(frame.substr(std::min(frame.find_first_not_of('\t'), frame.size())));
  } else {
    lines.insert(lines.end(), {"", "No call chain."});
    if (line.location != nullptr) {
      TextBuffer text;
      frames_->write_alone(text, *line.location);
      lines.push_back("In:" + std::string(text.view()));
    }
  }
  return {fmt::format("Sample {} of {}", counted(cursor_ + 1), counted(lines_.size())), std::move(lines)};
}

void SampleList::search(bool begins_here) {
  if (searched_.empty()) return;
  for (std::size_t step = begins_here ? 0 : 1; step <= lines_.size(); ++step) {
    const std::size_t at = (cursor_ + step) % lines_.size();
    if (std::string_view(lines_[at].text, lines_[at].size).find(searched_) == std::string_view::npos)
      continue;
    if (at < cursor_) message_ = "search continued at the first sample";
    cursor_ = at;
    return;
  }
  message_ = "no sample has \"" + searched_ + "\"";
}

SampleList::Flow SampleList::on_key(const KeyPress& press) {
  message_.clear();
  if (page_) {
    if (!page_->on_key(press)) page_.reset();
    return Flow::Stay;
  }
  if (question_) {
    const auto answer = question_->on_key(press);
    if (answer == Question::Answer::Given) {
      searched_ = question_->text();
      search(true);
    }
    if (answer == Question::Answer::Given || answer == Question::Answer::Closed) question_.reset();
    return Flow::Stay;
  }
  if (const auto lines = lines_moved(press, height_)) {
    cursor_ = moved(cursor_, *lines, lines_.size());
    return Flow::Stay;
  }
  switch (press.key) {
    case Key::Home:
      cursor_ = 0;
      break;
    case Key::End:
      cursor_ = lines_.size() - 1;
      break;
    case Key::Left:
      left_ -= std::min(left_, kCellScroll);
      break;
    case Key::Right:
      left_ += kCellScroll;
      break;
    case Key::Click:
    case Key::DoubleClick: {
      constexpr std::size_t kFirst = 2;  // first line: below title and column headers
      if (press.row < kFirst || press.row >= kFirst + height_ || top_ + press.row - kFirst >= lines_.size())
        break;
      const std::size_t at = top_ + press.row - kFirst;
      if (std::exchange(cursor_, at) == at) page_ = page_of(lines_[at]);
      break;
    }
    case Key::Enter:
      page_ = page_of(lines_[cursor_]);
      break;
    case Key::Escape:
      return Flow::Leave;
    default:
      if (press.is('q')) return Flow::Leave;
      if (press.is('/'))
        question_.emplace("Search:", searched_);
      else if (press.is('n'))
        search(false);
      else
        return Flow::Unknown;
  }
  return Flow::Stay;
}

void SampleList::draw(Frame& frame) {
  if (page_) return page_->draw(frame);
  constexpr std::size_t kBeside = 3;  // other lines: title, column headers, last line
  height_ = frame.size.height > kBeside ? frame.size.height - kBeside : 1;
  top_ = top_showing(cursor_, top_, height_, lines_.size());
  frame.bar(0, Style::Bar, note_.empty() ? title_ : title_ + ", " + note_);
  const auto put = [&](std::size_t row, Style style, const std::vector<std::string_view>& texts) {
    frame.put_text(row, 0, style, from_column(row_text(texts), left_));
  };
  put(1, Style::Heading, {names_.begin(), names_.end()});
  for (std::size_t i = 0; i < height_ && top_ + i < lines_.size(); ++i) {
    const bool is_here = top_ + i == cursor_;
    frame.rows[2 + i].is_selected = is_here;
    put(2 + i, Style::Normal, cells(lines_[top_ + i]));
  }
  frame.last_line(!message_.empty()
                      ? message_
                      : fmt::format("{} of {}  Enter: its call chain  /: search  Left Right: scroll  q: back",
                                    counted(cursor_ + 1), counted(lines_.size())));
  if (question_) question_->draw(frame);
}

}  // namespace tacho::report
