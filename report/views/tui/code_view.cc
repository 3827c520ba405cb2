#include "report/views/tui/code_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/views/report/report_text.h"

namespace tacho::report {
namespace {

using Kind = CodeRow::Kind;
using CodeColumn = CodeOptions::Column;

// Heading and width of the column of numbers, by CodeOptions::Column.
struct NumberColumn {
  std::string_view heading;
  std::size_t width;
};
constexpr std::array<NumberColumn, 3> kNumberColumns = {{{"Percent", 8}, {"Samples", 9}, {"Period", 15}}};

}  // namespace

CodeSource::CodeSource(Session& session, const CodeHits& hits, AsmSyntax syntax)
    : session_(&session),
      hits_(&hits),
      functions_(hits.functions(session.resolver())),
      files_(session.resolver()),
      annotator_(session, syntax) {}

const HitFunction* CodeSource::find_function(const symbolize::Module* module, std::uint64_t address) const {
  const auto found = std::ranges::find_if(functions_, [&](const HitFunction& function) {
    return function.module == module && !function.totals.empty() &&
           (function.start == address || (function.start <= address && address < function.end));
  });
  return found == functions_.end() ? nullptr : &*found;
}

const HitFunction* CodeSource::find_function(const symbolize::Module* module, std::string_view name) const {
  const auto found = std::ranges::find_if(functions_, [&](const HitFunction& function) {
    if (module != nullptr && function.module != module) return false;
    return (function.name == name || function.linker_name == name) && !function.totals.empty();
  });
  return found == functions_.end() ? nullptr : &*found;
}

std::vector<const HitFunction*> CodeSource::hottest_of(std::uint32_t event) const {
  std::vector<const HitFunction*> functions;
  const auto by_event = hottest(functions_);
  const auto found = by_event.find(event);
  if (found == by_event.end()) return functions;
  for (const std::size_t number : found->second) functions.push_back(&functions_[number]);
  return functions;
}

HitCount CodeSource::total(std::uint32_t event) const {
  return event < hits_->totals().size() ? hits_->totals()[event] : HitCount();
}

CodeView::CodeView(CodeSource& source, std::uint32_t event, std::uint32_t members, const CodeOptions& options)
    : source_(&source), event_(event), members_(members), options_(options) {
  options_.has_colour = options_.has_bytes = false;
  options_.has_offsets = true;
  options_.names = Names::Safe;
}

std::string CodeView::show(const HitFunction& function) {
  AnnotatedCode code = source_->annotate(function, event_, members_);
  if (code.lines.empty()) return function.name + ": " + code.missing_reason;
  function_ = &function;
  code_ = std::move(code);
  message_ = code_.missing_reason;
  cursor_ = top_ = left_ = 0;
  const std::size_t notes_before = source_->source_notes().size();
  make_rows();
  go_hottest(0);
  if (message_.empty() && source_->source_notes().size() > notes_before)
    message_ = source_->source_notes()[notes_before];
  return {};
}

ShownCode CodeView::shown_code() const {
  ShownCode shown{
      .function = *function_, .code = code_, .event_name = {}, .events = {}, .totals = {}, .everything = {}};
  for (std::uint32_t event = event_; event < event_ + members_; ++event) {
    shown.events.push_back(source_->session().events()[event].name);
    shown.totals.push_back(function_->total(event));
    shown.everything.push_back(source_->total(event));
  }
  return shown;
}

void CodeView::make_rows() { rows_ = code_rows(shown_code(), source_->files(), options_); }

std::string CodeView::text() {
  return written_text(
      [this](TextOutput& out) { write_code_text(out, shown_code(), source_->files(), options_); });
}

double CodeView::percent(std::uint32_t event, const HitCount& count) const {
  const HitCount all = options_.of == ShareOf::Function ? function_->total(event) : source_->total(event);
  return options_.by == ShareBy::Period && all.period != 0 ? percent_of(count.period, all.period)
                                                           : percent_of(count.samples, all.samples);
}

double CodeView::share_of(std::size_t row) const {
  const CodeRow& one = rows_[row];
  return one.kind == Kind::Instruction ? percent(event_, code_.counts_of(one.line)[0]) : 0;
}

// Moves the cursor to the hottest instruction (0), or to the next less hot (1) or hotter one (-1).
void CodeView::go_hottest(int step) {
  std::vector<std::size_t> hot;
  for (std::size_t row = 0; row < rows_.size(); ++row)
    if (share_of(row) > 0) hot.push_back(row);
  if (hot.empty()) return;
  std::ranges::stable_sort(hot, std::greater(), [this](std::size_t row) { return share_of(row); });
  const auto here = std::ranges::find(hot, cursor_);
  if (step == 0 || here == hot.end())
    cursor_ = hot.front();
  else if (step > 0)
    cursor_ = here + 1 == hot.end() ? hot.front() : *(here + 1);
  else
    cursor_ = here == hot.begin() ? hot.back() : *(here - 1);
}

void CodeView::go_to_line(std::size_t line) {
  const auto found = std::ranges::find_if(
      rows_, [line](const CodeRow& row) { return row.kind == Kind::Instruction && row.line == line; });
  if (found != rows_.end()) cursor_ = static_cast<std::size_t>(found - rows_.begin());
}

void CodeView::follow() {
  if (rows_.empty() || rows_[cursor_].kind != Kind::Instruction) return say("no instruction to follow here");
  const CodeLine& line = code_.lines[rows_[cursor_].line];
  const DisassembledInstruction& instruction = line.instruction;
  if (instruction.kind == InstructionKind::Return) {
    if (go_back() == Flow::Leave) say("the caller is not known; Esc leaves");
    return;
  }
  const bool is_jump = instruction.kind == InstructionKind::Jump;
  if ((!is_jump && instruction.kind != InstructionKind::Call) || !instruction.target)
    return say("only jumps and calls with a known target can be followed");
  const std::uint64_t offset = *instruction.target - code_.address;
  if (is_jump && offset < code_.size) {
    const auto target = std::ranges::lower_bound(code_.lines, offset, {}, &CodeLine::offset);
    if (target != code_.lines.end()) go_to_line(static_cast<std::size_t>(target - code_.lines.begin()));
    return;
  }
  std::string_view name = line.target_name;  // "<malloc@plt>"
  if (name.starts_with('<')) name.remove_prefix(1);
  const bool is_of_other_module = name.find("@plt") != std::string_view::npos;
  name = name.substr(0, name.find_first_of("@>+"));
  const HitFunction* called = source_->find_function(function_->module, *instruction.target);
  if (called == nullptr && !name.empty())
    called = source_->find_function(is_of_other_module ? nullptr : function_->module, name);
  if (called == nullptr)
    return say(fmt::format("No samples for the \"{}\" symbol.", name.empty() ? "called" : name));
  const Shown here{function_, cursor_};
  if (std::string reason = show(*called); !reason.empty())
    message_ = std::move(reason);
  else
    before_.push_back(here);
}

// Shows the function with the call that was followed last. Leave: no call was followed.
CodeView::Flow CodeView::go_back() {
  if (before_.empty()) return Flow::Leave;
  const Shown last = before_.back();
  before_.pop_back();
  (void)show(*last.function);
  cursor_ = std::min(last.cursor, rows_.size() - 1);
  return Flow::Stay;
}

void CodeView::next_function(int step) {
  const auto functions = source_->hottest_of(event_);
  const auto here = std::ranges::find(functions, function_);
  if (here == functions.end()) return;
  const std::ptrdiff_t at = here - functions.begin() + step;
  if (at < 0 || at >= std::ssize(functions))
    return say(step > 0 ? "this is the function with least samples" : "this is the hottest function");
  if (std::string reason = show(*functions[static_cast<std::size_t>(at)]); !reason.empty())
    message_ = std::move(reason);
}

void CodeView::search(bool is_forward, bool begins_here) {
  if (searched_.empty() || rows_.empty()) return;
  for (std::size_t i = begins_here ? 0 : 1; i <= rows_.size(); ++i) {
    const std::size_t row = is_forward ? (cursor_ + i) % rows_.size()
                                       : (cursor_ + rows_.size() - i % rows_.size()) % rows_.size();
    if (rows_[row].text.find(searched_) == std::string::npos) continue;
    cursor_ = row;
    return;
  }
  message_ = "\"" + searched_ + "\" is not here";
}

bool CodeView::on_option_key(const KeyPress& press) {
  const auto rebuild = [this] {
    const std::size_t line = rows_.empty() ? 0 : rows_[cursor_].line;
    make_rows();
    cursor_ = std::min(cursor_, rows_.empty() ? 0 : rows_.size() - 1);
    go_to_line(line);
  };
  if (press.is('s')) {
    options_.has_source = !options_.has_source;
    rebuild();
  } else if (press.is('o')) {
    has_addresses_ = !has_addresses_;
  } else if (press.is('f')) {
    has_full_address_ = !has_full_address_;
    options_.has_offsets = !has_full_address_;
    rebuild();
  } else if (press.is('j')) {
    has_arrows_ = !has_arrows_;
  } else if (press.is('J')) {
    has_jump_counts_ = !has_jump_counts_;
  } else if (press.is('k')) {
    has_numbers_ = !has_numbers_;
  } else if (press.is('l')) {
    shows_location_ = !shows_location_;
  } else if (press.is('t')) {
    options_.column = options_.column == CodeColumn::Percent  ? CodeColumn::Period
                      : options_.column == CodeColumn::Period ? CodeColumn::Samples
                                                              : CodeColumn::Percent;
  } else if (press.is('p')) {
    options_.of = options_.of == ShareOf::Function ? ShareOf::Everything : ShareOf::Function;
  } else if (press.is('b')) {
    options_.by = options_.by == ShareBy::Period ? ShareBy::Samples : ShareBy::Period;
  } else if (press.is('w')) {
    options_.has_full_paths = !options_.has_full_paths;
    rebuild();
  } else if (press.is('O')) {
    has_addresses_ = true;
    constexpr std::array kShown = {"offsets of jump targets", "offsets of jump targets and calls",
                                   "offsets of all instructions"};  // by Addresses
    const std::size_t next = (static_cast<std::size_t>(addresses_) + 1) % kShown.size();
    addresses_ = static_cast<Addresses>(next);
    message_ = kShown.at(next);
  } else if (press.is('T')) {
    message_ = "T: types of data are not shown";
  } else if (press.is('B')) {
    message_ = "B: branch counters are not shown";
  } else if (press.is('c')) {
    if (code_.has_branches)
      has_cycle_range_ = !has_cycle_range_;
    else
      message_ = "the capture has no branch stacks, which cycles are of; record with -j any to have them";
  } else {
    return false;
  }
  return true;
}

CodeView::Flow CodeView::on_key(const KeyPress& press) {
  message_.clear();
  if (question_) {
    const auto answer = question_->on_key(press);
    if (answer == Question::Answer::Given) {
      searched_ = question_->text();
      search(searches_forward_, false);
    }
    if (answer == Question::Answer::Given || answer == Question::Answer::Closed) question_.reset();
    return Flow::Stay;
  }
  if (const auto rows = lines_moved(press, std::max<std::size_t>(height_, 2) - 1)) {
    cursor_ = moved(cursor_, *rows, rows_.size());
    return Flow::Stay;
  }
  switch (press.key) {
    case Key::Home:
      cursor_ = 0;
      break;
    case Key::End:
      cursor_ = rows_.empty() ? 0 : rows_.size() - 1;
      break;
    case Key::Tab:
      go_hottest(1);
      break;
    case Key::BackTab:
      go_hottest(-1);
      break;
    case Key::Enter:
    case Key::Right:
    case Key::DoubleClick:
      follow();
      break;
    case Key::Click:
      if (press.row >= first_ && press.row < first_ + height_)
        cursor_ = moved(top_, static_cast<std::ptrdiff_t>(press.row - first_), rows_.size());
      break;
    case Key::F1:
      return Flow::Help;
    case Key::Left:
    case Key::Escape:
      return go_back();
    default:
      if (press.is('/') || press.is('?')) {
        searches_forward_ = press.is('/');
        question_.emplace(searches_forward_ ? "Search:" : "Search upwards:", "");
      } else if (press.is('H')) {
        go_hottest(0);
      } else if (press.is('<')) {
        next_function(-1);
      } else if (press.is('>')) {
        next_function(1);
      } else if (press.is('n')) {
        search(searches_forward_, false);
      } else if (press.is('h')) {
        return Flow::Help;
      } else if (press.is('P')) {
        return Flow::Save;
      } else if (press.is('r')) {
        return Flow::Views;
      } else if (press.is('q')) {
        return go_back();
      } else if (!on_option_key(press)) {
        message_ = "no such key here; h: help";
      }
  }
  return Flow::Stay;
}

std::string CodeView::number(std::uint32_t event, const HitCount& count) const {
  if (count.samples == 0) return {};
  if (options_.column == CodeColumn::Samples) return fmt::format("{}", count.samples);
  if (options_.column == CodeColumn::Period) return fmt::format("{}", count.period);
  return fmt::format("{:.2f}", percent(event, count));
}

std::size_t CodeView::jumps_to(std::uint64_t offset) const {
  return static_cast<std::size_t>(std::ranges::count_if(code_.lines, [&](const CodeLine& line) {
    return line.instruction.kind == InstructionKind::Jump && line.instruction.target &&
           *line.instruction.target - code_.address == offset;
  }));
}

std::string CodeView::address_column(const CodeRow& row) const {
  if (row.kind == Kind::Source) return has_numbers_ ? fmt::format("{}", row.source_line) : std::string();
  if (row.kind == Kind::Function || !has_addresses_) return {};
  const CodeLine& line = code_.lines[row.line];
  const bool needs_jumps = addresses_ != Addresses::All || has_jump_counts_;
  const std::size_t jumps = needs_jumps ? jumps_to(line.offset) : 0;
  const bool is_shown =
      addresses_ == Addresses::All || jumps > 0 ||
      (addresses_ == Addresses::OfTargetsAndCalls && line.instruction.kind == InstructionKind::Call);
  if (!is_shown) return {};
  const std::uint64_t address = has_full_address_ ? code_.address + line.offset : line.offset;
  return has_jump_counts_ && jumps > 0 ? fmt::format("{} {:x}", jumps, address)
                                       : fmt::format("{:x}", address);
}

// The branch columns of a line, with the width of their heading.
std::string CodeView::branches_of(const CodeLine& line) const {
  const BranchHits& hits = line.branches;
  const auto count = [](std::uint64_t value) {
    return value == 0 ? std::string(8, ' ') : fmt::format("{:8}", value);
  };
  const double mean =
      hits.timed == 0 ? 0 : static_cast<double>(hits.cycles) / static_cast<double>(hits.timed);
  std::string cycles;
  if (hits.timed != 0 && has_cycle_range_)
    cycles = fmt::format("{:.0f} ({}-{})", mean, hits.least_cycles, hits.most_cycles);
  else if (hits.timed != 0)
    cycles = fmt::format("{:.1f}", mean);
  const std::string per_cycle = !code_.has_cycles     ? std::string()
                                : line.per_cycle == 0 ? std::string(6, ' ')
                                                      : fmt::format("{:6.2f}", line.per_cycle);
  return count(hits.taken) + count(hits.mispredicted) + count(hits.entered) +
         fmt::format("{:>{}}{} ", cycles, has_cycle_range_ ? 19 : 8, per_cycle);
}

std::string CodeView::status() const {
  if (!message_.empty()) return message_;
  if (shows_location_ && !rows_.empty()) {
    const CodeLine& line = code_.lines[rows_[cursor_].line];
    return line.file.empty() ? "no line is known here" : fmt::format("{}:{}", line.file, line.line);
  }
  return "h: help  Tab: hottest  Enter: follow  s: source  t: percent  /: search  q: back";
}

void CodeView::draw(Frame& frame) {
  const std::string_view kind = options_.of == ShareOf::Function ? "local" : "global";
  const std::string_view by = options_.by == ShareBy::Period ? "period" : "hits";
  const std::string end =
      fmt::format("  {}  [Percent: {} {}]{}{}", function_->module->path, kind, by,
                  code_.has_cycles ? "  " : "", code_.has_cycles ? cycles_text(code_) : "");
  constexpr std::size_t kLeastName = 20;
  const std::size_t room = frame.size.width - std::min<std::size_t>(frame.size.width, columns_of(end));
  frame.bar(0, Style::Bar, fit_middle(function_->name, std::max(room, kLeastName)) + end);
  const std::size_t height = frame.size.height;
  height_ = height > 3 ? height - 3 : 1;
  first_ = 2;
  // One step beyond the edge scrolls by a line; a farther cursor is shown in the middle.
  const bool is_near = cursor_ + 1 >= top_ && cursor_ <= top_ + height_;
  if (!is_near) top_ = cursor_ - std::min(cursor_, height_ / 2);
  if (cursor_ < top_) top_ = cursor_;
  if (cursor_ >= top_ + height_) top_ = cursor_ + 1 - height_;
  const auto [what, cell] = kNumberColumns.at(static_cast<std::size_t>(options_.column));
  frame.rows[1].fill = Style::Heading;
  std::size_t x = 0;
  for (std::uint32_t member = 0; member < members_; ++member, x += cell)
    frame.put_text(1, x, Style::Heading, fmt::format("{:>{}}", what, cell - 1));
  const std::size_t branches_at = x;
  if (code_.has_branches) {
    const std::string head = fmt::format("{:>8}{:>8}{:>8}{:>{}}{} ", "Taken", "Mispred", "Entered",
                                         has_cycle_range_ ? "Cycles (min-max)" : "Cycles",
                                         has_cycle_range_ ? 19 : 8, code_.has_cycles ? "   IPC" : "");
    frame.put_text(1, x, Style::Heading, head);
    x += head.size();
  }
  frame.put_text(1, x, Style::Heading, "│");
  std::size_t width = 4;
  for (std::size_t i = 0; i < height_ && top_ + i < rows_.size(); ++i)
    width = std::max(width, address_column(rows_[top_ + i]).size());
  for (std::size_t i = 0; i < height_ && top_ + i < rows_.size(); ++i) {
    const CodeRow& row = rows_[top_ + i];
    const std::size_t at = first_ + i;
    const bool is_code = row.kind == Kind::Instruction;
    if (is_code) {
      const double share = share_of(top_ + i);
      const Style style = share >= 5 ? Style::High : share > 0.5 ? Style::Medium : Style::Normal;
      for (std::uint32_t member = 0; member < members_; ++member)
        frame.put_text(
            at, member * cell, style,
            fmt::format("{:>{}}", number(event_ + member, code_.counts_of(row.line)[member]), cell - 1));
    }
    if (is_code && code_.has_branches)
      frame.put_text(at, branches_at, Style::Normal, branches_of(code_.lines[row.line]));
    frame.put_text(at, x, Style::Normal, "│");
    const std::string left = address_column(row);
    frame.put_text(at, x + 1 + width - std::min(width, left.size()), is_code ? Style::Address : Style::Quiet,
                   left);
    std::size_t column = x + width + 2;
    if (has_arrows_) {
      frame.put_text(at, column, Style::Jump, row.arrows);
      column += columns_of(row.arrows);
    }
    frame.put_text(at, column,
                   row.kind == Kind::Function ? Style::Heading
                   : is_code                  ? Style::Normal
                                              : Style::Quiet,
                   from_column(row.text, left_));
    frame.rows[at].is_selected = top_ + i == cursor_;
  }
  frame.last_line(status());
  if (question_) question_->draw(frame);
}

}  // namespace tacho::report
