#include "report/views/report/report_options.h"

#include <gtest/gtest.h>

#include <utility>

#include "report/views/report/command_report.h"
#include "report/views/report/report_columns.h"
#include "report/views/report/report_mode.h"

namespace tacho::report {
namespace {

ReportOptions parsed(const std::vector<std::string>& arguments) {
  ReportOptions options;
  EXPECT_TRUE(cli::parse(describe_report(options), arguments));
  return options;
}

// As perf: each of these was tried there.
TEST(ReportOptions, CallGraphsBeginWithTheCallerWithChildrenOrWhenAskedTo) {
  EXPECT_TRUE(parsed({}).begins_with_caller());
  EXPECT_FALSE(parsed({"--no-children"}).begins_with_caller());
  EXPECT_TRUE(parsed({"--no-children", "-g"}).begins_with_caller());
  EXPECT_FALSE(parsed({"--no-children", "-g", "graph"}).begins_with_caller());
  EXPECT_FALSE(parsed({"--children", "-g", "callee"}).begins_with_caller());
  EXPECT_TRUE(parsed({"--no-children", "-g", "callee", "-G"}).begins_with_caller());
  EXPECT_TRUE(parsed({"--no-children", "-G", "-g", "callee"}).begins_with_caller());
}

TEST(ReportOptions, ThePercentLimitIsThatOfCallGraphsUnlessGFollows) {
  EXPECT_EQ(parsed({"--percent-limit", "2"}).graph.min_percent, 2.0);
  EXPECT_EQ(parsed({"-g", "caller,0.1", "--percent-limit", "2"}).graph.min_percent, 2.0);
  EXPECT_EQ(parsed({"--percent-limit", "2", "-g", "caller"}).graph.min_percent, 2.0);
  EXPECT_EQ(parsed({"--percent-limit", "2", "-g", "caller,0.1"}).graph.min_percent, 0.1);
  EXPECT_EQ(parsed({"--percent-limit", "2", "-g"}).graph.min_percent, 0.5);
}

TEST(ReportOptions, AKeyOrItsAbbreviationNeedsWhatItsRowSays) {
  EXPECT_TRUE(needs_source_lines(parsed({"--sort", "comm,srcline"})));
  EXPECT_TRUE(needs_source_lines(parsed({"--sort", "+src"})));
  EXPECT_TRUE(needs_source_lines(parsed({"--fields", "sym, srcline_from"})));
  EXPECT_TRUE(names_key_with(parsed({"--sort", "{comm,cgroup_id}"}).columns, SortKey::Needs::Cgroups));
  EXPECT_TRUE(asks_for_parallelism(parsed({"--sort", "paral"})));
  EXPECT_TRUE(asks_for_parallelism(parsed({"--fields", "lat,sym"})));
}

TEST(ReportOptions, TheKeyParentNeedsCallChainsInSortAndInFields) {
  for (const char* const option : {"--sort", "--fields"}) {
    for (const auto& [keys, needs] : {std::pair("overhead,parent", true), std::pair("x.parent_pid", false)}) {
      ReportOptions options = parsed({"--no-children", "-g", "none", option, keys});
      ASSERT_TRUE(prepare_report(options));
      EXPECT_EQ(options.reading.session.wants_stacks, needs) << option << " " << keys;
    }
  }
}

TEST(ReportOptions, AFieldWhoseNameContainsAKeyNeedsNothing) {
  for (const char* const field : {"src_port", "tcp.parallelism", "net:xmit.my_cgroup", "lat_ns"}) {
    const ReportOptions options = parsed({"--sort", field});
    EXPECT_FALSE(needs_source_lines(options)) << field;
    EXPECT_FALSE(names_key_with(options.columns, SortKey::Needs::Cgroups)) << field;
    EXPECT_FALSE(asks_for_parallelism(options)) << field;
  }
}

}  // namespace
}  // namespace tacho::report
