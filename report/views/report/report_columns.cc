#include "report/views/report/report_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "cli/nearest.h"
#include "report/command.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using Kind = Column::Kind;

struct WeightColumn {
  std::string_view name, header;
  Kind kind;
};
// In the order in which abbreviations are matched.
constexpr WeightColumn kWeightColumns[] = {
    {"overhead", "Overhead", Kind::Overhead},
    {"overhead_sys", "sys", Kind::OverheadSys},
    {"overhead_us", "usr", Kind::OverheadUser},
    {"overhead_guest_sys", "guest sys", Kind::OverheadGuestSys},
    {"overhead_guest_us", "guest usr", Kind::OverheadGuestUser},
    {"overhead_children", "Children", Kind::Children},
    {"sample", "Samples", Kind::Samples},
    {"period", "Period", Kind::Period},
    {"latency", "Latency", Kind::Latency},
    {"latency_children", "Latency", Kind::LatencyChildren},
};

struct Word {
  std::string_view text;
  std::size_t level = 0;
};

// As perf: each word is one level below the word before, and words in braces share a level. Empty words
// count.
std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  bool is_in_braces = false;
  std::size_t level = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("{}, ", at), text.size());
    if (end > at) words.push_back({text.substr(at, end - at), level});
    if (!is_in_braces) ++level;
    if (end < text.size() && text[end] == '{') is_in_braces = true;
    if (end < text.size() && text[end] == '}') is_in_braces = false;
    at = end + 1;
  }
  return words;
}

// Null: it is none. perf's keys come first, then its weights, then fields of captures: a field may be called
// "period" too.
const WeightColumn* weight_column_of(std::string_view word) {
  const auto found = std::ranges::find_if(
      kWeightColumns, [&](const WeightColumn& row) { return row.name.starts_with(word); });
  return sort_key_of(word) != nullptr || found == std::end(kWeightColumns) ? nullptr : &*found;
}

// Whether a word of --sort or --fields passes the test. A '+' before the first one adds to the default keys.
template <class Test>
bool any_word(const ColumnOptions& options, Test&& passes) {
  return std::ranges::any_of(
      std::array<std::string_view, 2>{options.sort, options.fields}, [&](std::string_view words) {
        return std::ranges::any_of(words_of(words.substr(words.starts_with('+') ? 1 : 0)),
                                   [&](const Word& word) { return passes(word.text); });
      });
}

// Suggests the nearest name, or lists all names; fields of events are not suggested.
Error unknown_key(std::string_view option, std::string_view word, ReportMode mode) {
  std::vector<std::string> names;
  for (const SortKey* const key : sort_keys()) {
    if (key->name.starts_with(word) && key->mode != mode) {
      return use_error(fmt::format("{}: there is a key '{}' only with {}", option, key->name,
                                   key->mode == ReportMode::Branches
                                       ? "-b, where branch stacks were recorded"
                                       : "--mem-mode, where memory accesses were recorded"));
    }
    if (key->mode == mode || key->mode == ReportMode::Samples) names.emplace_back(key->name);
  }
  for (const WeightColumn& row : kWeightColumns) names.emplace_back(row.name);
  names.emplace_back("sym");  // perf's users write symbol
  std::string end = cli::suggestion(word, names);
  if (end.empty()) {
    const std::string own = mode == ReportMode::Samples ? std::string() : sort_key_names(mode) + " ";
    end = fmt::format("; known keys: {} {}{}, and fields of tracepoints and payloads as EVENT.FIELD or FIELD",
                      sort_key_names(ReportMode::Samples), own, weight_column_names());
  }
  return use_error(fmt::format("{}: there is no key '{}'{}", option, word, end));
}

class ColumnMaker {
 public:
  ColumnMaker(SampleFacts& facts, ReportColumns& columns) : facts_(&facts), columns_(&columns) {}

  Result<> add_all(std::string_view option, std::string_view list, std::vector<Column>& target) {
    for (const auto& [word, level] : words_of(list)) {
      if (auto added = add(option, word, target); !added) return added;
      if (&target == &columns_->sorted) columns_->levels.resize(target.size(), level);
    }
    return Done{};
  }

  static void add_once(Column column, std::vector<Column>& target) {
    if (std::ranges::find(target, column) == target.end()) target.push_back(column);
  }

 private:
  Result<> add(std::string_view option, std::string_view word, std::vector<Column>& target) {
    if (const WeightColumn* const weight = weight_column_of(word)) {
      add_once({weight->kind, 0}, target);
      return Done{};
    }
    const std::vector<KeyUse> uses = find_sort_keys(word, *facts_);
    // As perf, which supports these cycles on one architecture and ignores the word elsewhere.
    const auto& arch = facts_->session().features().environment.arch;
    if (!uses.empty() && uses[0].key->name.ends_with("p_stage_cyc") && !arch.value_or("").starts_with("ppc"))
      return Done{};
    if (uses.empty()) return unknown_key(option, word, facts_->options().mode);
    for (const KeyUse& use : uses) {
      const auto known =
          std::ranges::find_if(columns_->keys, [&](const KeyUse& other) { return is_same_key(use, other); });
      const auto index = static_cast<std::size_t>(known - columns_->keys.begin());
      if (known == columns_->keys.end()) columns_->keys.push_back(use);
      add_once({Kind::Key, index}, target);
    }
    return Done{};
  }

  SampleFacts* facts_;
  ReportColumns* columns_;
};

std::string default_sort(const SampleFacts& facts) {
  if (facts.options().mode == ReportMode::Branches) return "comm,dso_from,symbol_from,symbol_to,cycles";
  if (facts.options().mode == ReportMode::Memory) return std::string(kMemorySort);
  // In a pipe, events are not known yet when perf decides.
  const bool is_pipe = facts.session().layout().is_pipe;
  const auto& events = facts.session().events();
  const bool only_tracepoints =
      !is_pipe && !events.empty() &&
      std::ranges::all_of(events, [](const auto& event) { return event.attr.type == abi::kTracepoint; });
  if (!only_tracepoints) return "comm,dso,symbol";
  return facts.options().is_raw_trace ? "trace_fields" : "trace";
}

// As perf, which searches the whole list for the word.
void put_before(std::string_view word, std::string& list) {
  if (list.find(word) == std::string::npos) list = std::string(word) + "," + list;
}

bool names_latency(const std::string& sort) { return sort.find("latency") != std::string::npos; }

// The weights by which rows are sorted first.
void add_first_weights(const ColumnRequest& request, std::string& sort) {
  // As perf: latency in --sort replaces the overhead.
  if (names_latency(sort) && !request.given.prefers_latency) return;
  put_before("overhead", sort);
  if (request.given.prefers_latency) put_before("latency", sort);
  if (request.has_children) put_before("overhead_children", sort);
  if (request.has_children && request.given.prefers_latency) put_before("latency_children", sort);
}

void add_default_weights(const ColumnRequest& request, const std::vector<Column>& sorted,
                         std::vector<Column>& shown) {
  const auto has_overhead = [](const Column& column) { return column.kind == Kind::Overhead; };
  if (std::ranges::any_of(sorted, has_overhead)) {
    if (request.has_children && request.given.prefers_latency) shown.push_back({Kind::LatencyChildren, 0});
    if (request.has_children) shown.push_back({Kind::Children, 0});
    if (request.given.prefers_latency) shown.push_back({Kind::Latency, 0});
    shown.push_back({Kind::Overhead, 0});
  } else {
    std::ranges::copy_if(sorted, std::back_inserter(shown),
                         [](const Column& column) { return is_latency(column.kind); });
  }
  if (request.given.shows_modes) {
    shown.push_back({Kind::OverheadSys, 0});
    shown.push_back({Kind::OverheadUser, 0});
  }
  if (request.given.shows_samples) shown.push_back({Kind::Samples, 0});
  if (request.given.shows_period) shown.push_back({Kind::Period, 0});
}

void settle_keys(std::vector<KeyUse>& keys) {
  std::size_t facts = 0;
  for (KeyUse& use : keys) {
    if (use.key->read != nullptr) use.fact = facts++;
  }
}

}  // namespace

std::string weight_column_names() {
  std::string all;
  for (const WeightColumn& row : kWeightColumns) {
    if (!all.empty()) all += ' ';
    all += row.name;
  }
  return all;
}

bool is_same_key(const KeyUse& a, const KeyUse& b) {
  return a.key == b.key && a.event == b.event && a.field == b.field && a.is_raw == b.is_raw;
}

Result<ReportColumns> make_columns(const ColumnRequest& request, SampleFacts& facts) {
  ReportColumns columns;
  ColumnMaker maker(facts, columns);
  const bool has_all = !request.given.fields.empty() && request.given.fields.front() != '+';
  std::string sort = request.given.sort;
  // perf adds this column, though only captures with branches fill it.
  if (request.has_ipc && sort.find("symbol") != std::string::npos)
    sort += facts.options().mode == ReportMode::Branches ? ",ipc_lbr" : ",ipc_null";
  if (sort == "+") return use_error("--sort: '+' names no key; write +KEY to add one to the usual ones");
  if (sort.starts_with('+')) sort = fmt::format("{},{}", default_sort(facts), sort.substr(1));
  columns.sort = sort;
  if (sort.empty() && !has_all) sort = default_sort(facts);
  if (!has_all) add_first_weights(request, sort);
  if (auto added = maker.add_all("--sort", sort, columns.sorted); !added) return added.error();
  // The weights before all keys are one level.
  for (std::size_t i = 0; i < columns.sorted.size() && request.given.prefers_latency && !has_all; ++i) {
    if (columns.sorted[i].kind == Kind::Key) break;
    columns.levels[i] = 0;
  }
  if (request.has_parent) {
    const std::size_t before = columns.sorted.size();
    if (auto added = maker.add_all("--parent", "parent", columns.sorted); !added) return added.error();
    columns.levels.resize(columns.sorted.size());
    // The innermost level.
    if (columns.sorted.size() > before) columns.levels.back() = columns.sorted.size() + sort.size();
  }
  columns.has_usual_weights = !has_all;
  if (!has_all) add_default_weights(request, columns.sorted, columns.shown);
  const std::string_view fields = request.given.fields;
  if (auto added =
          maker.add_all("--fields", has_all || fields.empty() ? fields : fields.substr(1), columns.shown);
      !added) {
    return added.error();
  }
  for (const Column& column : columns.sorted) ColumnMaker::add_once(column, columns.shown);
  for (const Column& column : columns.shown) ColumnMaker::add_once(column, columns.sorted);
  columns.levels.resize(columns.sorted.size());
  settle_keys(columns.keys);
  return columns;
}

std::string header_of(const Column& column, const ReportColumns& columns, bool has_children) {
  if (column.kind == Kind::Key) return columns.keys[column.key].header;
  if (column.kind == Kind::Overhead && has_children && columns.has_usual_weights) return "Self";
  const auto row = std::ranges::find(kWeightColumns, column.kind, &WeightColumn::kind);
  return std::string(row->header);
}

bool ReportColumns::shows_modes() const {
  const auto has_it = [](const Column& column) {
    return column.kind >= Kind::OverheadSys && column.kind <= Kind::OverheadGuestUser;
  };
  return std::ranges::any_of(shown, has_it) || std::ranges::any_of(sorted, has_it);
}

bool names_key_with(const ColumnOptions& options, SortKey::Needs needs) {
  return any_word(options, [needs](std::string_view word) {
    const SortKey* const key = sort_key_of(word);
    return key != nullptr && key->needs == needs;
  });
}

bool names_latency(const ColumnOptions& options) {
  return any_word(options, [](std::string_view word) {
    const WeightColumn* const column = weight_column_of(word);
    return column != nullptr && is_latency(column->kind);
  });
}

bool shows_latency(const ReportColumns& columns) {
  return std::ranges::any_of(columns.shown, [](const Column& column) { return is_latency(column.kind); });
}

}  // namespace tacho::report
