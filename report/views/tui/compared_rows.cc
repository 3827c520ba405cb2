#include "report/views/tui/compared_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "format/base/parse_text.h"
#include "report/command.h"
#include "report/compare/function_match.h"
#include "report/output/terminal.h"
#include "report/views/report/command_report.h"
#include "report/views/report/report_forms.h"
#include "report/views/report/report_sink.h"

namespace tacho::report {

namespace {

// The identities of rows of two captures: the texts of their keys, with the names of functions that the
// captures have in common although their builds differ.
class RowIdentities {
 public:
  enum class Side : std::uint8_t { Before, After };
  struct Identity {
    std::string text;
    bool is_renamed = false;  // the row's own name is another one
  };

  // Call it for all rows of both sides, then match().
  void learn(const ReportRows& rows, std::size_t row, Side side) {
    if (!has_symbol(rows, row)) return;
    FunctionToMatch& known = functions_[number_of(rows, row)];
    (side == Side::Before ? known.is_before : known.is_after) = true;
    const symbolize::Module* const module = rows.facts(row).function->module;
    if (module != nullptr)
      (side == Side::Before ? builds_before_ : builds_after_)[std::string(known.module)].insert(
          module->build_id);
  }
  void match() { matched_ = match_functions(functions_); }
  const std::string& matched_modules() const { return matched_.modules; }
  // Whether modules that were built anew have functions of the capture before alone, and of that after alone.
  bool may_have_renamed_functions() const {
    bool has_gone = false, has_appeared = false;
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
      const FunctionToMatch& function = functions_[i];
      if (matched_.same[i] != i || function.is_before == function.is_after) continue;
      if (!is_one_build(function.module, builds_before_, builds_after_))
        (function.is_before ? has_gone : has_appeared) = true;
    }
    return has_gone && has_appeared;
  }
  void rename(const RenamedFunctions& renamed) {
    std::map<ComparedFunction, std::uint32_t> appeared;
    for (std::uint32_t i = 0; i < functions_.size(); ++i)
      if (functions_[i].is_after) appeared.emplace(sources_[i], i);
    for (const auto& [old, now] : renamed.pairs) {
      const auto to = appeared.find(now);
      if (to == appeared.end()) continue;
      for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        if (functions_[i].is_after || sources_[i] != old) continue;
        matched_.same[i] = matched_.same[to->second];
        matched_.by[i] = MatchedBy::Calls;
      }
    }
  }

  Identity of(const ReportRows& rows, std::size_t row) {
    if (!matched_.is_any() || !has_symbol(rows, row)) return {rows.identity(row)};
    const std::uint32_t own = number_of(rows, row), same = matched_.same[own];
    if (same == own) return {rows.identity(row)};
    Identity identity{{}, true};
    for (auto& [key, text] : texts_of(rows, row)) {
      const KeyTexts& now = *names_[same];
      identity.text += key == "symbol" ? now.symbol : key == "dso" ? now.module : text;
      identity.text += '\n';
    }
    return identity;
  }

 private:
  // The texts of a function's keys. `symbol` begins with the level, as "[.] ".
  struct KeyTexts {
    std::string symbol, module;
    auto operator<=>(const KeyTexts&) const = default;
  };

  static bool has_symbol(const ReportRows& rows, std::size_t row) {
    if (!rows.has_function()) return false;
    const Function* const function = rows.facts(row).function;
    return function != nullptr && function->has_symbol();
  }
  static std::vector<std::pair<std::string_view, std::string>> texts_of(const ReportRows& rows,
                                                                        std::size_t row) {
    const std::string identity = rows.identity(row);
    std::string_view rest = identity;
    std::vector<std::pair<std::string_view, std::string>> texts;
    for (const KeyUse& use : rows.keys()) texts.emplace_back(use.key->name, format::take_until(rest, '\n'));
    return texts;
  }
  std::uint32_t number_of(const ReportRows& rows, std::size_t row) {
    KeyTexts names;
    for (auto& [key, text] : texts_of(rows, row)) {
      if (key == "symbol") names.symbol = std::move(text);
      if (key == "dso") names.module = std::move(text);
    }
    const auto [found, is_new] =
        numbers_.try_emplace(std::move(names), static_cast<std::uint32_t>(functions_.size()));
    if (!is_new) return found->second;
    // Keys of a map stay where they are.
    const KeyTexts& kept = found->first;
    constexpr std::size_t kLevel = 4;
    const std::string_view name = std::string_view(kept.symbol).substr(std::min(kLevel, kept.symbol.size()));
    functions_.push_back({name, kept.module, kept.symbol.size() > 1 ? kept.symbol[1] : '.'});
    const Function& function = *rows.facts(row).function;
    sources_.push_back({.name = name_of_source(function.name()),
                        .module = std::string(function.module == nullptr ? "" : function.module->short_name),
                        .is_kernel = function.level == 'k'});
    names_.push_back(&kept);
    return found->second;
  }

  std::map<KeyTexts, std::uint32_t> numbers_;
  std::vector<const KeyTexts*> names_;  // by number
  std::vector<FunctionToMatch> functions_;
  std::vector<ComparedFunction> sources_;  // the same functions, as Comparison names them
  ModuleBuilds builds_before_, builds_after_;
  MatchedFunctions matched_;
};

}  // namespace

void ComparedRows::changed(Of of) {
  of_ = of;
  rows_.clear();
  using Side = RowIdentities::Side;
  const auto for_each = [&](auto&& visit) {
    for (std::size_t row = 0; of != Of::Before && row < after_->size(); ++row)
      if (after_->share(row, has_callees_) != 0) visit(*after_, row, Side::After);
    for (std::size_t row = 0; of != Of::After && row < before_->size(); ++row)
      if (before_->share(row, has_callees_) != 0) visit(*before_, row, Side::Before);
  };
  RowIdentities identities;
  for_each([&](const ReportRows& rows, std::size_t row, Side side) { identities.learn(rows, row, side); });
  identities.match();
  matched_text_ = identities.matched_modules();
  const bool may_be_renamed = of == Of::Both && renames_ && identities.may_have_renamed_functions();
  const RenamedFunctions* const renamed = may_be_renamed ? renames_() : nullptr;
  lacks_renames_ = may_be_renamed && renamed == nullptr;
  if (renamed != nullptr) {
    identities.rename(*renamed);
    if (!renamed->text.empty())
      matched_text_ += (matched_text_.empty() ? "" : "; ") + ("renamed: " + renamed->text);
  }
  std::unordered_map<std::string, std::size_t> by_keys;
  for_each([&](const ReportRows& rows, std::size_t row, Side side) {
    const auto identity = identities.of(rows, row);
    const auto [found, is_new] = by_keys.try_emplace(identity.text, rows_.size());
    if (is_new) rows_.emplace_back();
    Row& compared = rows_[found->second];
    std::vector<std::size_t>& own = side == Side::After ? compared.after : compared.before;
    own.insert(identity.is_renamed ? own.end() : own.begin(), row);
    (side == Side::After ? compared.share_after : compared.share_before) += rows.share(row, has_callees_);
  });
  sort();
}

void ComparedRows::count_callees(bool has_callees) {
  has_callees_ = has_callees;
  changed(of_);
}

void ComparedRows::order_by(Order order) {
  order_ = order;
  sort();
}

// By absolute difference, as delta-abs of perf diff.
void ComparedRows::sort() {
  std::ranges::stable_sort(rows_, std::ranges::greater(), [this](const Row& row) {
    return order_ == Order::Delta    ? std::abs(row.delta())
           : order_ == Order::Before ? row.share_before
                                     : row.share_after;
  });
}

std::vector<BrowsedColumn> ComparedRows::columns() const {
  std::vector<BrowsedColumn> columns = {
      {.header = "Before", .width = 8, .is_right = true, .is_share = true, .spare = Spare::AfterNames},
      {.header = "After", .width = 8, .is_right = true, .is_share = true},
      {.header = "Delta", .width = 8, .is_right = true, .is_share = true}};
  const auto widths = of_ == Of::Both ? before_->key_columns() : std::vector<BrowsedColumn>();
  std::size_t key = 0;
  for (BrowsedColumn column : (of_ == Of::Before ? before_ : after_)->key_columns()) {
    if (key < widths.size()) column.width = std::max(column.width, widths[key].width);
    ++key;
    columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<BrowsedRows::Cell> ComparedRows::cells(std::size_t number) const {
  const Row& row = rows_[number];
  const auto share = [](double part, bool is_there) {
    return Cell{is_there ? fmt::format("{:7.2f}%", part) : std::string(8, ' '), part};
  };
  std::vector<Cell> cells = {share(row.share_before, !row.before.empty()),
                             share(row.share_after, !row.after.empty()),
                             {fmt::format("{:+7.2f}%", row.delta()), std::abs(row.delta())}};
  for (Cell& key : !row.after.empty() ? after_->key_cells(row.after[0]) : before_->key_cells(row.before[0]))
    cells.push_back(std::move(key));
  return cells;
}

std::string ComparedRows::identity(std::size_t row) const {
  const Row& compared = rows_[row];
  return !compared.after.empty() ? after_->identity(compared.after[0])
                                 : before_->identity(compared.before[0]);
}

namespace {

Result<> check_options(const ReportOptions& options, const std::string& base) {
  if (!options.look.separator.empty() || !options.look.widths.empty() || options.lists.records ||
      options.lists.stats || options.lists.tasks || options.lists.maps || options.header.is_alone ||
      options.has_levels || options.branches.shows_cycles || options.shows_thread_values)
    return use_error(
        "--base prints a table of two captures: leave out -t, -w, -D, --stats, --tasks, --mmaps, "
        "--header-only, --hierarchy, --total-cycles and -T");
  if (base == "-" || options.reading.session.input == "-")
    return use_error("--base compares two files; record into a file instead of a pipe");
  if (options.filter.condition != nullptr)
    return use_error(
        "--where holds for one capture, not with --base; --comm, --pid and others hold for both");
  return Done{};
}

// The keys as columns of --fields: those of --sort have perf's column IPC beside them, which is empty here.
void choose_keys(ReportOptions& options) {
  if (!options.columns.fields.empty()) return;
  constexpr std::string_view kUsual = "dso,symbol";  // those of perf diff
  const std::string sort = std::exchange(options.columns.sort, {});
  options.columns.fields = "overhead,";
  if (sort.starts_with('+'))
    options.columns.fields.append(kUsual).append(",").append(sort.substr(1));
  else
    options.columns.fields += sort.empty() ? kUsual : sort;
}

// Reads a capture into rows that can be compared.
Result<const ReportTable*> read_rows(Session& session, ReportSink& sink, TextOutput& out) {
  if (auto arranged = sink.arrange(); !arranged) return std::move(arranged.error());
  run_with_progress(session, sink, out);
  if (const auto failure = sink.failure()) return *failure;
  sink.report(session.diagnostics());
  return &sink.finish();
}

// The columns of numbers at the right of their width, names at the left, in two lines of header as perf's.
class TableText {
 public:
  TableText(const ComparedRows& rows, std::size_t room, TextOutput& out)
      : columns_(rows.columns()), out_(out) {
    std::vector<bool> are_names;
    for (const BrowsedColumn& column : columns_) {
      widths_.push_back(std::max(column.width, shown_width(column.header)));
      are_names.push_back(column.is_name);
    }
    fit_columns(widths_, are_names, kGap, room);
  }

  void write_header() {
    std::vector<std::string> names, dots;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      names.push_back(columns_[i].header);
      dots.emplace_back(widths_[i], '.');
    }
    write_line("# ", names);
    write_line("# ", dots);
    out_.text("#\n");
  }
  void write_row(const std::vector<BrowsedRows::Cell>& cells) {
    std::vector<std::string> texts;
    for (const BrowsedRows::Cell& cell : cells) texts.push_back(cell.text);
    write_line("  ", texts);
  }

 private:
  static constexpr std::size_t kGap = 2;

  void write_line(std::string_view begin, const std::vector<std::string>& texts) {
    std::string line(begin);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      const std::string text = cut_in_the_middle(texts[i], widths_[i]);
      const std::string padding(widths_[i] - std::min(widths_[i], shown_width(text)), ' ');
      line += columns_[i].is_right ? padding + text : text + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out_.text(line);
    out_.character('\n');
  }

  std::vector<BrowsedColumn> columns_;
  std::vector<std::size_t> widths_;
  TextOutput& out_;
};

// One of the two captures.
struct ComparedCapture {
  Session& session;
  const ReportTable& rows;
  const std::string& input;  // its name
  std::vector<RawColumn> columns = raw_columns(rows.columns());
};

// The rows of an event.
struct EventRows {
  const ComparedRows& rows;
  std::span<const std::size_t> shown;  // numbers in `rows`
  const ReportRows* after;             // null: no samples of this event
  const ReportRows* before;            // the same
};

class ComparisonForm {
 public:
  virtual ~ComparisonForm() = default;
  virtual void begin_rows() {}
  virtual void write(const EventRows& event) = 0;
  virtual void end_rows() {}
};

class ComparisonText : public ComparisonForm {
 public:
  ComparisonText(TextOutput& out, const ComparedCapture& before, const ComparedCapture& after,
                 const ReadingOptions& reading)
      : out_(out), before_(before), after_(after), reading_(reading) {}

  void write(const EventRows& event) override {
    write_side("# before: ", before_, event.before);
    write_side("# after:  ", after_, event.after);
    if (const std::string& matched = event.rows.matched_text(); !matched.empty())
      out_.text("# functions compared by name: " + printable(matched, reading_.names) + "\n");
    out_.text("#\n");
    TableText table(event.rows, reading_.room(), out_);
    table.write_header();
    for (const std::size_t row : event.shown) table.write_row(event.rows.cells(row));
    out_.text("\n");
  }

 private:
  void write_side(std::string_view begin, const ComparedCapture& side, const ReportRows* rows) {
    out_.text(
        fmt::format("{}{}: {}\n", begin, printable(side.input, reading_.names),
                    rows != nullptr ? rows->title(ReportRows::Count::Yes) : "no samples of this event"));
  }

  TextOutput& out_;
  ComparedCapture before_, after_;
  const ReadingOptions& reading_;
};

// The weight of rows in one capture. Of a group of events it is the first one's, by which rows are compared.
struct RowWeight {
  std::uint64_t samples = 0, period = 0;
  double percent = 0;
};
std::optional<RowWeight> weight_of(const ReportRows* rows, std::span<const std::size_t> numbers,
                                   bool has_callees) {
  if (rows == nullptr || numbers.empty()) return std::nullopt;
  const RowBlock block = rows->block();
  RowWeight sum;
  for (const std::size_t row : numbers) {
    const auto totals = block.entries->totals(block.rows[row], 0);
    sum.samples += has_callees ? totals.children.samples : totals.self.samples;
    sum.period += block.entries->value(has_callees ? Column::Kind::Children : Column::Kind::Overhead,
                                       block.rows[row], 0);
    sum.percent += rows->share(row, has_callees);
  }
  return sum;
}

class ComparisonJson : public ComparisonForm {
 public:
  ComparisonJson(TextOutput& out, const ComparedCapture& before, const ComparedCapture& after)
      : out_(out), to_(out), before_(before), after_(after) {}

  void begin_rows() override {
    to_.number("tacho_comparison", kVersion);
    describe_side("before", before_);
    describe_side("after", after_);
    to_.begin_list("reports");
  }
  void write(const EventRows& event) override {
    line_end();
    to_.begin_object("");
    for (const auto& [name, side, rows] :
         {std::tuple("before", &before_, event.before), std::tuple("after", &after_, event.after)}) {
      if (rows == nullptr)
        to_.json(name, "null");
      else
        describe_totals(to_, name, side->session, rows->block(), 0);
    }
    to_.begin_list("rows");
    for (const std::size_t row : event.shown) {
      line_end();
      describe_row(event, row);
    }
    line_end();
    to_.end_list();
    to_.end_object();
  }
  void end_rows() override {
    line_end();
    to_.end_list();
    to_.finish();
    out_.character('\n');
  }

 private:
  static constexpr std::uint64_t kVersion = 1;

  void describe_side(std::string_view name, const ComparedCapture& side) {
    to_.begin_object(name);
    describe_recording(to_, side.session, side.input);
    to_.number("lost_samples", side.session.lost_samples());
    to_.flag("incomplete", side.session.diagnostics().incomplete());
    to_.end_object();
  }
  void describe_row(const EventRows& event, std::size_t row) {
    const auto before = event.rows.row_before(row), after = event.rows.row_after(row);
    const ComparedCapture& named = after ? after_ : before_;
    const RowBlock block = (after ? event.after : event.before)->block();
    to_.begin_object("");
    describe_row_keys(to_, named.columns, named.rows.facts(), block, block.rows[after ? *after : *before]);
    describe_weight("before", weight_of(event.before, event.rows.rows_before(row), event.rows.has_callees()));
    describe_weight("after", weight_of(event.after, event.rows.rows_after(row), event.rows.has_callees()));
    to_.real("difference", event.rows.delta(row));
    to_.end_object();
  }
  void describe_weight(std::string_view name, const std::optional<RowWeight>& weight) {
    if (!weight) return to_.json(name, "null");
    to_.begin_object(name);
    to_.number("samples", weight->samples);
    to_.number("period", weight->period);
    to_.real("percent", weight->percent);
    to_.end_object();
  }
  // Between two values: the buffer may be flushed.
  void line_end() {
    out_.character('\n');
    out_.line_end();
  }

  TextOutput& out_;
  JsonFields to_;
  ComparedCapture before_, after_;
};

class ComparisonCsv : public ComparisonForm {
 public:
  ComparisonCsv(TextOutput& out, const ComparedCapture& before, const ComparedCapture& after, Names names)
      : lines_(out, names), before_(before), after_(after) {}

  void begin_rows() override {
    lines_.text("event");
    for (const RawColumn& column : after_.columns) lines_.text(column.name);
    for (const std::string of : {"before_", "after_"})
      for (const char* const name : {"samples", "period", "percent", "hundred_percent"})
        lines_.text(of + name);
    lines_.text("difference");
    lines_.end_line();
  }
  void write(const EventRows& event) override {
    const ReportRows& named = *(event.after != nullptr ? event.after : event.before);
    const ComparedCapture& side = event.after != nullptr ? after_ : before_;
    const std::string& name = side.session.events()[named.block().events->leader].name;
    for (const std::size_t row : event.shown) {
      const auto before = event.rows.row_before(row), after = event.rows.row_after(row);
      lines_.text(name);
      for (const RawColumn& column : after_.columns)
        after ? write_key(column.name, after_, *event.after, *after)
              : write_key(column.name, before_, *event.before, *before);
      write_weight(event.before, event.rows.rows_before(row), event.rows.has_callees());
      write_weight(event.after, event.rows.rows_after(row), event.rows.has_callees());
      lines_.real(event.rows.delta(row));
      lines_.end_line();
    }
  }

 private:
  // An empty cell: the capture does not have this key.
  void write_key(const std::string& name, const ComparedCapture& side, const ReportRows& rows,
                 std::size_t row) {
    const RowBlock block = rows.block();
    const auto column = std::ranges::find(side.columns, name, &RawColumn::name);
    if (column == side.columns.end() || !is_of_block(*column->use, *block.events)) return lines_.empty();
    lines_.value(raw_value(*column->use, side.rows.facts(), block.entries->facts(block.rows[row])));
  }
  void write_weight(const ReportRows* rows, std::span<const std::size_t> numbers, bool has_callees) {
    if (const auto weight = weight_of(rows, numbers, has_callees)) {
      lines_.number(weight->samples);
      lines_.number(weight->period);
      lines_.real(weight->percent);
    } else {
      for (int cell = 0; cell < 3; ++cell) lines_.empty();
    }
    rows != nullptr ? lines_.number(rows->block().totals->weights[0]) : lines_.empty();
  }

  CsvLines lines_;
  ComparedCapture before_, after_;
};

std::unique_ptr<ComparisonForm> make_form(TextOutput& out, const ComparedCapture& before,
                                          const ComparedCapture& after, const ReportOptions& options) {
  switch (options.form) {
    case ReportForm::Text:
      return std::make_unique<ComparisonText>(out, before, after, options.reading);
    case ReportForm::Json:
      return std::make_unique<ComparisonJson>(out, before, after);
    case ReportForm::Csv:
      return std::make_unique<ComparisonCsv>(out, before, after, options.reading.names);
  }
  return nullptr;
}

// Writes the events of `after`, then the events that only `before` has. True: some rows are in both captures.
bool write_events(ComparisonForm& form, ReportRows& after, ReportRows& before, const ReportOptions& options,
                  const RenamesOfCaptures& renames) {
  using Of = ComparedRows::Of;
  bool has_common = false;
  const auto choose = [](ReportRows& rows, BlockId block) {
    RowChoice choice = rows.choice();
    choice.block = block;
    rows.choose(choice);
  };
  const auto write = [&](Of of) {
    ComparedRows rows(after, before, renames);
    rows.changed(of);
    if (options.asks_for_children) rows.count_callees(true);
    std::vector<std::size_t> shown;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      has_common |= rows.row_after(row) && rows.row_before(row);
      if (rows.largest_share(row) >= options.look.percent_limit &&
          (options.look.top == 0 || shown.size() < options.look.top))
        shown.push_back(row);
    }
    form.write({rows, shown, of == Of::Before ? nullptr : &after, of == Of::After ? nullptr : &before});
  };
  const auto of_after = before.same_blocks(after), of_before = after.same_blocks(before);
  for (const BlockId block : after.blocks()) {
    choose(after, block);
    const auto same = of_after[block];
    if (same) choose(before, *same);
    write(same ? Of::Both : Of::After);
  }
  for (const BlockId block : before.blocks()) {
    if (of_before[block]) continue;
    choose(before, block);
    write(Of::Before);
  }
  return has_common;
}

Result<Shown> show_comparison(Session& session, const SessionOptions& wanted, TextOutput& out,
                              const ReportOptions& options, const std::string& base) {
  Shown shown(Symbols::Used);
  SessionOptions of_base = wanted;
  of_base.input = base;
  // --time is of the other capture, as in the view.
  of_base.filter.time_text.clear();
  // Rows of each capture, all of them: --top is for the rows of the comparison.
  ReportOptions after_options = options, base_options = options;
  after_options.look.top = base_options.look.top = 0;
  base_options.filter.time_text.clear();
  auto other = Session::open(std::move(of_base));
  if (!other) return std::move(other.error()).in("--base");
  read_head(*other);
  ReportSink after_sink(session, after_options, false), before_sink(*other, base_options, false);
  const auto read_after = read_rows(session, after_sink, out);
  if (!read_after) return Error(read_after.error());
  const auto read_before = read_rows(*other, before_sink, out);
  if (!read_before) return Error(read_before.error()).in("--base " + printable(base));
  const ReportTable &after = **read_after, &before = **read_before;
  const bool has_after = !after_sink.empty(), has_before = !before_sink.empty();
  after.functions().show_parameters_beside(before.functions());
  before.functions().show_parameters_beside(after.functions());
  const auto form =
      make_form(out, {*other, before, base}, {session, after, options.reading.session.input}, options);
  form->begin_rows();
  ReportRows rows_after(after, after_options), rows_before(before, base_options);
  rows_after.use_limit(false);
  rows_before.use_limit(false);
  std::optional<Result<RenamedFunctions>> renamed;
  const RenamesOfCaptures renames = [&]() -> const RenamedFunctions* {
    if (!renamed) {
      renamed = renamed_between(base, wanted.input, wanted, [&out](Session& read, Sink& sink) -> Result<> {
        run_with_progress(read, sink, out);
        return Done{};
      });
      if (!*renamed)
        shown.notes.push_back("tacho: renamed functions are not looked for: " + renamed->error().what);
    }
    return *renamed ? &**renamed : nullptr;
  };
  const bool has_common =
      write_events(*form, rows_after, rows_before, options, options.matches_calls ? renames : nullptr);
  for (const auto& [input, has_samples] :
       {std::pair(options.reading.session.input, has_after), std::pair(base, has_before)})
    if (!has_samples) shown.notes.push_back("tacho: " + printable(input) + ": it has no samples to compare");
  if (has_after && has_before && !has_common && rows_after.sort_keys() != "symbol")
    shown.notes.emplace_back(
        "tacho: no row is in both captures; --sort symbol compares functions by their names alone");
  other->report_missing_symbols();
  form->end_rows();
  std::ranges::move(findings_text(other->diagnostics(), base), std::back_inserter(shown.notes));
  if (other->diagnostics().incomplete()) shown.status = cli::kIncomplete;
  return shown;
}

}  // namespace

Result<cli::ExitStatus> print_comparison(ReportOptions& options, const std::string& base) {
  if (auto checked = check_options(options, base); !checked) return std::move(checked.error());
  options.reading.other_inputs = {base};
  choose_keys(options);
  options.wants_children = options.asks_for_children;
  options.graph.form = GraphForm::None;
  if (auto prepared = prepare_report(options); !prepared) return std::move(prepared.error());
  return show_session_beside(options.reading,
                             [&](Session& session, const SessionOptions& wanted, TextOutput& out) {
                               return show_comparison(session, wanted, out, options, base);
                             });
}

}  // namespace tacho::report
