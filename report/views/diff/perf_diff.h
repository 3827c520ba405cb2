// Rows of two or more captures side by side, as perf diff: the first capture is the baseline, and each other
// one is compared with it. Rows with equal texts of their keys are one row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"

namespace tacho::report {

// What is computed of a row's weight in a capture and in the baseline.
struct DiffMethod {
  enum class Kind : std::uint8_t { Delta, DeltaAbs, Ratio, Weighted } kind = Kind::DeltaAbs;
  std::int64_t weight_before = 1, weight_after = 1;  // of Weighted
};
// "delta", "delta-abs", "ratio" or "wdiff:W1,W2".
Result<DiffMethod> parse_diff_method(std::string_view text);

struct DiffLook {
  DiffMethod method;
  std::size_t order = 1;         // the capture by whose values rows are sorted first; 0: the baseline
  bool has_formula = false;      // -F
  bool has_period = false;       // -p
  bool has_common_only = false;  // -b: only rows that another capture has too
  bool is_quiet = false;         // rows only
  bool is_as_perf = false;       // also where perf is wrong
  std::string separator;         // -t; empty: aligned columns
  bool is_changed() const {
    return method.kind != DiffMethod::Kind::DeltaAbs || order != 1 || has_formula || has_period ||
           has_common_only || is_quiet || !separator.empty();
  }
};

// A row of one capture.
struct DiffInput {
  std::vector<std::string> identity;  // by key: rows of equal identity are one
  std::vector<std::string> cells;     // by shown key, as printed
  std::vector<std::size_t> widths;    // by shown key, of the column that the cell needs
  std::int64_t rank = 0;              // of several rows the one of least rank is printed
  std::uint64_t period = 0;
};

// The rows of one event in all captures.
class DiffTable {
 public:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::size_t> widths;
    std::vector<std::optional<std::uint64_t>> periods;  // by capture; the baseline's is first
  };

  DiffTable(DiffLook look, std::size_t captures) : look_(std::move(look)), totals_(captures) {}
  // `capture`: 0 is the baseline, which comes first. `total`: 100 %.
  void add_capture(std::size_t capture, std::span<const DiffInput> rows, std::uint64_t total);
  // Drops and sorts rows. Once, after all captures.
  void finish();

  const std::vector<Row>& rows() const { return rows_; }
  const DiffLook& look() const { return look_; }
  // Percent of the baseline; what is computed of another capture, which has the row.
  double baseline_share(const Row& row) const;
  double value(const Row& row, std::size_t capture) const;
  std::string formula(const Row& row, std::size_t capture) const;

 private:
  double share(std::uint64_t period, std::uint64_t total) const;
  bool is_before(const Row& a, const Row& b) const;
  int compare_values(const Row& a, const Row& b, std::size_t capture, bool puts_new_last) const;

  DiffLook look_;
  std::vector<std::uint64_t> totals_;
  std::uint64_t shown_total_ = 0;  // 100 % of the baseline's column
  std::vector<Row> rows_;
  std::vector<std::vector<std::string>> identities_;  // of rows_, until finish()
};

// A column of names.
struct DiffKey {
  std::string header;
  bool is_always_padded = false;  // also as the last column
};

// The text of a table: its header, unless it is quiet, and the rows.
std::string diff_text(const DiffTable& table, std::size_t captures, std::span<const DiffKey> keys);

}  // namespace tacho::report
