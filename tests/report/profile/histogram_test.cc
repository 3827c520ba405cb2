#include "report/profile/histogram.h"

#include <gtest/gtest.h>

#include "report/output/text_table.h"

namespace tacho::report {
namespace {

struct Case {
  std::string_view dd = "dd", ls = "ls";
  Thread one{10, 11, dd}, two{20, 21, ls};
  CodePlace libc{1, 1, "libc.so.6", "read", 0x10, 0x20, '.'};
  CodePlace kernel{2, 2, "[kernel.kallsyms]", "schedule", 0x30, 0x40, 'k'};
  CodePlace nowhere{0, 3, "", "", 0x99, 0, '.'};

  RowFacts facts(const Thread& thread, const CodePlace& place) const {
    return {thread.comm, &thread, &place, 0, {}};
  }
};

std::string shown(const Histogram& histogram, const HistogramRow& row) {
  std::string text;
  for (const SortKey* key : histogram.keys()) {
    if (!text.empty()) text += '|';
    text += key->show(row.facts, Names::Safe);
  }
  return text;
}

TEST(Histogram, AddsUpByTheKeysAndSortsByWeight) {
  const Case c;
  Histogram histogram(*parse_sort_keys("comm,dso,sym"), 1);
  histogram.add(c.facts(c.one, c.libc), 0, 10);
  histogram.add(c.facts(c.two, c.kernel), 0, 30);
  histogram.add(c.facts(c.one, c.libc), 0, 5);
  const auto rows = histogram.sorted_rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(shown(histogram, rows[0]), "ls|[kernel.kallsyms]|[k] schedule");
  EXPECT_EQ(shown(histogram, rows[1]), "dd|libc.so.6|[.] read");
  EXPECT_EQ(rows[1].weights[0], 15u);
  EXPECT_EQ(histogram.total(), 45u);
}

TEST(Histogram, EventsWithoutPeriodsAreWeighedBySamples) {
  const Case c;
  Histogram histogram(*parse_sort_keys("comm"), 1);
  for (int i = 0; i < 3; ++i) histogram.add(c.facts(c.one, c.libc), 0, 0);
  EXPECT_EQ(histogram.total(), 3u);
  EXPECT_EQ(histogram.sorted_rows()[0].weights[0], 3u);
}

TEST(Histogram, TiesAreSettledByTheKeysNamedFunctionsFirst) {
  const Case c;
  Histogram histogram(*parse_sort_keys("sym"), 1);
  histogram.add(c.facts(c.one, c.nowhere), 0, 1);
  histogram.add(c.facts(c.one, c.kernel), 0, 1);
  histogram.add(c.facts(c.one, c.libc), 0, 1);
  const auto rows = histogram.sorted_rows();
  EXPECT_EQ(shown(histogram, rows[0]), "[.] read");
  EXPECT_EQ(shown(histogram, rows[1]), "[k] schedule");
  EXPECT_EQ(shown(histogram, rows[2]), "[.] 0x0000000000000099");
}

TEST(Histogram, MembersOfAGroupShareRowsAndTheFirstOneDecides) {
  const Case c;
  Histogram histogram(*parse_sort_keys("sym"), 2);
  histogram.add(c.facts(c.one, c.libc), 0, 1);
  histogram.add(c.facts(c.one, c.kernel), 0, 1);
  histogram.add(c.facts(c.one, c.kernel), 1, 7);
  const auto rows = histogram.sorted_rows();
  EXPECT_EQ(shown(histogram, rows[0]), "[k] schedule");
  EXPECT_EQ(rows[0].weights, (std::vector<std::uint64_t>{1, 7}));
}

TEST(SortKeys, AnUnknownOneIsRefusedWithTheKnownOnes) {
  const auto keys = parse_sort_keys("comm,nosuch");
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().what, "--sort: there is no key 'nosuch'; known keys: comm dso sym pid cpu trace");
  EXPECT_EQ(keys.error().fault, Fault::Use);
}

TEST(TextTable, PadsAllButTheLastColumn) {
  TextBuffer out;
  const TextTable table(
      {{"Overhead", 8, true, false}, {"Command", 7, false, true}, {"Symbol", 10, false, false}});
  table.write_head(out);
  table.write_row(out, {" 100.00%", "a long name", "[.] x"});
  EXPECT_EQ(out.view(),
            "# Overhead  Command  Symbol    \n"
            "# ........  .......  ..........\n"
            "#\n"
            "   100.00%  a long   [.] x\n");
}

}  // namespace
}  // namespace tacho::report
