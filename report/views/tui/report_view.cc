#include "report/views/tui/report_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "report/decode/payload.h"
#include "report/perf_text/header_text.h"
#include "report/query/field_choice.h"
#include "report/samples/session.h"
#include "report/views/tui/link.h"

namespace tacho::report {
namespace {

bool is_yes(const KeyPress& press) { return press.key == Key::Enter || press.is('y') || press.is('Y'); }

std::string function_name(const Function& function) {
  return function.name().empty() ? fmt::format("{:#x}", function.start) : std::string(function.shown_name());
}

// The action of a menu item after which the view stays.
template <class Call>
auto and_stay(Call call) {
  return [call = std::move(call)] {
    call();
    return ReportView::Flow::Stay;
  };
}

}  // namespace

// Two rows for one function: its callers and its callees.
class ReportView::SandwichRows : public BrowsedRows {
 public:
  SandwichRows(ReportRows& rows, SymbolId symbol, const std::string& name)
      : graphs_{rows.graph_of(symbol, ReportRows::Side::Callers),
                rows.graph_of(symbol, ReportRows::Side::Callees)},
        name_(name),
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
  bool has_graph(std::size_t row) const override { return graphs_.at(row).size() > 1; }
  const std::string& name() const { return name_; }
  const std::string& share() const { return share_; }
  std::vector<BrowsedNode> graph(std::size_t row) const override { return graphs_.at(row); }

 private:
  std::array<std::vector<BrowsedNode>, 2> graphs_;
  std::string name_, share_;  // of the function
  std::array<std::string, 2> names_;
};

ReportView::ReportView(const ReportTable& table, const ReportOptions& options, const CodeHits& hits,
                       Source source)
    : table_(table),
      options_(options),
      hits_(hits),
      rows_(table, options),
      browser_(rows_),
      source_(source) {}

ReportView::Memory ReportView::remember() const {
  Memory memory{.sort = rows_.sort_keys(),
                .choice = rows_.named(rows_.choice()),
                .before = {},
                .browser = list().remember(),
                .shows_debug = shows_debug_,
                .message = message_,
                .times = strip_ ? strip_->state() : strip_state_,
                .is_compared = compared_ != nullptr,
                .compares_callees = compared_ && compared_->rows->has_callees(),
                .compared_order = compared_ ? compared_->rows->order() : ComparedRows::Order::Delta};
  for (const RowChoice& one : before_) memory.before.push_back(rows_.named(one));
  return memory;
}

void ReportView::restore(const Memory& memory) {
  menu_.reset();
  shows_debug_ = memory.shows_debug;
  message_ = memory.message;
  strip_state_ = memory.times;
  if (memory.times.is_open && times_ != nullptr && !times_->empty()) strip_.emplace(*times_, memory.times);
  if (memory.sort != rows_.sort_keys()) (void)rows_.sort_by(memory.sort);
  for (const auto& one : memory.before)
    if (const auto choice = rows_.found(one)) before_.push_back(*choice);
  if (const auto choice = rows_.found(memory.choice))
    rows_.choose(*choice);
  else
    message_ = "the zoomed thread or module has no samples any more";
  browser_.changed();
  if (memory.is_compared) compare({});
  if (compared_) {
    compared_->rows->count_callees(memory.compares_callees);
    compared_->rows->order_by(memory.compared_order);
  }
  list().restore(memory.browser);
}

std::optional<std::size_t> ReportView::row_here() const {
  if (list().is_empty()) return std::nullopt;
  const std::size_t row = list().cursor().row;
  return compared_ ? compared_->rows->row_after(row) : row;
}

const Function* ReportView::function_here() const {
  if (flame_) {
    const auto id = flame_->function();
    return id ? &rows_.function(*id) : nullptr;
  }
  if (shown_list().is_empty()) return nullptr;
  if (shown_list().is_at_frame()) return &rows_.function(shown_list().function_at_cursor());
  const auto row = sandwiches_.empty() && rows_.has_function() ? row_here() : std::nullopt;
  return row ? rows_.facts(*row).function : nullptr;
}

const Thread* ReportView::thread_here() const {
  const auto row = rows_.has_comm() ? row_here() : std::nullopt;
  return row ? rows_.facts(*row).thread : nullptr;
}

std::optional<const symbolize::Module*> ReportView::module_here() const {
  if (const Function* const function = function_here()) return function->module;
  const auto row = rows_.has_module() ? row_here() : std::nullopt;
  return row ? std::optional(rows_.facts(*row).function->module) : std::nullopt;
}

// The compared capture's rows get the same choice.
void ReportView::choose(const RowChoice& choice) {
  rows_.choose(choice);
  browser_.changed();
  if (!compared_) return;
  const auto same_choice = compared_->before->same_choice(rows_);
  if (same_choice) compared_->before->choose(*same_choice);
  compared_->rows->changed(same_choice ? ComparedRows::Of::Both : ComparedRows::Of::After);
  compared_->browser->changed();
}

void ReportView::compare(const std::string& path) {
  if (readings_ == nullptr) return;
  const auto base = readings_->base(path, rows_.sort_keys());
  if (!base) return say(base.error().what);
  auto compared = std::make_unique<Compared>();
  compared->path = readings_->base_name();
  compared->before = std::make_unique<ReportRows>(**base, options_);
  if (rows_.sort_keys() != compared->before->sort_keys()) {
    const auto is_sorted = compared->before->sort_by(rows_.sort_keys());
    if (!is_sorted || !*is_sorted)
      return say(is_sorted ? "B: not with these sort keys" : is_sorted.error().what);
  }
  const RenamesOfCaptures renames = [this]() -> const RenamedFunctions* {
    const auto renamed = readings_->renames();
    return renamed ? *renamed : nullptr;
  };
  compared->rows = std::make_unique<ComparedRows>(rows_, *compared->before,
                                                  options_.matches_calls ? renames : RenamesOfCaptures());
  compared->browser = std::make_unique<Browser>(*compared->rows);
  compared_ = std::move(compared);
  rows_.use_limit(false);
  compared_->before->use_limit(false);
  choose(rows_.choice());
  if (const std::string& matched = compared_->rows->matched_text(); !matched.empty())
    message_ = "functions compared by name: " + printable(matched, options_.reading.names);
  if (compared_->rows->lacks_renames())
    message_ = "renamed functions are not looked for: " + readings_->renames().error().what;
}

void ReportView::end_comparison() {
  compared_.reset();
  rows_.use_limit(true);
  browser_.changed();
}

bool ReportView::on_compared_key(const KeyPress& press) {
  ComparedRows& rows = *compared_->rows;
  if (press.is('I')) {
    if (!rows_.has_children()) {
      message_ = "the capture has no call chains; record with -g to have them";
      return true;
    }
    rows.count_callees(!rows.has_callees());
    message_ = rows.has_callees() ? "percent of functions with callees" : "percent of functions self";
  } else if (press.is('<') || press.is('>')) {
    using Order = ComparedRows::Order;
    constexpr std::array kOrders = {Order::Before, Order::After, Order::Delta};
    const auto at = static_cast<std::size_t>(std::ranges::find(kOrders, rows.order()) - kOrders.begin());
    const std::size_t next = (at + (press.is('>') ? 1 : 2)) % kOrders.size();
    rows.order_by(kOrders.at(next));
    message_ = "sorted by " + rows.columns().at(next).header;
  } else if (press.is('L')) {
    message_ = "L: all rows are compared";
    return true;
  } else {
    return false;
  }
  compared_->browser->changed();
  return true;
}

ReportView::Flow ReportView::undo() {
  if (!sandwiches_.empty()) {
    sandwiches_.pop_back();
  } else if (!before_.empty()) {
    const RowChoice last = before_.back();
    before_.pop_back();
    choose(last);
  } else if (compared_) {
    end_comparison();
  } else if (box_) {
    wanted_box_.emplace();
    return Flow::ReadAgain;
  } else {
    ask("Do you really want to exit? (Enter, y: yes)", "", [](const std::string&) { return Flow::Quit; });
    wants_yes_ = true;
  }
  return Flow::Stay;
}

void ReportView::next_event(bool is_forward) {
  const auto& blocks = rows_.blocks();
  if (blocks.size() < 2) return say("the capture has samples of one event");
  const auto here = std::ranges::find(blocks, rows_.choice().block) - blocks.begin();
  const auto count = static_cast<std::ptrdiff_t>(blocks.size());
  RowChoice choice = rows_.choice();
  choice.block = blocks[static_cast<std::size_t>((here + (is_forward ? 1 : count - 1)) % count)];
  choice.member = 0;
  choice.order = 0;
  choose(choice);
}

void ReportView::ask(std::string label, std::string text, std::function<Flow(const std::string&)> done,
                     std::function<void(const std::string&)> changed, std::function<void()> left) {
  question_.emplace(std::move(label), std::move(text));
  wants_yes_ = false;
  answered_ = std::move(done);
  answer_changed_ = std::move(changed);
  answer_left_ = std::move(left);
}

void ReportView::offer(std::string title, std::vector<MenuItem> items) {
  std::vector<std::string> texts;
  for (const MenuItem& item : items) texts.push_back(item.text);
  menu_items_ = std::move(items);
  menu_.emplace(std::move(title), std::move(texts));
}

void ReportView::begin_with_events() {
  if (rows_.blocks().size() > 1) offer_events();
}

void ReportView::offer_events() {
  std::vector<MenuItem> items;
  for (const BlockId block : rows_.blocks()) {
    std::uint64_t samples = rows_.samples_of(block);
    char unit = ' ';
    for (const char larger : {'K', 'M', 'G'}) {
      if (samples <= 1000) break;
      samples /= 1000;
      unit = larger;
    }
    items.push_back({fmt::format("{}{} {}", samples, unit, rows_.name_of(block)), and_stay([this, block] {
                       RowChoice choice = rows_.choice();
                       choice.block = block;
                       choose(choice);
                       if (annotated_ != nullptr) open_hottest();
                     })});
  }
  offer("Available samples", std::move(items));
}

void ReportView::offer_actions() {
  std::vector<MenuItem> items;
  const auto add = [&items](std::string text, auto call) {
    items.push_back({std::move(text), and_stay(std::move(call))});
  };
  const Function* const function = function_here();
  if (function != nullptr) {
    const std::string name = function_name(*function);
    add("Annotate " + name, [this] { annotate(); });
    add("Callers and callees of " + name, [this] { sandwich(); });
  }
  const auto zoom = [this](char key) {
    return [this, press = KeyPress{.key = static_cast<Key>(key), .size = {}}] { (void)on_zoom_key(press); };
  };
  if (sandwiches_.empty()) {
    const RowChoice& choice = rows_.choice();
    if (const Thread* const thread = thread_here()) {
      const bool has_tid = rows_.has_thread_key();
      const std::string tid = has_tid ? fmt::format("({})", thread->tid) : std::string();
      add(fmt::format("Zoom {} {}{} thread", choice.thread == nullptr ? "into" : "out of", thread->comm, tid),
          zoom('t'));
      if (has_tid)
        add(fmt::format("Zoom {} process {} ('p')", choice.process ? "out of" : "into", thread->pid),
            zoom('p'));
    }
    if (const auto module = module_here(); module && *module != nullptr)
      add(fmt::format("Zoom {} {} DSO ('k': into the kernel)", choice.module ? "out of" : "into",
                      (*module)->short_name),
          zoom('d'));
  }
  add("Expand or collapse one level ('+'; 'e', 'c': the whole row)",
      [this] { (void)shown_list().on_key({.key = Key::Enter, .size = {}}); });
  if (sandwiches_.empty() && readings_ != nullptr) {
    if (function != nullptr)
      add("Samples of " + function_name(*function) + " ('v')", [this] { list_samples(true); });
    add("Samples of all rows ('l')", [this] { list_samples(false); });
    add("Heat map of a field ('M')", [this] { offer_fields(true); });
    add("Histogram of a field ('b')", [this] { offer_fields(false); });
    add(compared_ ? "End the comparison ('B')" : "Compare with another capture ('B')",
        [this] { on_compare(); });
  }
  add("Sort by other keys ('o')", [this] { ask_for_sort(); });
  if (rows_.blocks().size() > 1) add("Another event", [this] { offer_events(); });
  add("The capture's header ('i')", [this] { show_header(); });
  add("Help ('h')", [this] { show_help(); });
  items.push_back({"Exit", [] { return Flow::Quit; }});
  offer("What to do", std::move(items));
}

void ReportView::ask_for_filter() {
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

void ReportView::ask_for_limit() {
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

void ReportView::ask_for_sort() {
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
    if (compared_) compare({});
    return Flow::Stay;
  });
}

void ReportView::on_compare() {
  if (compared_) return end_comparison();
  if (readings_ == nullptr || !progress_.empty())
    return say(source_ == Source::Live ? "B: a capture can be compared; w writes one"
                                       : "B: when the capture is read");
  // The default is that of perf diff: the previous recording.
  std::string before = readings_->input() + ".old";
  if (::access(before.c_str(), R_OK) != 0) before.clear();
  ask("Earlier capture:", std::move(before), [this](const std::string& text) {
    if (!text.empty()) compare(text);
    return Flow::Stay;
  });
}

void ReportView::next_order(bool is_forward) {
  const auto columns = rows_.columns();
  if (columns.empty()) return;
  RowChoice choice = rows_.choice();
  choice.order = (choice.order + (is_forward ? 1 : columns.size() - 1)) % columns.size();
  choose(choice);
  message_ = "sorted by " + columns[choice.order].header;
}

Result<> ReportView::begin_with_code(const AnnotateOptions& options) {
  code_source_ = std::make_unique<CodeSource>(table_.session(), hits_, options.syntax);
  // All functions are kept: calls lead to others.
  std::vector<HitFunction> chosen = code_source_->functions();
  if (auto found = choose_functions(table_.session(), options, chosen); !found) return found;
  for (const HitFunction& function : chosen) begin_with_.emplace(function.module, function.start);
  annotated_ = &options;
  begin_with_events();
  if (!menu_) open_hottest();
  return Done{};
}

// Functions of the selected event.
void ReportView::open_hottest() {
  const EventBlock& events = table_.profile().blocks()[rows_.choice().block];
  missing_code_ = {};
  auto code = std::make_unique<CodeView>(*code_source_, events.leader, events.members, annotated_->code);
  for (const HitFunction* const function : code_source_->hottest_of(events.leader)) {
    if (!begin_with_.contains({function->module, function->start})) continue;
    if (code->show(*function).empty()) {
      code_ = std::move(code);
      missing_code_ = {};
      return;
    }
    missing_code_.add_function(*function, code_source_->annotate(*function, events.leader, events.members));
  }
  message_ = "no code is available for the functions with samples of this event";
  if (rows_.blocks().size() > 1) offer_events();
}

ReportView::Flow ReportView::on_code_key(const KeyPress& press) {
  switch (code_->on_key(press)) {
    case CodeView::Flow::Stay:
      break;
    case CodeView::Flow::Leave:
      code_.reset();
      if (annotated_ == nullptr) break;
      if (rows_.blocks().size() < 2) return Flow::Quit;
      offer_events();
      break;
    case CodeView::Flow::Help:
      show_help();
      break;
    case CodeView::Flow::Save:
      saved_ = {.as = SavedAs::Code, .name = code_->function().name, .text = code_->text()};
      return Flow::Save;
    case CodeView::Flow::Views:
      offer_views();
      break;
  }
  return Flow::Stay;
}

// Key P, as in perf report: the shown rows with open call graphs.
ReportView::Flow ReportView::save_rows() {
  const std::string title = sandwiches_.empty() ? title_of_rows() : title_of_callers();
  saved_ = {.as = SavedAs::Rows, .name = {}, .text = printable(title) + "\n" + shown_list().text()};
  return Flow::Save;
}

bool ReportView::write_saved(Link& link, Frame frame) {
  const std::array parts = {std::as_bytes(std::span(saved_.text))};
  const auto path = link.save(std::move(frame), saved_.as, saved_.name, parts);
  if (!path)
    message_ = "P: " + path.error().what;
  else if (*path)
    message_ = "wrote " + **path;
  return !path || *path;
}

// The menu of key r: other views of the same samples (perf has scripts there).
void ReportView::offer_views() {
  std::vector<MenuItem> items;
  const auto add = [&items](std::string text, auto call) {
    items.push_back({std::move(text), and_stay(std::move(call))});
  };
  const bool has_samples = readings_ != nullptr && source_ == Source::Capture;
  if (has_samples && code_) {
    add("Samples of " + code_->function().name, [this] { list_samples_of(code_->function()); });
  } else if (has_samples) {
    if (const Thread* const thread = thread_here(); thread != nullptr && rows_.has_thread_key())
      add(fmt::format("Samples of thread {}({})", thread->comm, thread->tid), [this, thread] {
        SampleChoice choice = samples_of_list();
        choice.tid = thread->tid;
        open_view(samples_, SampleList::read(*readings_, choice,
                                             fmt::format("{}, Thread: {}({})", title_of_list(), thread->comm,
                                                         thread->tid)));
      });
    if (const Function* const function = function_here())
      add("Samples of " + function_name(*function), [this] { list_samples(true); });
  }
  if (has_samples) {
    add("All these samples", [this] { list_samples(false); });
    add("Heat map of a field", [this] { offer_fields(true); });
    add("Histogram of a field", [this] { offer_fields(false); });
  }
  if (!code_ && sandwiches_.empty()) {
    add("Flame graph", [this] { show_flame(); });
    add("Samples over time", [this] { open_times(); });
  }
  add("The capture's header", [this] { show_header(); });
  offer("Views of these samples", std::move(items));
}

void ReportView::offer_captures() {
  if (readings_ == nullptr || source_ == Source::Live || !progress_.empty())
    return say(source_ == Source::Live ? "s: tacho top shows only its recording"
                                       : "s: when the capture is read");
  std::vector<MenuItem> items;
  for (const std::string& name : readings_->captures())
    items.push_back({name, [this, name] {
                       const auto changed = readings_->change_to(name);
                       if (changed) return Flow::ReadAgain;
                       message_ = changed.error().what;
                       return Flow::Stay;
                     }});
  if (items.empty())
    message_ = "s: no other capture is in the working directory";
  else
    offer("Another capture in this directory", std::move(items));
}

void ReportView::annotate() {
  const Function* const function = function_here();
  if (function == nullptr) return say("no function is at the cursor");
  const EventBlock& events = table_.profile().blocks()[rows_.choice().block];
  if (!code_source_) code_source_ = std::make_unique<CodeSource>(table_.session(), hits_);
  const HitFunction* found = nullptr;
  if (function->module != nullptr && function->has_symbol()) {
    if (!function->is_inlined) found = code_source_->find_function(function->module, function->start);
    // An inlined function may have code of its own too. Other modules may have other functions of that name.
    if (found == nullptr) found = code_source_->find_function(function->module, function->name());
  }
  if (found == nullptr)
    return say(fmt::format("No samples for the \"{}\" symbol. Probably appeared just in a callchain",
                           function_name(*function)));
  auto code = std::make_unique<CodeView>(*code_source_, events.leader, events.members);
  message_ = code->show(*found);
  if (message_.empty()) code_ = std::move(code);
}

void ReportView::sandwich() {
  const Function* const function = function_here();
  if (function == nullptr) return say("no function is at the cursor");
  if (!table_.profile().looks_at_stacks())
    return say("the capture has no call chains; record with -g to have them");
  auto one = std::make_shared<Sandwich>();
  one->rows = std::make_unique<SandwichRows>(rows_, function->symbol, function_name(*function));
  one->browser = std::make_unique<Browser>(*one->rows);
  one->browser->open_all(0);
  one->browser->open_all(1);
  sandwiches_.push_back(std::move(one));
}

void ReportView::show_flame() {
  if (!table_.profile().looks_at_stacks())
    return say("the capture has no call chains; record with -g to have them");
  flame_.emplace(rows_.title(ReportRows::Count::No), rows_.whole_graph());
}

ReportView::Flow ReportView::on_flame_key(const KeyPress& press) {
  const auto flow = flame_->on_key(press);
  if (flow == FlameView::Flow::Leave) flame_.reset();
  if (flow != FlameView::Flow::Unknown) return Flow::Stay;
  if (press.is('a')) {
    annotate();
  } else if (press.key == Key::F1 || press.is('h') || press.is('?')) {
    show_help();
  } else {
    message_ = "no such key here; h: help, Esc: back";
  }
  return Flow::Stay;
}

void ReportView::show_help() {
  const KeysOf here = code_                  ? KeysOf::Code
                      : samples_             ? KeysOf::Samples
                      : heat_                ? KeysOf::HeatMap
                      : hist_                ? KeysOf::Histogram
                      : flame_               ? KeysOf::Flame
                      : !sandwiches_.empty() ? KeysOf::Callers
                      : strip_               ? KeysOf::Times
                      : compared_            ? KeysOf::Compared
                                             : KeysOf::List;
  page_ = TextPage::help(help_lines(here, source_ == Source::Live));
}

void ReportView::show_header() {
  const Session& session = table_.session();
  page_.emplace("Header information", written_lines([&session](TextOutput& out) {
                  write_header(out, session.layout(), session.events(), session.features(), Names::Safe,
                               HeaderDetail::Full);
                }),
                "i");
}

void ReportView::open_times() {
  if (times_ == nullptr || times_->empty())
    return say(source_ == Source::Live ? "T: not in tacho top; w writes a capture, which has times to select"
                                       : "T: when the capture is read, if its samples have times");
  strip_.emplace(*times_, strip_state_);
}

// nullopt: the key is for the list.
std::optional<ReportView::Flow> ReportView::on_times_key(const KeyPress& press) {
  switch (strip_->on_key(press)) {
    case TimeStrip::Flow::Unknown:
      return std::nullopt;
    case TimeStrip::Flow::Stay:
      break;
    case TimeStrip::Flow::Leave:
      strip_state_ = strip_->state();
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

std::string ReportView::why_no_samples(std::string_view key) const {
  const std::string start = std::string(key) + ": ";
  if (source_ == Source::Live)
    return start + "not in tacho top; w writes a capture, whose samples can be read again";
  if (readings_ == nullptr || !progress_.empty()) return start + "when the capture is read";
  const bool has_plain_rows =
      mode_of(table_.session(), options_) == ReportMode::Samples && !options_.waits.is_asked_for &&
      !options_.switches.is_asked_for() && !options_.filter.socket && options_.filter.parallelism.empty() &&
      !options_.chains.parent && options_.filter.dsos.empty() && options_.filter.symbols.empty();
  if (!has_plain_rows) return start + "not with these options; use tacho script, heatmap or hist";
  return {};
}

// The samples of the shown rows.
SampleChoice ReportView::samples_of_list() const {
  const RowChoice& choice = rows_.choice();
  const EventBlock& events = table_.profile().blocks()[choice.block];
  SampleChoice samples;
  samples.events = {events.leader, events.members};
  if (choice.thread != nullptr && rows_.has_thread_key()) samples.tid = choice.thread->tid;
  samples.pid = choice.process;
  if (choice.thread != nullptr && !rows_.has_thread_key()) samples.comm = choice.thread->comm;
  samples.socket = choice.socket;
  if (choice.module) samples.module = path_of(*choice.module);
  samples.has_kernel_only = choice.has_kernel_only;
  samples.symbol = choice.symbol;
  samples.looks_at_callers = rows_.has_children();
  samples.box = box_;
  return samples;
}

// If the title is too long, the number of samples is left out, not the zooms.
std::string ReportView::title_of_rows(std::size_t width) const {
  std::string title = rows_.title(ReportRows::Count::Yes);
  std::string note = note_.empty() ? std::string() : ", " + note_;
  if (compared_) note += ", compared with " + compared_->path;
  if (box_) note += ", " + box_->text;
  const std::size_t note_width = columns_of(note);
  if (width != 0 && columns_of(title) + note_width > width) title = rows_.title(ReportRows::Count::No);
  if (width > note_width) title = fit_middle(title, width - note_width);
  return title + note;
}

// A long name is cut in the middle.
std::string ReportView::title_of_callers(std::size_t width) const {
  const SandwichRows& shown = *sandwiches_.back()->rows;
  const std::string share = fmt::format(": {} of all with callees", shown.share());
  return (width > share.size() ? fit_middle(shown.name(), width - share.size()) : shown.name()) + share;
}

std::string ReportView::title_of_list() const {
  // "Samples: 10  of event 'cpu-clock', Thread: x" without the number, which the view shows itself.
  std::string title = rows_.title(ReportRows::Count::No);
  if (const auto at = title.find("of event"); at != title.npos) title = "Samples " + title.substr(at);
  return box_ ? title + ", " + box_->text : title;
}

void ReportView::list_samples_of(const HitFunction& function) {
  if (message_ = why_no_samples("r"); !message_.empty()) return;
  SampleChoice choice = samples_of_list();
  choice.looks_at_callers = false;
  choice.function = {function.name, std::string(function.module->short_name), function.start};
  open_view(samples_, SampleList::read(*readings_, choice, title_of_list() + ", in " + function.name));
}

void ReportView::list_samples(bool of_row) {
  if (message_ = why_no_samples(of_row ? "v" : "l"); !message_.empty()) return;
  SampleChoice choice = samples_of_list();
  std::string title = title_of_list();
  if (of_row) {
    const auto row = row_here();
    const bool is_of_function = rows_.has_function() || list().is_at_frame();
    const Function* const function = function_here();
    if (!row || (is_of_function && function == nullptr))
      return say(compared_ ? "only the earlier capture has that row" : "no row is at the cursor");
    if (const SortKey* const key = rows_.other_key())
      return say(fmt::format("v: not for rows by '{}'; l lists the samples of all rows", key->name));
    const RowFacts facts = rows_.facts(*row);
    if (rows_.has_thread_key()) choice.tid = facts.thread->tid;
    choice.socket = rows_.socket_of(*row);
    if (rows_.has_key("comm")) {
      choice.comm = facts.comm;
      title += ", of " + std::string(facts.comm);
    }
    if (is_of_function) {
      choice.function = {
          std::string(function->name()),
          function->module == nullptr ? std::string() : std::string(function->module->short_name),
          function->start};
      title += (choice.looks_at_callers ? ", in or below " : ", in ") + function_name(*function);
    } else if (rows_.has_module()) {
      choice.module = path_of(facts.function->module);
    }
  }
  open_view(samples_, SampleList::read(*readings_, choice, std::move(title)));
}

void ReportView::offer_fields(bool is_map) {
  if (message_ = why_no_samples(is_map ? "M" : "b"); !message_.empty()) return;
  const Session& session = table_.session();
  const EventBlock& events = table_.profile().blocks()[rows_.choice().block];
  const format::Event& event = session.events()[events.leader];
  EventSchemas schemas(session.events(), session.features());
  const PayloadSchema* const schema = schemas.schema_of(events.leader);
  std::vector<MenuItem> items;
  const auto add = [&](std::string text, const std::string& field, bool is_offset = false) {
    items.push_back({std::move(text), and_stay([this, is_map, is_offset, event = event.name, field] {
                       if (is_map)
                         open_view(heat_, HeatView::read(*readings_, samples_of_list(),
                                                         {.event = event,
                                                          .field = field,
                                                          .is_offset = is_offset,
                                                          .input = readings_->input()}));
                       else
                         open_view(hist_, HistView::read(*readings_, samples_of_list(), event, field));
                     })});
  };
  const auto is_own = [&](std::string_view name) {
    return schema == nullptr ||
           std::ranges::find(schema->fields, name, &PayloadField::name) == schema->fields.end();
  };
  // The event's main value is first; fields of every tracepoint or probe (__probe_ip) are last.
  const PayloadField* const usual = schema == nullptr ? nullptr : value_field(*schema);
  std::vector<const PayloadField*> fields;
  for (std::size_t i = 0; schema != nullptr && i < schema->fields.size(); ++i) {
    const PayloadField& field = schema->fields[i];
    if (is_list(field) || (is_map && is_counted_by_value(field))) continue;
    fields.insert(&field == usual ? fields.begin() : fields.end(), &field);
  }
  std::stable_partition(fields.begin(), fields.end(), [usual](const PayloadField* field) {
    return field == usual || !field->name.starts_with("__");
  });
  for (const PayloadField* const field : fields) {
    add(field->unit.empty() ? field->name : field->name + " (" + field->unit + ")", field->name);
  }
  if (is_map) add("offset in each second", "", true);
  for (const std::string_view own : {"period", "cpu", "pid", "tid"}) {
    if (own == "cpu" && !event.attr.samples(format::abi::kSampleCpu)) continue;
    add(std::string(own) + " of the sample", (is_own(own) ? "" : "sample.") + std::string(own));
  }
  offer(is_map ? "Heat map of" : "Histogram of", std::move(items));
}

ReportView::Flow ReportView::on_heat_key(const KeyPress& press) {
  switch (heat_->on_key(press)) {
    case HeatView::Flow::Stay:
      break;
    case HeatView::Flow::Leave:
      heat_.reset();
      break;
    case HeatView::Flow::Chosen:
      wanted_box_ = heat_->box();
      return Flow::ReadAgain;
    case HeatView::Flow::Samples: {
      SampleChoice choice = samples_of_list();
      choice.box = heat_->box();
      open_view(samples_, SampleList::read(*readings_, choice, choice.box->text));
      break;
    }
    case HeatView::Flow::Explain: {
      auto page = heat_->explanation(*readings_);
      if (page)
        page_.emplace(std::move(*page));
      else
        message_ = page.error().what;
      break;
    }
    case HeatView::Flow::Unknown:
      show_help();
      break;
  }
  return Flow::Stay;
}

bool ReportView::on_zoom_key(const KeyPress& press) {
  RowChoice choice = rows_.choice();
  std::string_view missing;  // what the rows lack
  if (press.is('t')) {
    choice.thread = choice.thread == nullptr ? thread_here() : nullptr;
    if (choice.thread == rows_.choice().thread)
      missing = "t: rows have no thread; sort by it first (o: pid,symbol or comm,symbol)";
  } else if (press.is('p')) {
    const Thread* const thread = rows_.has_thread_key() ? thread_here() : nullptr;
    if (choice.process)
      choice.process.reset();
    else if (thread != nullptr)
      choice.process = thread->pid;
    else
      missing = "p: rows have no process; sort by it first (o: pid,symbol)";
  } else if (press.is('d')) {
    choice.module = choice.module ? std::nullopt : module_here();
    if (choice.module == rows_.choice().module)
      missing = "d: rows have no module; sort by it first (o: dso,symbol)";
  } else if (press.is('S')) {
    const auto row = row_here();
    choice.socket = !choice.socket && row ? rows_.socket_of(*row) : std::nullopt;
    if (choice.socket == rows_.choice().socket)
      missing = "S: rows have no socket; sort by it first (o: socket,symbol)";
  } else if (press.is('k')) {
    choice.has_kernel_only = !choice.has_kernel_only;
  } else {
    return false;
  }
  if (!missing.empty()) {
    message_ = missing;
    return true;
  }
  before_.push_back(rows_.choice());
  choose(choice);
  return true;
}

bool ReportView::on_page_key(const KeyPress& press) {
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
  } else if (press.is('r')) {
    offer_views();
  } else if (press.is('s')) {
    offer_captures();
  } else {
    return false;
  }
  return true;
}

ReportView::Flow ReportView::on_list_key(const KeyPress& press) {
  if (strip_ && sandwiches_.empty())
    if (const auto flow = on_times_key(press)) return *flow;
  if (press.key == Key::Escape || (press.is('q') && !sandwiches_.empty())) return undo();
  if (press.is('q')) return Flow::Quit;
  if (press.is('P')) return save_rows();
  if (on_page_key(press)) return Flow::Stay;
  if (!sandwiches_.empty()) {
    if (!sandwiches_.back()->browser->on_key(press)) message_ = "no such key here; h: help, Esc: back";
    return Flow::Stay;
  }
  if (compared_ && on_compared_key(press)) return Flow::Stay;
  if (on_zoom_key(press)) return Flow::Stay;
  RowChoice choice = rows_.choice();
  if (press.key == Key::Tab || press.key == Key::BackTab) {
    next_event(press.key == Key::Tab);
  } else if (press.is('B')) {
    on_compare();
  } else if (press.is('v') || press.is('l')) {
    list_samples(press.is('v'));
  } else if (press.is('M') || press.is('b')) {
    offer_fields(press.is('M'));
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
    rows_.choose(choice);
    list().graphs_changed();
  } else if (press.key >= static_cast<Key>('0') && press.key <= static_cast<Key>('9')) {
    const std::size_t member = static_cast<std::uint32_t>(press.key) - '0';
    if (member >= table_.profile().blocks()[choice.block].members) {
      message_ = "no such event in the group";
      return Flow::Stay;
    }
    choice.member = member;
    choose(choice);
  } else if (!list().on_key(press) && press.key != Key::Resize) {
    message_ = "no such key here; h: help";
  }
  return Flow::Stay;
}

ReportView::Flow ReportView::on_key(const KeyPress& press) {
  message_.clear();
  if (press.key == Key::None || press.key == Key::Resize) return Flow::Stay;
  if (question_) {
    if (wants_yes_) {
      question_.reset();
      return is_yes(press) ? std::exchange(answered_, nullptr)({}) : Flow::Stay;
    }
    const auto answer = question_->on_key(press);
    const std::string text = question_->text();
    if (answer == Question::Answer::Given || answer == Question::Answer::Closed) question_.reset();
    // The action is moved out first, since it may ask another question.
    if (answer == Question::Answer::Given) return std::exchange(answered_, nullptr)(text);
    if (answer == Question::Answer::Closed && answer_left_) answer_left_();
    if (answer == Question::Answer::Changed && answer_changed_) answer_changed_(text);
    return Flow::Stay;
  }
  if (menu_) {
    const auto answer = menu_->on_key(press);
    if (answer == Menu::Answer::None) return Flow::Stay;
    const std::size_t chosen = menu_->chosen();
    menu_.reset();
    // The action is moved out first, since it may open another menu, which replaces the items.
    if (answer == Menu::Answer::Chosen) return std::exchange(menu_items_.at(chosen).action, nullptr)();
    return annotated_ != nullptr && !code_ ? Flow::Quit : Flow::Stay;
  }
  if (page_) {
    if (!page_->on_key(press)) page_.reset();
    return Flow::Stay;
  }
  if (samples_) return on_key_of(samples_, press);
  if (heat_) return on_heat_key(press);
  if (hist_) return on_key_of(hist_, press);
  if (code_) return on_code_key(press);
  if (flame_) return on_flame_key(press);
  return on_list_key(press);
}

std::string ReportView::status() const {
  if (!message_.empty()) return message_;
  if (shows_debug_) {
    const auto at = list().cursor();
    return fmt::format("row {} of {}, line {} of its graph; {} functions, {} rows of the profile", at.row + 1,
                       rows_.size(), at.line, table_.functions().size(), table_.profile().rows().size());
  }
  if (!progress_.empty()) return progress_ + "  h: help  Esc: stop reading  q: quit";
  if (!sandwiches_.empty()) return "h: help  Enter: open  a: annotate  x: callers and callees  q: back";
  if (compared_ && !strip_)
    return "h: help  Enter: open  /: filter  < >: sort  I: with callees  B: end  q: quit";
  if (strip_) return "h: help  Space: mark  Enter: count this range  Backspace: all  q: close";
  if (source_ == Source::Live)
    return "h: help  Enter: open  /: filter  a: annotate  f: freeze  w: write  q: quit";
  return "h: help  Enter: open  /: filter  a: annotate  t d k: zoom  x: callers  q: quit";
}

Frame ReportView::draw(ScreenSize size) {
  Frame frame(size);
  if (!frame.has_room()) return frame;
  if (page_) {
    page_->draw(frame);
  } else if (samples_) {
    samples_->draw(frame);
  } else if (heat_) {
    heat_->draw(frame);
  } else if (hist_) {
    hist_->draw(frame);
  } else if (code_) {
    code_->draw(frame);
  } else if (flame_) {
    flame_->draw(frame);
  } else {
    const bool is_list = sandwiches_.empty();
    frame.bar(0, Style::Bar, is_list ? title_of_rows(size.width) : title_of_callers(size.width));
    std::size_t height = size.height - std::size_t{2};
    if (strip_ && is_list && height >= 2 * TimeStrip::kRows) {
      height -= TimeStrip::kRows;
      strip_->draw(frame, height + 1);
    }
    shown_list().draw(frame, 1, height);
    frame.last_line(fit_middle(status(), size.width));
  }
  const bool is_over_list = samples_ || heat_ || hist_ || code_ || flame_;
  if (!page_ && is_over_list && !message_.empty()) frame.last_line(fit_middle(message_, size.width));
  if (menu_) menu_->draw(frame);
  if (question_) question_->draw(frame);
  return frame;
}

}  // namespace tacho::report
