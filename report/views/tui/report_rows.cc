#include "report/views/tui/report_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/samples/event_choice.h"
#include "report/views/report/call_graph_text.h"
#include "report/views/tui/sample_choice.h"

namespace tacho::report {
namespace {

using ColumnKind = Column::Kind;

bool is_share(ColumnKind kind) {
  return kind != ColumnKind::Samples && kind != ColumnKind::Period && kind != ColumnKind::Key;
}

std::string stripped(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

ReportRows::ReportRows(const ReportTable& table, const ReportOptions& options)
    : table_(&table),
      options_(&options),
      text_(table.text_options()),
      columns_(table.columns()),
      sort_(options.columns.sort),
      tree_(table.functions().functions(), options.graph.key) {
  text_.has_colour = false;
  text_.room = 0;
  choice_.is_relative = options.look.is_relative;
  choice_.percent_limit = options.look.percent_limit;
  choice_.symbol = options.filter.symbol_part;
  const Profile& profile = table.profile();
  for (const BlockId block : profile.blocks().ids())
    if (samples_of(block) > 0) blocks_.push_back(block);
  if (sort_.empty()) {
    for (const Column& column : columns_.sorted) {
      if (column.kind != ColumnKind::Key) continue;
      if (!sort_.empty()) sort_ += ',';
      sort_ += columns_.keys[column.key].key->name;
    }
  }
  index_ = std::make_unique<EntryIndex>(columns_.keys, table.facts(), table.functions());
  if (blocks_.empty()) return;
  choice_.block = blocks_.front();
  count_entries();
}

std::uint64_t ReportRows::samples_of(BlockId block) const {
  const Profile& profile = table_->profile();
  std::uint64_t samples = 0;
  for (const RowId row : profile.rows_of(block))
    for (const Weight& weight : profile.weights(profile.rows()[row])) samples += weight.samples;
  return samples;
}

std::string ReportRows::name_of(BlockId block) const {
  const EventBlock& events = table_->profile().blocks()[block];
  std::string name;
  for (std::uint32_t member = 0; member < events.members; ++member)
    name += (member == 0 ? "" : ", ") + table_->session().events()[events.leader + member].name;
  return name;
}

void ReportRows::choose(const RowChoice& choice) {
  const RowChoice before = std::exchange(choice_, choice);
  const bool is_counted_anew =
      before.block != choice.block || before.thread != choice.thread || before.module != choice.module ||
      before.process != choice.process || before.has_kernel_only != choice.has_kernel_only ||
      before.socket != choice.socket || before.counts_samples != choice.counts_samples ||
      before.member != choice.member;
  if (is_counted_anew) return count_entries();
  if (before.is_relative != choice.is_relative) totals_.weights.clear();
  if (before.order != choice.order) return order();
  filter();
}

void ReportRows::use_limit(bool has_limit) {
  has_limit_ = has_limit;
  if (entries_) filter();
}

Result<bool> ReportRows::sort_by(const std::string& keys) {
  auto columns = table_->columns_of(keys);
  if (!columns) return std::move(columns.error());
  if (!*columns) return false;
  entries_.reset();
  columns_ = std::move(**columns);
  sort_ = keys;
  choice_.order = 0;
  if (socket_key() == nullptr) choice_.socket.reset();
  if (!has_thread_key()) choice_.process.reset();
  index_ = std::make_unique<EntryIndex>(columns_.keys, table_->facts(), table_->functions());
  count_entries();
  return true;
}

bool ReportRows::has_key_of(KeyOf of) const {
  return std::ranges::any_of(columns_.keys, [of](const KeyUse& use) { return use.key->of == of; });
}

bool ReportRows::has_key(std::string_view name) const {
  return std::ranges::any_of(columns_.keys, [name](const KeyUse& use) { return use.key->name == name; });
}

const SortKey* ReportRows::other_key() const {
  for (const KeyUse& use : columns_.keys) {
    const std::string_view name = use.key->name;
    const bool is_known = use.key->of == KeyOf::Comm || use.key->of == KeyOf::Thread || name == "dso" ||
                          name == "symbol" || name == "socket";
    if (!is_known) return use.key;
  }
  return nullptr;
}

const KeyUse* ReportRows::socket_key() const {
  const auto use =
      std::ranges::find_if(columns_.keys, [](const KeyUse& one) { return one.key->name == "socket"; });
  return use == columns_.keys.end() ? nullptr : &*use;
}

std::optional<std::uint32_t> ReportRows::socket_of(std::size_t row) const {
  const KeyUse* const use = socket_key();
  if (use == nullptr) return std::nullopt;
  return static_cast<std::uint32_t>(facts(row).facts[use->fact]);
}

bool ReportRows::is_in_module(const Function& function) const {
  return (!choice_.module || function.module == *choice_.module) &&
         (!choice_.has_kernel_only || is_kernel(function.module));
}

void ReportRows::count_entries() {
  EntryOptions options = table_->entry_options(choice_.block);
  options.first_member = choice_.member;
  // Without children, a zoom into a module leaves samples of other modules out. With children they are kept,
  // since functions of the module may have called them; filter() then hides the rows of other modules, as
  // perf does.
  const bool refuses_modules = !text_.has_children && (choice_.module || choice_.has_kernel_only);
  if (choice_.thread != nullptr || choice_.process || choice_.socket || refuses_modules) {
    options.filtered_by = [this, refuses_modules, before = std::move(options.filtered_by), choice = choice_,
                           socket = socket_key(), by_thread = has_thread_key()](
                              const ProfileRow& row, const Function& function) -> FilterBits {
      FilterBits refused = before ? before(row, function) : FilterBits{0};
      if (choice.thread != nullptr &&
          (by_thread ? row.thread != choice.thread : row.comm() != choice.thread->comm))
        refused |= kByThread;
      if (choice.process && (row.thread == nullptr || row.thread->pid != *choice.process))
        refused |= kByThread;
      if (choice.socket && socket != nullptr && table_->profile().facts(row)[socket->fact] != *choice.socket)
        refused |= kBySocket;
      if (refuses_modules && !is_in_module(function)) refused |= kByModule;
      return refused;
    };
  }
  is_counted_ = [filtered_by = options.filtered_by, is_left_out = options.is_left_out](
                    const ProfileRow& row, const Function& function) {
    return !(is_left_out && is_left_out(row)) && !(filtered_by && filtered_by(row, function) != 0);
  };
  if (choice_.counts_samples)
    options.weighed_by = [](const ProfileRow&, const Weight& weight) {
      return Weight{weight.samples, weight.samples};
    };
  entries_.reset();
  entries_ = std::make_unique<Entries>(table_->names(), choice_.block, *index_, std::move(options));
  const ReportCells cells(text_, columns_, table_->facts());
  const EventBlock& events = table_->profile().blocks()[choice_.block];
  cells_.clear();
  for (const Column& column : columns_.shown)
    if (cells.is_of(column, events.leader, entries_->members()))
      cells_.push_back(cells.cell_of(column, entries_->members(), 0));
  for (const EntryId entry : entries_->ids()) {
    const RowFacts facts = entries_->facts(entry);
    for (report::Cell& cell : cells_)
      if (cell.column.kind == ColumnKind::Key)
        cell.width = std::max(cell.width, cells.width_of(cell.column, facts));
  }
  totals_.weights.clear();
  order();
}

void ReportRows::order() {
  std::vector<Column> columns = columns_.sorted;
  if (choice_.order != 0 && choice_.order < cells_.size()) {
    const Column first = cells_[choice_.order].column;
    std::erase(columns, first);
    columns.insert(columns.begin(), first);
  }
  sorted_ = entries_->sorted(columns);
  filter();
}

void ReportRows::filter() {
  if (totals_.weights.empty())
    for (std::size_t member = 0; member < entries_->members(); ++member)
      totals_.weights.push_back(entries_->whole(member, choice_.is_relative));
  rows_ = sorted_;
  if (text_.has_children && (choice_.module || choice_.has_kernel_only)) {
    std::erase_if(rows_, [this](EntryId entry) { return !is_in_module(*entries_->facts(entry).function); });
    if (choice_.is_relative) {
      for (std::size_t member = 0; member < entries_->members(); ++member) {
        totals_.weights[member] = 0;
        for (const EntryId entry : rows_)
          totals_.weights[member] += entries_->value(ColumnKind::Overhead, entry, member);
      }
    }
  }
  const double limit = has_limit_ ? choice_.percent_limit : 0;
  if (!choice_.symbol.empty() || limit > 0) {
    std::erase_if(rows_, [this, limit](EntryId entry) {
      if (!choice_.symbol.empty() &&
          entries_->facts(entry).function->shown_name().find(choice_.symbol) == std::string_view::npos)
        return true;
      return percent_of(entries_->value(weight(), entry, 0), totals_.weights[0]) < limit;
    });
  }
  if (options_->look.top != 0 && rows_.size() > options_->look.top) rows_.resize(options_->look.top);
}

std::string ReportRows::title(Count count) const {
  const auto [samples, total] =
      table_->title(table_->profile().blocks()[choice_.block], *entries_, choice_.is_relative);
  std::string text = samples;
  if (count == Count::Yes) text += ", " + total;
  if (choice_.thread != nullptr) {
    text += ", Thread: " + std::string(choice_.thread->comm);
    if (has_thread_key()) text += fmt::format("({})", choice_.thread->tid);
  }
  if (choice_.process) text += fmt::format(", Process: {}", *choice_.process);
  if (choice_.module)
    text += ", DSO: " + std::string(*choice_.module == nullptr ? std::string_view("[unknown]")
                                                               : (*choice_.module)->short_name);
  if (choice_.has_kernel_only) text += ", DSO: [kernel]";
  if (choice_.socket) text += fmt::format(", Processor Socket: {}", *choice_.socket);
  if (!choice_.symbol.empty()) text += ", Symbol: " + choice_.symbol;
  if (choice_.counts_samples) text += ", by samples";
  if (choice_.is_relative) text += ", relative";
  return text;
}

std::vector<BrowsedColumn> ReportRows::columns() const {
  const ReportCells cells(text_, columns_, table_->facts());
  std::vector<BrowsedColumn> columns;
  for (const report::Cell& cell : cells_) {
    const bool is_key = cell.column.kind == ColumnKind::Key;
    const PayloadField* const field = is_key ? columns_.keys[cell.column.key].field : nullptr;
    columns.push_back({.header = cell.header,
                       .width = cell.width,
                       .is_name = is_key && (field == nullptr || field->kind == format::FieldKind::Text),
                       .is_right = cell.is_right,
                       .is_share = is_share(cell.column.kind),
                       .spare = is_key || columns.empty() ? Spare::No : Spare::BeforeNames});
  }
  return columns;
}

std::vector<BrowsedRows::Cell> ReportRows::cells(std::size_t row) const {
  const ReportCells texts(text_, columns_, table_->facts());
  const EntryId entry = rows_[row];
  const RowFacts facts = entries_->facts(entry);
  std::vector<Cell> cells;
  for (const report::Cell& cell : cells_) {
    const ColumnKind kind = cell.column.kind;
    if (kind == ColumnKind::Key) {
      const std::string text = stripped(texts.key(cell, facts));
      cells.push_back({text, 0, text.starts_with("[k] ") ? Style::Kernel : Style::Normal});
      continue;
    }
    std::vector<std::uint64_t> values;
    for (std::size_t member = 0; member < entries_->members(); ++member)
      values.push_back(entries_->value(kind, entry, member));
    const auto totals = totals_.values_of(kind);
    cells.push_back({texts.numbers(cell, values, totals),
                     is_share(kind) && !totals.empty() ? percent_of(values[0], totals[0]) : 0});
  }
  return cells;
}

// The texts of a row's keys.
std::string ReportRows::identity(std::size_t row) const {
  const ReportCells texts(text_, columns_, table_->facts());
  const RowFacts facts = entries_->facts(rows_[row]);
  std::string identity;
  for (const report::Cell& cell : cells_)
    if (cell.column.kind == ColumnKind::Key)
      identity.append(stripped(texts.key(cell, facts))).append(1, '\n');
  return identity;
}

ReportRows::NamedChoice ReportRows::named(const RowChoice& choice) const {
  const std::uint32_t leader = table_->profile().blocks()[choice.block].leader;
  NamedChoice named{.choice = choice, .leader = leader, .thread = {}, .module = {}};
  named.choice.thread = nullptr;
  named.choice.module.reset();
  if (choice.thread != nullptr) named.thread.emplace(choice.thread->tid, choice.thread->comm);
  if (choice.module) named.module = path_of(*choice.module);
  return named;
}

std::optional<RowChoice> ReportRows::found(const NamedChoice& named) const {
  const Profile& profile = table_->profile();
  RowChoice choice = named.choice;
  const auto block = std::ranges::find(profile.blocks(), named.leader, &EventBlock::leader);
  if (block == profile.blocks().end()) return std::nullopt;
  choice.block = id_of<BlockId>(static_cast<std::size_t>(block - profile.blocks().begin()));
  if (std::ranges::find(blocks_, choice.block) == blocks_.end()) return std::nullopt;
  if (!named.thread && !named.module) return choice;
  const NamedRows& names = table_->names();
  for (const RowId row : profile.rows_of(choice.block)) {
    const ProfileRow& one = profile.rows()[row];
    if (named.thread && one.thread != nullptr && one.thread->tid == named.thread->first &&
        one.thread->comm == named.thread->second)
      choice.thread = one.thread;
    const symbolize::Module* const module = table_->functions()[names[row].function].module;
    if (named.module && path_of(module) == *named.module) choice.module = module;
  }
  if ((named.thread && choice.thread == nullptr) || (named.module && !choice.module)) return std::nullopt;
  return choice;
}

double ReportRows::share(std::size_t row, bool has_callees) const {
  return percent_of(entries_->value(has_callees ? weight() : Column::Kind::Overhead, rows_[row], 0),
                    totals_.weights[0]);
}

// Of values for each shown column, those of sort keys.
template <class Value>
std::vector<Value> ReportRows::of_keys(std::vector<Value> all) const {
  std::vector<Value> keys;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (cells_[i].column.kind == ColumnKind::Key) keys.push_back(std::move(all[i]));
  return keys;
}

std::vector<BrowsedColumn> ReportRows::key_columns() const { return of_keys(columns()); }
std::vector<BrowsedRows::Cell> ReportRows::key_cells(std::size_t row) const { return of_keys(cells(row)); }

IdVector<BlockId, std::optional<BlockId>> ReportRows::same_blocks(const ReportRows& other) const {
  const auto leader = [](const ReportRows& rows, BlockId block) {
    return rows.table_->session().events()[rows.table_->profile().blocks()[block].leader].name;
  };
  const auto names = [](const ReportRows& rows, const auto& name) {
    IdVector<BlockId, std::string> all;
    for (const BlockId block : rows.table_->profile().blocks().ids()) all.push_back(name(rows, block));
    return all;
  };
  IdVector<BlockId, std::optional<BlockId>> same;
  same.resize(other.table_->profile().blocks().size());
  std::set<BlockId> matched;
  const auto match_by = [&](const auto& name) {
    const auto mine = names(*this, name), theirs = names(other, name);
    for (const BlockId block : same.ids())
      for (const BlockId one : mine.ids())
        if (!same[block] && !matched.contains(one) && mine[one] == theirs[block]) {
          same[block] = one;
          matched.insert(one);
        }
  };
  match_by([](const ReportRows& rows, BlockId block) { return rows.name_of(block); });
  match_by(leader);
  match_by([&leader](const ReportRows& rows, BlockId block) {
    return std::string(without_modifiers(leader(rows, block)));
  });
  for (auto& one : same)
    if (one && std::ranges::find(blocks_, *one) == blocks_.end()) one.reset();
  return same;
}

std::optional<RowChoice> ReportRows::same_choice(const ReportRows& other) const {
  NamedChoice named = other.named(other.choice());
  const auto block = same_blocks(other)[other.choice().block];
  if (!block) return std::nullopt;
  if (named.choice.process) return std::nullopt;  // another recording has other processes
  RowChoice choice = named.choice;
  choice.block = *block;
  const NamedRows& names = table_->names();
  for (const RowId row : table_->profile().rows_of(choice.block)) {
    const ProfileRow& one = table_->profile().rows()[row];
    if (named.thread && choice.thread == nullptr && one.comm() == named.thread->second)
      choice.thread = one.thread;
    const symbolize::Module* const module = table_->functions()[names[row].function].module;
    if (named.module && !choice.module && path_of(module) == *named.module) choice.module = module;
  }
  if ((named.thread && choice.thread == nullptr) || (named.module && !choice.module)) return std::nullopt;
  return choice;
}

bool ReportRows::has_graph(std::size_t row) const {
  if (!text_.graph) return false;
  const EntryId entry = rows_[row];
  if (entries_->strand_count(entry) == 0) return false;
  const std::uint64_t value = entries_->value(weight(), entry, 0);
  return value >= graph_limit(*text_.graph, totals_.weights[0]).least(value);
}

std::vector<BrowsedNode> ReportRows::graph(std::size_t row) const {
  const EntryId entry = rows_[row];
  const auto lists = entries_->strands({&entry, 1});
  return nodes_of(lists[0], entries_->value(weight(), entry, 0));
}

std::string ReportRows::frame_text(FunctionId id) const {
  const Function& function = table_->functions()[id];
  std::string text = function.name().empty()
                         ? (function.start == 0 ? std::string("0") : fmt::format("{:#x}", function.start))
                         : printable(function.shown_name());
  if (options_->graph.key != ChainKey::Function && !function.line().empty())
    text += ' ' + printable(function.line());
  if (function.is_inlined) text += " (inlined)";
  if (choice_.names_modules)
    text += "  " + (function.module == nullptr ? "[unknown]" : printable(function.module->short_name));
  return text;
}

// A percentage is shown for siblings, and for an only child that has less than its parent, as in perf's
// browser.
std::vector<BrowsedNode> ReportRows::nodes_of(std::span<const Strand> strands, std::uint64_t row_total,
                                              std::optional<double> least) const {
  GraphOptions options = text_.graph.value_or(GraphOptions());
  // The styles flat and folded have no tree, so the browser uses graph.
  if (options.form != GraphForm::Fractal) options.form = GraphForm::Graph;
  if (least) options.min_percent = *least;
  tree_.build(strands, graph_limit(options, totals_.weights[0]));
  std::vector<BrowsedNode> nodes;
  const auto& all = tree_.nodes();
  nodes.reserve(all.size());
  for (const CallNode& node : all) {
    BrowsedNode one{.frames = {},
                    .functions = {node.frames.begin(), node.frames.end()},
                    .share = {},
                    .first_child = node.first_child,
                    .children = node.children,
                    .weight = node.period,
                    .own_weight = node.own_period};
    for (const FunctionId frame : node.frames) one.frames.push_back(frame_text(frame));
    nodes.push_back(std::move(one));
  }
  const bool is_fractal = options.form == GraphForm::Fractal;
  for (const CallNode& node : all) {
    const std::uint64_t below = &node == all.data() ? row_total : node.period - node.own_period;
    const std::uint64_t total = is_fractal ? below : entries_->whole(0, false);
    const bool shows_shares =
        node.children > 1 || (node.children == 1 && all[node.first_child].period != below);
    for (std::uint32_t i = 0; shows_shares && i < node.children; ++i) {
      const CallNode& child = all[node.first_child + i];
      nodes[node.first_child + i].share =
          options.value == GraphValue::Period  ? fmt::format("{}", child.period)
          : options.value == GraphValue::Count ? fmt::format("{}", child.samples)
                                               : fmt::format("{:.2f}%", percent_of(child.period, total));
    }
  }
  return nodes;
}

// Parts of call chains, from a function to its callers or to its callees. Each sample is counted once: in a
// recursion callees are those of the outermost call, callers those of the innermost.
std::vector<Strand> ReportRows::strands_of(std::optional<SymbolId> symbol, Side side) {
  const Profile& profile = table_->profile();
  const NamedRows& names = table_->names();
  const FunctionTable& functions = table_->functions();
  const bool begins_with_caller = options_->begins_with_caller();
  const bool counts_samples = choice_.counts_samples || entries_->total(0).period == 0;
  // With children, samples of a module are those with a function of it in the call chain.
  const bool zooms_into_callers = text_.has_children && (choice_.module || choice_.has_kernel_only);
  std::map<ChainId, Weight> by_chain;
  for (const RowId row : profile.rows_of(choice_.block)) {
    const ProfileRow& one = profile.rows()[row];
    const auto named = names[row];
    if (named.chain == kNo<ChainId> || names.stacks() == nullptr) continue;
    if (!is_counted_(one, functions[named.function])) continue;
    by_chain[named.chain] += profile.weights(one)[0];
  }
  struct Piece {
    std::size_t begin, size;
    Weight weight;
  };
  std::vector<Piece> pieces;
  kept_frames_.clear();
  for (const auto& [chain, weight] : by_chain) {
    const auto frames = names.stacks()->frames(chain);
    if (zooms_into_callers &&
        std::ranges::none_of(frames, [&](FunctionId id) { return is_in_module(functions[id]); }))
      continue;
    std::vector<FunctionId> down(frames.begin(), frames.end());  // the outermost caller first
    if (!begins_with_caller) std::ranges::reverse(down);
    const auto is_symbol = [&](FunctionId id) { return functions[id].symbol == *symbol; };
    const std::size_t begin = kept_frames_.size();
    if (!symbol) {
      kept_frames_.insert(kept_frames_.end(), down.begin(), down.end());
    } else if (side == Side::Callees) {
      const auto first = std::ranges::find_if(down, is_symbol);
      if (first == down.end()) continue;
      kept_frames_.insert(kept_frames_.end(), first, down.end());
    } else {
      const auto last = std::find_if(down.rbegin(), down.rend(), is_symbol);
      if (last == down.rend()) continue;
      kept_frames_.insert(kept_frames_.end(), last, down.rend());
    }
    pieces.push_back({begin, kept_frames_.size() - begin, weight});
  }
  std::vector<Strand> strands;
  for (const Piece& piece : pieces)
    strands.push_back({std::span(kept_frames_).subspan(piece.begin, piece.size),
                       counts_samples ? piece.weight.samples : piece.weight.period, piece.weight.samples});
  return strands;
}

std::vector<BrowsedNode> ReportRows::graph_of(SymbolId symbol, Side side) {
  const auto strands = strands_of(symbol, side);
  std::uint64_t total = 0;
  for (const Strand& strand : strands) total += strand.period;
  return nodes_of(strands, total);
}

std::vector<BrowsedNode> ReportRows::whole_graph() {
  constexpr double kLeast = 0.1;
  return nodes_of(strands_of(std::nullopt, Side::Callees), 0, kLeast);
}

std::string ReportRows::share_of(SymbolId symbol) {
  std::uint64_t total = 0;
  for (const Strand& strand : strands_of(symbol, Side::Callees)) total += strand.period;
  return fmt::format("{:.2f}%", percent_of(total, totals_.weights[0]));
}

}  // namespace tacho::report
