#include "report/filter_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tacho::report {
namespace {

Result<cli::Parsed> parse(Filter& filter, const std::vector<std::string>& words,
                          const std::vector<std::string_view>& taken = {}) {
  cli::CommandLine line;
  line.program = "test";
  add_filter_options(line.options, filter, taken);
  return cli::parse(line, words);
}

TEST(FilterOptions, HavePerfsSpellings) {
  Filter filter;
  ASSERT_TRUE(parse(filter, {"--pid", "3,1-2", "--tid=7", "-C", "0", "-c", "dd,ls", "--time", "1,2", "-d",
                             "libc.so.6", "-S", "main", "--addr-range", "16", "--symbol-filter", "ext4_"}));
  EXPECT_EQ(filter.pids, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(filter.tids, std::vector<std::uint32_t>{7});
  EXPECT_EQ(filter.cpus, std::vector<std::uint32_t>{0});
  EXPECT_EQ(filter.comms, (std::vector<std::string>{"dd", "ls"}));
  EXPECT_EQ(filter.time_text, "1,2");
  EXPECT_EQ(filter.dsos, std::vector<std::string>{"libc.so.6"});
  EXPECT_EQ(filter.symbols, std::vector<std::string>{"main"});
  EXPECT_EQ(filter.symbol_range, 16u);
  EXPECT_EQ(filter.symbol_part, "ext4_");
}

TEST(FilterOptions, AWrongValueNamesItsOption) {
  Filter filter;
  const auto parsed = parse(filter, {"--cpu", "x"});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().fault, Fault::Use);
  EXPECT_TRUE(parsed.error().what.starts_with("-C,--cpu: 'x'")) << parsed.error().what;
}

TEST(FilterOptions, LeaveOutSpellingsThatMeanSomethingElse) {
  std::vector<cli::Option> rows;
  Filter filter;
  add_filter_options(rows, filter, {"-d", "--pid"});
  const auto has = [&](std::string_view names) {
    return std::ranges::find(rows, names, &cli::Option::names) != rows.end();
  };
  EXPECT_TRUE(has("--dsos,--dso"));
  EXPECT_TRUE(has("--tid"));
  EXPECT_FALSE(has("--pid"));
}

}  // namespace
}  // namespace tacho::report
