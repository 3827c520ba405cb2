#include "report/views/tui/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "report/perf_text/header_text.h"
#include "report/samples/session.h"

namespace tacho::report {
namespace {

struct KeyRow {
  std::string_view keys, what;
};

// The help page of the list, in perf's order.
constexpr KeyRow kListKeys[] = {
    {"h ? F1", "this page"},
    {"Up Down PgUp PgDn", "move; also Space (page down), Home, End"},
    {"q Ctrl-C", "leave"},
    {"Esc", "undo the last zoom; without one, ask whether to leave"},
    {"Tab Shift-Tab", "next, previous event"},
    {"Enter", "open or close the call graph here by one level"},
    {"Right Left", "open it; close it or go to its parent"},
    {"+ -", "open or close one level; close"},
    {"e c", "open or close all of this row's call graph; close"},
    {"E C", "the same of all rows"},
    {"m", "menu of what can be done with this row"},
    {"a", "annotate the function here"},
    {"x", "callers and callees of the function here"},
    {"g f", "flame graph in characters: arrows, Enter zooms, Esc: back"},
    {"d t k", "zoom into its module, its thread, the kernel; again: out"},
    {"/", "show functions whose names have this in them"},
    {"T", "samples over time: Left and Right move, Space marks, Enter counts that time"},
    {"o", "sort by other keys"},
    {"< >", "sort by the column to the left, to the right"},
    {"W", "count periods or samples"},
    {"F", "100 % are all samples, or the samples shown here"},
    {"L", "the least share of a row"},
    {"H", "names of columns on and off"},
    {"n w", "whole names: Left and Right scroll then"},
    {"V", "modules in call graphs on and off"},
    {"0-9", "sort by the n-th event of a group"},
    {"i", "the capture's header"},
    {"D", "a line about what is shown"},
    {"Ctrl-L Ctrl-Z", "draw anew; stop, and go on with fg"},
    {"mouse", "click: go there; on a sign or twice: open; wheel: move"},
    {"P r s S", "of perf, not here: each says where its work is done"},
};
// Those of tacho top. The first three stand in for keys of the list.
constexpr KeyRow kLiveKeys[] = {
    {"f", "freeze: the rows stay as they are; again: go on"},
    {"z", "zero the counts at each refresh, or count the whole window"},
    {"w", "write what is counted as a capture"},
    {"g n", "the flame graph; whole names"},
};
constexpr KeyRow kCodeKeys[] = {
    {"Tab Shift-Tab", "next and previous of the hottest lines"},
    {"H", "the hottest line"},
    {"Enter Right", "follow the jump or call; at a return: to the caller"},
    {"< >", "the function with more, with less samples"},
    {"/ ? n", "search down, up, again"},
    {"s", "source lines on and off"},
    {"o f", "addresses on and off; of the file, not of the function"},
    {"j J", "arrows of jumps; how many jumps lead to a line"},
    {"k l", "numbers of source lines; file and line at the cursor"},
    {"t", "percent, period, samples"},
    {"p b", "percent of the function or of all; of periods or samples"},
    {"w", "whole paths of source files"},
    {"q Esc Left", "back"},
};

std::vector<std::string> key_lines(std::span<const KeyRow> rows) {
  std::vector<std::string> lines;
  for (const KeyRow& row : rows) lines.push_back(fmt::format("  {:<19}{}", row.keys, row.what));
  return lines;
}

bool is_yes(const KeyPress& press) { return press.key == Key::Enter || press.is('y') || press.is('Y'); }

}  // namespace

// The callers and the callees of one function: two rows.
class Walk::Sides : public BrowsedRows {
 public:
  Sides(WalkedRows& rows, std::uint32_t symbol, const std::string& name)
      : callers_(rows.graph_of(symbol, WalkedRows::Side::Callers)),
        callees_(rows.graph_of(symbol, WalkedRows::Side::Callees)),
        share_(rows.share_of(symbol)),
        names_{"callers of " + name, "callees of " + name} {}

  std::size_t size() const override { return 2; }
  std::vector<BrowsedColumn> columns() const override {
    return {{.header = "Share", .width = 8, .is_right = true, .is_share = true},
            {.header = "Function",
             .width = std::max(columns_of(names_[0]), columns_of(names_[1])),
             .is_name = true}};
  }
  std::vector<Cell> cells(std::size_t row) const override {
    return {{fmt::format("{:>8}", share_), 0}, {names_.at(row), 0}};
  }
  std::string identity(std::size_t row) const override { return names_.at(row); }
  bool has_graph(std::size_t row) const override { return of(row).size() > 1; }
  std::vector<BrowsedNode> graph(std::size_t row) const override { return of(row); }

 private:
  const std::vector<BrowsedNode>& of(std::size_t row) const { return row == 0 ? callers_ : callees_; }
  std::vector<BrowsedNode> callers_, callees_;
  std::string share_;
  std::array<std::string, 2> names_;
};

Walk::Walk(ReportSink& sink, const ReportOptions& options, const CodeHits& hits, Of of)
    : sink_(sink), options_(options), hits_(hits), rows_(sink, options), browser_(rows_), of_(of) {
  if (rows_.blocks().size() > 1) offer_events();
}

Walk::Memory Walk::remember() const {
  Memory memory{.sort = rows_.sort_keys(),
                .choice = rows_.named(rows_.choice()),
                .before = {},
                .browser = browser_.remember(),
                .shows_debug = shows_debug_,
                .message = message_,
                .times = strip_ ? strip_->place() : times_place_};
  for (const RowChoice& one : before_) memory.before.push_back(rows_.named(one));
  return memory;
}

void Walk::restore(const Memory& memory) {
  menu_.reset();
  shows_debug_ = memory.shows_debug;
  message_ = memory.message;
  times_place_ = memory.times;
  if (memory.times.is_open && times_ != nullptr && !times_->empty()) strip_.emplace(*times_, memory.times);
  if (memory.sort != rows_.sort_keys()) (void)rows_.sort_by(memory.sort);
  for (const auto& one : memory.before)
    if (const auto choice = rows_.found(one)) before_.push_back(*choice);
  if (const auto choice = rows_.found(memory.choice))
    rows_.choose(*choice);
  else
    message_ = "what was zoomed into has no samples any more";
  browser_.changed();
  browser_.restore(memory.browser);
}

const Function* Walk::function_here() const {
  if (flame_) {
    const auto id = flame_->function();
    return id ? &rows_.function(*id) : nullptr;
  }
  const auto& [browser, is_list] =
      sandwiches_.empty() ? std::pair<const Browser*, bool>(&browser_, true)
                          : std::pair<const Browser*, bool>(sandwiches_.back()->browser.get(), false);
  if (browser->is_empty()) return nullptr;
  if (browser->is_at_frame()) return &rows_.function(browser->function_at_cursor());
  return is_list ? rows_.facts(browser->cursor().row).function : nullptr;
}

const Thread* Walk::thread_here() const {
  return browser_.is_empty() ? nullptr : rows_.facts(browser_.cursor().row).thread;
}

std::string Walk::function_name(const Function& function) const {
  return function.name().empty() ? fmt::format("{:#x}", function.start) : std::string(function.name());
}

void Walk::choose(const RowChoice& choice) {
  rows_.choose(choice);
  browser_.changed();
}

void Walk::zoom(const RowChoice& choice) {
  before_.push_back(rows_.choice());
  choose(choice);
}

Walk::Flow Walk::undo() {
  if (!sandwiches_.empty()) {
    sandwiches_.pop_back();
    return Flow::Stay;
  }
  if (!before_.empty()) {
    RowChoice last = before_.back();
    before_.pop_back();
    choose(last);
    return Flow::Stay;
  }
  ask("Do you really want to exit? (Enter, y: yes)", "", [](const std::string&) { return Flow::Quit; });
  wants_yes_ = true;
  return Flow::Stay;
}

void Walk::next_event(bool is_forward) {
  const auto& blocks = rows_.blocks();
  if (blocks.size() < 2) {
    message_ = "the capture has samples of one event";
    return;
  }
  const auto here = std::ranges::find(blocks, rows_.choice().block) - blocks.begin();
  const auto count = static_cast<std::ptrdiff_t>(blocks.size());
  RowChoice choice = rows_.choice();
  choice.block = blocks[static_cast<std::size_t>((here + (is_forward ? 1 : count - 1)) % count)];
  choice.member = 0;
  choice.order = 0;
  choose(choice);
}

void Walk::ask(std::string label, std::string text, std::function<Flow(const std::string&)> done,
               std::function<void(const std::string&)> changed, std::function<void()> left) {
  question_.emplace(std::move(label), std::move(text));
  wants_yes_ = false;
  answered_ = std::move(done);
  answer_changed_ = std::move(changed);
  answer_left_ = std::move(left);
}

void Walk::offer(std::string title, std::vector<std::pair<std::string, std::function<Flow()>>> items) {
  std::vector<std::string> texts;
  menu_actions_.clear();
  for (auto& [text, action] : items) {
    texts.push_back(std::move(text));
    menu_actions_.push_back(std::move(action));
  }
  menu_.emplace(std::move(title), std::move(texts));
}

void Walk::offer_events() {
  std::vector<std::pair<std::string, std::function<Flow()>>> items;
  for (const std::uint32_t block : rows_.blocks()) {
    std::uint64_t samples = rows_.samples_of(block);
    char unit = ' ';
    for (const char larger : {'K', 'M', 'G'}) {
      if (samples <= 1000) break;
      samples /= 1000;
      unit = larger;
    }
    items.emplace_back(fmt::format("{}{} {}", samples, unit, rows_.name_of(block)), [this, block] {
      RowChoice choice = rows_.choice();
      choice.block = block;
      choose(choice);
      return Flow::Stay;
    });
  }
  offer("Available samples", std::move(items));
}

void Walk::offer_actions() {
  std::vector<std::pair<std::string, std::function<Flow()>>> items;
  const auto stay = [](auto call) {
    return [call] {
      call();
      return Flow::Stay;
    };
  };
  if (const Function* const function = function_here()) {
    const std::string name = function_name(*function);
    items.emplace_back("Annotate " + name, stay([this] { annotate(); }));
    items.emplace_back("Callers and callees of " + name, stay([this] { sandwich(); }));
  }
  if (sandwiches_.empty()) {
    const RowChoice& choice = rows_.choice();
    if (const Thread* const thread = thread_here())
      items.emplace_back(fmt::format("Zoom {} {}({}) thread", choice.thread == nullptr ? "into" : "out of",
                                     thread->comm, thread->tid),
                         stay([this] { (void)on_zoom_key({.key = static_cast<Key>('t'), .size = {}}); }));
    if (const Function* const function = function_here(); function != nullptr && function->module != nullptr)
      items.emplace_back(fmt::format("Zoom {} {} DSO ('k': into the kernel)",
                                     choice.module ? "out of" : "into", function->module->short_name),
                         stay([this] { (void)on_zoom_key({.key = static_cast<Key>('d'), .size = {}}); }));
  }
  items.emplace_back("Expand or collapse one level ('+'; 'e', 'c': the whole row)", stay([this] {
                       Browser& browser = sandwiches_.empty() ? browser_ : *sandwiches_.back()->browser;
                       (void)browser.on_key({.key = Key::Enter, .size = {}});
                     }));
  items.emplace_back("Sort by other keys ('o')", stay([this] { ask_for_sort(); }));
  if (rows_.blocks().size() > 1) items.emplace_back("Another event", stay([this] { offer_events(); }));
  items.emplace_back("The capture's header ('i')", stay([this] { show_header(); }));
  items.emplace_back("Help ('h')", stay([this] { show_help(); }));
  items.emplace_back("Exit", [] { return Flow::Quit; });
  offer("What to do", std::move(items));
}

void Walk::ask_for_filter() {
  const RowChoice before = rows_.choice();
  ask(
      "Symbol to show:", before.symbol,
      [this, before](const std::string& text) {
        if (text != before.symbol) before_.push_back(before);
        return Flow::Stay;
      },
      [this](const std::string& text) {
        RowChoice choice = rows_.choice();
        choice.symbol = text;
        choose(choice);
      },
      [this, before] { choose(before); });
}

void Walk::ask_for_limit() {
  ask("Percent limit (0-100):", fmt::format("{}", rows_.choice().percent_limit),
      [this](const std::string& text) {
        double limit = 0;
        const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), limit);
        if (failed != std::errc{} || end != text.data() + text.size() || !(limit >= 0 && limit <= 100)) {
          message_ = "\"" + text + "\" is no number from 0 to 100";
          return Flow::Stay;
        }
        RowChoice choice = rows_.choice();
        choice.percent_limit = limit;
        choose(choice);
        return Flow::Stay;
      });
}

void Walk::ask_for_sort() {
  ask("Sort keys:", rows_.sort_keys(), [this](const std::string& text) {
    auto is_done = rows_.sort_by(text);
    if (!is_done) {
      message_ = is_done.error().what;
      return Flow::Stay;
    }
    if (!*is_done) {
      wanted_sort_ = text;
      return Flow::ReadAgain;
    }
    before_.clear();
    browser_.changed();
    return Flow::Stay;
  });
}

void Walk::next_order(bool is_forward) {
  RowChoice choice = rows_.choice();
  const std::size_t count = rows_.order_count();
  if (count == 0) return;
  choice.order = (choice.order + (is_forward ? 1 : count - 1)) % count;
  choose(choice);
  message_ = "sorted by " + rows_.order_name();
}

void Walk::annotate() {
  const Function* const function = function_here();
  if (function == nullptr) {
    message_ = "no function is at the cursor";
    return;
  }
  const EventBlock& events = sink_.profile().blocks()[rows_.choice().block];
  if (!code_source_) code_source_ = std::make_unique<CodeSource>(sink_.session(), hits_);
  const HitFunction* found = nullptr;
  if (function->module != nullptr && function->has_symbol() && !function->is_inlined)
    found = code_source_->find(function->module, function->start);
  // Code of inlined calls is in the function around it.
  if (found == nullptr && function->has_symbol()) found = code_source_->find(function->name());
  if (found == nullptr) {
    message_ = fmt::format("No samples for the \"{}\" symbol. Probably appeared just in a callchain",
                           function_name(*function));
    return;
  }
  auto code = std::make_unique<CodeView>(*code_source_, events.leader, events.members);
  message_ = code->show(*found);
  if (message_.empty()) code_ = std::move(code);
}

void Walk::sandwich() {
  const Function* const function = function_here();
  if (function == nullptr) {
    message_ = "no function is at the cursor";
    return;
  }
  if (!sink_.profile().looks_at_stacks()) {
    message_ = "the capture has no call chains; record with -g to have them";
    return;
  }
  auto one = std::make_shared<Sandwich>();
  const std::string name = function_name(*function);
  one->rows = std::make_unique<Sides>(rows_, function->symbol, name);
  one->browser = std::make_unique<Browser>(*one->rows);
  one->browser->open_all(0);
  one->browser->open_all(1);
  one->title = fmt::format("{}: {} of all, itself and what it calls", name, rows_.share_of(function->symbol));
  sandwiches_.push_back(std::move(one));
}

void Walk::show_flame() {
  if (!sink_.profile().looks_at_stacks()) {
    message_ = "the capture has no call chains; record with -g to have them";
    return;
  }
  flame_.emplace(rows_.title(WalkedRows::Count::No), rows_.whole_graph());
}

Walk::Flow Walk::on_flame_key(const KeyPress& press) {
  const auto flow = flame_->on_key(press);
  if (flow == FlameView::Flow::Leave) flame_.reset();
  if (flow != FlameView::Flow::Unknown) return Flow::Stay;
  if (press.is('a')) {
    annotate();
  } else if (press.key == Key::F1 || press.is('h') || press.is('?')) {
    show_help();
  } else {
    message_ = "that key means nothing here; h: help, Esc: back";
  }
  return Flow::Stay;
}

void Walk::show_help() {
  std::vector<std::string> lines;
  if (of_ == Of::Live) {
    lines = {"While it is recorded", ""};
    std::ranges::copy(key_lines(kLiveKeys), std::back_inserter(lines));
    lines.emplace_back();
  }
  lines.insert(lines.end(), {"The list of rows and call graphs", ""});
  std::ranges::copy(key_lines(kListKeys), std::back_inserter(lines));
  lines.insert(lines.end(), {"", "Annotated code", ""});
  std::ranges::copy(key_lines(kCodeKeys), std::back_inserter(lines));
  page_.emplace("Keys", std::move(lines));
}

void Walk::show_header() {
  std::string text;
  TextOutput out(
      OutputFile(sandbox::Output{.write = [&text](std::string_view more) -> Result<OutputFile::Reader> {
                                   text += more;
                                   return OutputFile::Reader::There;
                                 },
                                 .finish = []() -> Result<> { return Done{}; },
                                 .is_reader_gone = [] { return false; }}));
  const Session& session = sink_.session();
  write_header(out, session.layout(), session.events(), session.features(), Names::Safe, HeaderDetail::Full);
  (void)out.finish();
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  page_.emplace("Header information", std::move(lines));
}

void Walk::open_times() {
  if (times_ == nullptr || times_->empty()) {
    message_ = of_ == Of::Live ? "T: a capture has times to choose; w writes one"
                               : "T: times are known when all is read, of samples that have them";
    return;
  }
  strip_.emplace(*times_, times_place_);
}

// Nothing: the key is the list's.
std::optional<Walk::Flow> Walk::on_times_key(const KeyPress& press) {
  switch (strip_->on_key(press)) {
    case TimeStrip::Flow::Unknown:
      return std::nullopt;
    case TimeStrip::Flow::Stay:
      break;
    case TimeStrip::Flow::Leave:
      times_place_ = strip_->place();
      strip_.reset();
      break;
    case TimeStrip::Flow::Chosen:
      wanted_times_ = strip_->range();
      return Flow::ReadAgain;
    case TimeStrip::Flow::All:
      wanted_times_.emplace();
      return Flow::ReadAgain;
  }
  return Flow::Stay;
}

bool Walk::on_zoom_key(const KeyPress& press) {
  RowChoice choice = rows_.choice();
  if (press.is('t')) {
    const Thread* const thread = thread_here();
    if (choice.thread == nullptr && thread == nullptr) return true;
    choice.thread = choice.thread != nullptr ? nullptr : thread;
  } else if (press.is('d')) {
    const Function* const function = function_here();
    if (!choice.module && function == nullptr) return true;
    if (choice.module)
      choice.module.reset();
    else
      choice.module = function->module;
  } else if (press.is('k')) {
    choice.has_kernel_only = !choice.has_kernel_only;
  } else {
    return false;
  }
  zoom(choice);
  return true;
}

bool Walk::on_page_key(const KeyPress& press) {
  if (press.key == Key::F1 || press.is('h') || press.is('?')) {
    show_help();
  } else if (press.is('i')) {
    show_header();
  } else if (press.is('m')) {
    offer_actions();
  } else if (press.is('a')) {
    annotate();
  } else if (press.is('x')) {
    sandwich();
  } else if (press.is('g') || press.is('f')) {
    show_flame();
  } else if (press.is('T')) {
    open_times();
  } else if (press.is('D')) {
    shows_debug_ = !shows_debug_;
  } else if (press.is('P')) {
    message_ = "P: no file is written from here: tacho report --stdio -o FILE";
  } else if (press.is('r')) {
    message_ = "r: no scripts are run here: tacho script prints the samples for one";
  } else if (press.is('s')) {
    message_ = "s: another capture is opened by its name: tacho report -i FILE";
  } else if (press.is('S')) {
    message_ = "S: samples of one socket: tacho report --socket-filter N";
  } else {
    return false;
  }
  return true;
}

Walk::Flow Walk::on_list_key(const KeyPress& press) {
  if (strip_ && sandwiches_.empty())
    if (const auto flow = on_times_key(press)) return *flow;
  if (press.key == Key::Escape) return undo();
  if (press.is('q')) return Flow::Quit;
  if (on_page_key(press)) return Flow::Stay;
  if (!sandwiches_.empty()) {
    if (!sandwiches_.back()->browser->on_key(press))
      message_ = "that key means nothing here; h: help, Esc: back";
    return Flow::Stay;
  }
  if (on_zoom_key(press)) return Flow::Stay;
  RowChoice choice = rows_.choice();
  if (press.key == Key::Tab || press.key == Key::BackTab) {
    next_event(press.key == Key::Tab);
  } else if (press.is('/')) {
    ask_for_filter();
  } else if (press.is('L')) {
    ask_for_limit();
  } else if (press.is('o')) {
    ask_for_sort();
  } else if (press.is('<') || press.is('>')) {
    next_order(press.is('>'));
  } else if (press.is('F')) {
    choice.is_relative = !choice.is_relative;
    choose(choice);
  } else if (press.is('W')) {
    choice.counts_samples = !choice.counts_samples;
    choose(choice);
    message_ = choice.counts_samples ? "rows count samples" : "rows count periods";
  } else if (press.is('V')) {
    choice.names_modules = !choice.names_modules;
    choose(choice);
  } else if (press.key >= static_cast<Key>('0') && press.key <= static_cast<Key>('9')) {
    const std::size_t member = static_cast<std::uint32_t>(press.key) - '0';
    if (member >= sink_.profile().blocks()[choice.block].members) {
      message_ = "no such event in the group";
      return Flow::Stay;
    }
    choice.member = member;
    choose(choice);
  } else if (!browser_.on_key(press) && press.key != Key::Resize) {
    message_ = "that key means nothing here; h: help";
  }
  return Flow::Stay;
}

Walk::Flow Walk::on_key(const KeyPress& press) {
  message_.clear();
  if (press.key == Key::None || press.key == Key::Resize) return Flow::Stay;
  if (question_) {
    if (wants_yes_) {
      question_.reset();
      return is_yes(press) ? std::exchange(answered_, nullptr)({}) : Flow::Stay;
    }
    const auto answer = question_->on_key(press);
    const std::string text = question_->text();
    switch (answer) {
      case Question::Answer::None:
        break;
      case Question::Answer::Changed:
        if (answer_changed_) answer_changed_(text);
        break;
      case Question::Answer::Given: {
        const auto done = std::exchange(answered_, nullptr);
        question_.reset();
        return done(text);
      }
      case Question::Answer::Left:
        question_.reset();
        if (answer_left_) answer_left_();
        break;
    }
    return Flow::Stay;
  }
  if (menu_) {
    const auto answer = menu_->on_key(press);
    if (answer == Menu::Answer::None) return Flow::Stay;
    const std::size_t chosen = menu_->chosen();
    menu_.reset();
    return answer == Menu::Answer::Chosen ? menu_actions_.at(chosen)() : Flow::Stay;
  }
  if (page_) {
    if (!page_->on_key(press)) page_.reset();
    return Flow::Stay;
  }
  if (code_) {
    const auto flow = code_->on_key(press);
    if (flow == CodeView::Flow::Leave) code_.reset();
    if (flow == CodeView::Flow::Help) show_help();
    return Flow::Stay;
  }
  if (flame_) return on_flame_key(press);
  return on_list_key(press);
}

std::string Walk::status() const {
  if (!message_.empty()) return message_;
  if (shows_debug_) {
    const auto place = browser_.cursor();
    return fmt::format("row {} of {}, line {} of its graph; {} functions, {} rows of the profile",
                       place.row + 1, rows_.size(), place.line, sink_.functions().size(),
                       sink_.profile().rows().size());
  }
  if (!progress_.empty()) return progress_ + "  h: help  Esc: stop reading  q: leave";
  if (!sandwiches_.empty()) return "Esc: back  Enter: open  a: annotate  x: its callers and callees  h: help";
  if (strip_)
    return "Left Right: move  Space: mark  Enter: count this time  Backspace: all of it  Esc: close  h: help";
  if (of_ == Of::Live)
    return "h: help  Enter: open  /: filter  a: annotate  f: freeze  z: zero  w: write  q: leave";
  return "h: help  Enter: open  /: filter  a: annotate  t d k: zoom  x: callers  q: leave";
}

Frame Walk::draw(ScreenSize size) {
  Frame frame(size);
  if (size.height < 4 || size.width < 20) {
    frame.put(0, 0, Style::Notice, "too small");
    return frame;
  }
  if (page_) {
    page_->draw(frame);
  } else if (code_) {
    code_->draw(frame);
    if (!message_.empty()) frame.bar(size.height - std::size_t{1}, Style::Bar, message_);
  } else if (flame_) {
    flame_->draw(frame);
    if (!message_.empty()) frame.bar(size.height - std::size_t{1}, Style::Bar, message_);
  } else {
    const bool is_list = sandwiches_.empty();
    std::string title = is_list ? rows_.title(WalkedRows::Count::Yes) : sandwiches_.back()->title;
    // What was zoomed into is worth more room than the count.
    const std::string note = is_list && !note_.empty() ? ", " + note_ : std::string();
    if (is_list && columns_of(title) + note.size() > size.width) title = rows_.title(WalkedRows::Count::No);
    title += note;
    frame.bar(0, Style::Bar, title);
    std::size_t height = size.height - std::size_t{2};
    if (strip_ && is_list && height >= 2 * TimeStrip::kRows) {
      height -= TimeStrip::kRows;
      strip_->draw(frame, height + 1);
    }
    (is_list ? browser_ : *sandwiches_.back()->browser).draw(frame, 1, height);
    frame.bar(size.height - std::size_t{1}, Style::Bar, status());
  }
  if (menu_) menu_->draw(frame);
  if (question_) question_->draw(frame);
  return frame;
}

}  // namespace tacho::report
