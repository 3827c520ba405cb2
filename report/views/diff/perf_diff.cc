#include "report/views/diff/perf_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cli/option_rows.h"
#include "format/base/parse_text.h"
#include "report/output/terminal.h"

namespace tacho::report {
namespace {

using Kind = DiffMethod::Kind;

constexpr std::pair<std::string_view, Kind> kMethods[] = {
    {"delta", Kind::Delta}, {"delta-abs", Kind::DeltaAbs}, {"ratio", Kind::Ratio}};

bool is_of_shares(Kind kind) { return kind == Kind::Delta || kind == Kind::DeltaAbs; }

struct NumberColumn {
  std::string_view header;
  std::size_t width;
};

NumberColumn column_of(Kind kind) {
  switch (kind) {
    case Kind::Delta:
      return {"Delta", 7};
    case Kind::DeltaAbs:
      return {"Delta Abs", 9};
    case Kind::Ratio:
      return {"Ratio", 14};
    case Kind::Weighted:
      return {"Weighted diff", 14};
  }
  return {};
}

// Whether a capture other than the baseline has the row.
bool has_other(const DiffTable::Row& row) {
  return std::any_of(row.periods.begin() + 1, row.periods.end(),
                     [](const auto& one) { return one.has_value(); });
}

int sign_of(double a, double b) { return a > b ? 1 : a < b ? -1 : 0; }

}  // namespace

Result<DiffMethod> parse_diff_method(std::string_view text) {
  for (const auto& [name, kind] : kMethods)
    if (text == name) return DiffMethod{kind};
  constexpr std::string_view kWeighted = "wdiff:";
  if (text.starts_with(kWeighted)) {
    const std::string_view weights = text.substr(kWeighted.size());
    const std::size_t comma = weights.find(',');
    if (comma != std::string_view::npos) {
      const auto before = format::whole_number<std::int64_t>(weights.substr(0, comma));
      const auto after = format::whole_number<std::int64_t>(weights.substr(comma + 1));
      if (before && after) return DiffMethod{Kind::Weighted, *before, *after};
    }
  }
  return use_error("-c: '" + std::string(text) +
                   "' is not known; it is delta, delta-abs, ratio or wdiff:W1,W2, where W1 and W2 are whole "
                   "numbers: the weights of the baseline and of the other capture");
}

void DiffTable::add_capture(std::size_t capture, std::span<const DiffInput> rows, std::uint64_t total) {
  totals_[capture] = total;
  // The row of least rank is printed, so it is first.
  std::vector<const DiffInput*> in_order;
  for (const DiffInput& row : rows) in_order.push_back(&row);
  std::ranges::stable_sort(in_order, {}, &DiffInput::rank);
  std::map<std::vector<std::string>, std::size_t> known;
  for (std::size_t i = 0; i < identities_.size(); ++i) known.emplace(identities_[i], i);
  for (const DiffInput* const input : in_order) {
    const auto [found, is_new] = known.try_emplace(input->identity, rows_.size());
    if (is_new) {
      identities_.push_back(input->identity);
      rows_.push_back(
          {input->cells, input->widths, std::vector<std::optional<std::uint64_t>>(totals_.size())});
    }
    std::optional<std::uint64_t>& period = rows_[found->second].periods[capture];
    period = period.value_or(0) + input->period;
  }
}

void DiffTable::finish() {
  if (look_.has_common_only)
    std::erase_if(rows_, [](const Row& row) { return !row.periods[0] || !has_other(row); });
  // Values are of all rows; the baseline's column, as in perf, is of the rows that are left.
  shown_total_ = totals_[0];
  if (look_.has_common_only) {
    shown_total_ = 0;
    for (const Row& row : rows_) shown_total_ += *row.periods[0];
  }
  std::ranges::sort(rows_, [this](const Row& a, const Row& b) { return is_before(a, b); });
  identities_.clear();
}

double DiffTable::share(std::uint64_t period, std::uint64_t total) const {
  if (total == 0 && !look_.is_as_perf) return 0;
  return static_cast<double>(period) * 100.0 / static_cast<double>(total);
}

double DiffTable::baseline_share(const Row& row) const {
  return share(row.periods[0].value_or(0), shown_total_);
}

double DiffTable::value(const Row& row, std::size_t capture) const {
  const std::uint64_t before = row.periods[0].value_or(0), after = *row.periods[capture];
  switch (look_.method.kind) {
    case Kind::Delta:
    case Kind::DeltaAbs:
      return share(after, totals_[capture]) - share(before, totals_[0]);
    case Kind::Ratio:
      return static_cast<double>(after) / static_cast<double>(before == 0 ? 1 : before);
    case Kind::Weighted:
      return static_cast<double>(after) * static_cast<double>(look_.method.weight_after) -
             static_cast<double>(before) * static_cast<double>(look_.method.weight_before);
  }
  return 0;
}

std::string DiffTable::formula(const Row& row, std::size_t capture) const {
  const std::uint64_t before = row.periods[0].value_or(0), after = *row.periods[capture];
  switch (look_.method.kind) {
    case Kind::Delta:
    case Kind::DeltaAbs:
      return fmt::format("({} * 100 / {}) - ({} * 100 / {})", after, totals_[capture], before, shown_total_);
    case Kind::Ratio:
      return fmt::format("{} / {}", after, before);
    case Kind::Weighted:
      return fmt::format("({} * {}) - ({} * {})", after, look_.method.weight_after, before,
                         look_.method.weight_before);
  }
  return {};
}

// Above 0: `a` is printed first.
int DiffTable::compare_values(const Row& a, const Row& b, std::size_t capture, bool puts_new_last) const {
  if (!puts_new_last && has_other(a) != has_other(b)) return has_other(a) ? 1 : -1;
  const bool has_a = a.periods[capture].has_value(), has_b = b.periods[capture].has_value();
  if (!has_a || !has_b) return static_cast<int>(has_a) - static_cast<int>(has_b);
  if (puts_new_last && !is_of_shares(look_.method.kind)) {
    const bool is_old_a = a.periods[0].has_value(), is_old_b = b.periods[0].has_value();
    if (!is_old_a && !is_old_b) return 0;
    if (is_old_a != is_old_b) return is_old_a ? 1 : -1;
  }
  const double of_a = value(a, capture), of_b = value(b, capture);
  if (look_.method.kind == Kind::DeltaAbs) return sign_of(std::abs(of_a), std::abs(of_b));
  return sign_of(of_a, of_b);
}

// By the chosen capture, then by all columns from the left.
bool DiffTable::is_before(const Row& a, const Row& b) const {
  if (look_.order > 0)
    if (const int order = compare_values(a, b, look_.order, true); order != 0) return order > 0;
  if (const std::uint64_t of_a = a.periods[0].value_or(0), of_b = b.periods[0].value_or(0); of_a != of_b)
    return of_a > of_b;
  for (std::size_t capture = 1; capture < totals_.size(); ++capture)
    if (const int order = compare_values(a, b, capture, false); order != 0) return order > 0;
  return a.cells < b.cells;
}

namespace {

// One column of numbers.
struct DiffColumn {
  enum class Shows : std::uint8_t { Share, Value, Formula, Period } shows;
  std::size_t capture;
  std::string header;
  std::size_t width;
};

class DiffText {
 public:
  DiffText(const DiffTable& table, std::size_t captures, std::span<const DiffKey> keys)
      : table_(table), look_(table.look()), keys_(keys), has_indices_(captures > 2) {
    for (const DiffKey& key : keys_) widths_.push_back(key.header.size());
    for (const DiffTable::Row& row : table_.rows())
      for (std::size_t key = 0; key < widths_.size(); ++key)
        widths_[key] = std::max(widths_[key], row.widths[key]);
    using Shows = DiffColumn::Shows;
    for (std::size_t capture = 0; capture < captures; ++capture) {
      const NumberColumn value = column_of(look_.method.kind);
      if (capture == 0)
        add(Shows::Share, capture, "Baseline", 8);
      else
        add(Shows::Value, capture, value.header, value.width);
      if (capture > 0 && look_.has_formula) add(Shows::Formula, capture, "Formula", 70);
      if (look_.has_period) add(Shows::Period, capture, capture == 0 ? "Base period" : "Period", 14);
    }
  }

  std::string text() {
    if (!look_.is_quiet) write_header();
    for (const DiffTable::Row& row : table_.rows()) write_row(row);
    return std::move(text_);
  }

 private:
  void add(DiffColumn::Shows shows, std::size_t capture, std::string_view name, std::size_t width) {
    std::string header(name);
    if (has_indices_) header += fmt::format("/{}", capture);
    width = std::max(width, header.size());
    columns_.push_back({shows, capture, std::move(header), width});
  }
  bool is_separated() const { return !look_.separator.empty(); }
  void write_gap() { text_ += is_separated() ? look_.separator : "  "; }

  void write_header() {
    text_ += "# ";
    for (const DiffColumn& column : columns_) {
      text_ += fmt::format("{:>{}}", column.header, column.width);
      write_gap();
    }
    for (std::size_t key = 0; key < keys_.size(); ++key) {
      if (key > 0) write_gap();
      text_ += fmt::format("{:<{}}", keys_[key].header, widths_[key]);
    }
    text_ += '\n';
    if (is_separated()) return;
    text_ += "# ";
    for (const DiffColumn& column : columns_) text_ += std::string(column.width, '.') + "  ";
    for (std::size_t key = 0; key < keys_.size(); ++key)
      text_ += (key > 0 ? "  " : "") + std::string(widths_[key], '.');
    text_ += "\n#\n";
  }

  void write_row(const DiffTable::Row& row) {
    if (!is_separated()) text_ += "  ";
    for (const DiffColumn& column : columns_) {
      const std::string cell = cell_of(row, column);
      // perf's cells of weighted differences are narrower than the column of several captures.
      const bool is_narrow = look_.is_as_perf && look_.method.kind == Kind::Weighted &&
                             column.shows == DiffColumn::Shows::Value && cell.size() == 14;
      const std::size_t width = is_narrow ? 0 : column.width;
      text_ += is_separated() ? fmt::format("{:<{}}", cell, width) : fmt::format("{:>{}}", cell, width);
      write_gap();
    }
    for (std::size_t key = 0; key < keys_.size(); ++key) {
      std::string cell = row.cells[key];
      if (is_separated()) replace_separators(cell);
      text_ += cell;
      if (key + 1 == keys_.size() && !keys_[key].is_always_padded) break;
      text_.append(widths_[key] - std::min(widths_[key], shown_width(cell)), ' ');
      if (key + 1 < keys_.size()) write_gap();
    }
    text_ += '\n';
  }

  // perf puts a point where a text has the separator, if that is one character.
  void replace_separators(std::string& text) const {
    if (look_.separator.size() == 1) std::ranges::replace(text, look_.separator[0], '.');
  }

  // Empty: nothing is known.
  std::string cell_of(const DiffTable::Row& row, const DiffColumn& column) const {
    const std::optional<std::uint64_t> period = row.periods[column.capture];
    switch (column.shows) {
      case DiffColumn::Shows::Share:
        if (!period) return {};
        return fmt::format("{:.2f}{}", table_.baseline_share(row), is_separated() ? "" : "%");
      case DiffColumn::Shows::Value:
        return period ? value_cell(row, column.capture) : std::string();
      case DiffColumn::Shows::Formula:
        return period ? table_.formula(row, column.capture) : std::string();
      case DiffColumn::Shows::Period:
        if (!period && column.capture > 0) return {};
        return std::to_string(period.value_or(0));
    }
    return {};
  }
  std::string value_cell(const DiffTable::Row& row, std::size_t capture) const {
    const double value = table_.value(row, capture);
    if (is_of_shares(look_.method.kind)) return fmt::format("{:+.2f}%", value);
    if (!row.periods[0]) return "N/A";
    // Always at the right of 14 columns.
    return look_.method.kind == Kind::Ratio ? fmt::format("{:14.6f}", value) : fmt::format("{:14.0f}", value);
  }

  const DiffTable& table_;
  const DiffLook& look_;
  std::span<const DiffKey> keys_;
  std::vector<std::size_t> widths_;  // by key
  bool has_indices_;
  std::vector<DiffColumn> columns_;
  std::string text_;
};

}  // namespace

std::string diff_text(const DiffTable& table, std::size_t captures, std::span<const DiffKey> keys) {
  return DiffText(table, captures, keys).text();
}

}  // namespace tacho::report
