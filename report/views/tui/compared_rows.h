// Two captures compared as by perf diff: rows of percent before and after and the difference, and these as
// text, JSON and CSV.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"
#include "report/compare/comparison.h"
#include "report/views/report/report_options.h"
#include "report/views/tui/browser.h"
#include "report/views/tui/report_rows.h"

namespace tacho::report {

// The functions that were renamed between the two captures, found by reading both once more. The same each
// time. Null: the captures could not be read.
using RenamesOfCaptures = std::function<const RenamedFunctions*()>;

class ComparedRows : public BrowsedRows {
 public:
  // Both must outlive it. Rows are matched by the texts of their keys, functions as compare/function_match
  // says.
  // `renames`: asked when functions may have been renamed; null: they are not looked for.
  ComparedRows(const ReportRows& after, const ReportRows& before, RenamesOfCaptures renames)
      : after_(&after), before_(&before), renames_(std::move(renames)) {
    changed(Of::Both);
  }

  // Call it when `after` or `before` shows other rows. `of`: which of the two has rows of the event.
  enum class Of : std::uint8_t { Both, After, Before };
  void changed(Of of);
  // Whether percents count callees too (children), or self only.
  bool has_callees() const { return has_callees_; }
  void count_callees(bool has_callees);
  enum class Order : std::uint8_t { Delta, Before, After };
  Order order() const { return order_; }
  void order_by(Order order);

  // The row's numbers in `after` and in `before`: several where clones of a function are one; empty: only the
  // other has it.
  std::span<const std::size_t> rows_after(std::size_t row) const { return rows_[row].after; }
  std::span<const std::size_t> rows_before(std::size_t row) const { return rows_[row].before; }
  // The first of them.
  std::optional<std::size_t> row_after(std::size_t row) const { return first_of(rows_[row].after); }
  std::optional<std::size_t> row_before(std::size_t row) const { return first_of(rows_[row].before); }
  // Which functions are one although their names or modules differ, as MatchedFunctions::text. Empty: none.
  const std::string& matched_text() const { return matched_text_; }
  // Whether functions may have been renamed, and the captures could not be read to find which.
  bool lacks_renames() const { return lacks_renames_; }
  // Percent, of the capture in which the row has more.
  double largest_share(std::size_t row) const {
    return std::max(rows_[row].share_after, rows_[row].share_before);
  }
  double delta(std::size_t row) const { return rows_[row].delta(); }  // percentage points

  std::size_t size() const override { return rows_.size(); }
  std::vector<BrowsedColumn> columns() const override;
  std::vector<Cell> cells(std::size_t row) const override;
  std::string identity(std::size_t row) const override;
  bool has_graph(std::size_t row) const override {
    return row_after(row) && after_->has_graph(*row_after(row));
  }
  std::vector<BrowsedNode> graph(std::size_t row) const override { return after_->graph(*row_after(row)); }

 private:
  struct Row {
    std::vector<std::size_t> after, before;    // the one with the name that is shown is first
    double share_after = 0, share_before = 0;  // percent
    double delta() const { return share_after - share_before; }
  };
  static std::optional<std::size_t> first_of(const std::vector<std::size_t>& rows) {
    return rows.empty() ? std::nullopt : std::optional(rows.front());
  }
  void sort();

  const ReportRows* after_;
  const ReportRows* before_;
  RenamesOfCaptures renames_;
  Of of_ = Of::Both;
  bool has_callees_ = false;
  Order order_ = Order::Delta;
  std::vector<Row> rows_;
  std::string matched_text_;
  bool lacks_renames_ = false;
};

// `tacho report --base FILE` as text, JSON or CSV: prints the rows of the capture of `options` and of `base`,
// which was before, largest change first: percent before and after, without callees (with --children: with
// them), and the difference. Rows are matched by the texts of their keys (--sort; by default those of perf
// diff: dso,symbol).
Result<cli::ExitStatus> print_comparison(ReportOptions& options, const std::string& base);

}  // namespace tacho::report
