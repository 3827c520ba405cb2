#include "report/samples/filter.h"

#include <gtest/gtest.h>

namespace tacho::report {
namespace {

TEST(Filter, ReadsListsAndRangesOfNumbers) {
  const auto numbers = parse_number_list("-C", "0,2-4");
  ASSERT_TRUE(numbers);
  EXPECT_EQ(*numbers, (std::vector<std::uint32_t>{0, 2, 3, 4}));
  for (const std::string_view wrong : {"", "x", "3-1", "1,", "-1", "0-4000000000"}) {
    const auto refused = parse_number_list("-C", wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().fault, Fault::Use);
    EXPECT_TRUE(refused.error().what.starts_with("-C: '"));
  }
}

TEST(Filter, ReadsSecondsWithEitherSideOpen) {
  const auto both = parse_times("1.5,2.25", {});
  ASSERT_TRUE(both);
  EXPECT_EQ((*both)[0].first, 1'500'000'000u);
  EXPECT_EQ((*both)[0].last, 2'250'000'000u);
  const auto open = parse_times(",3", {});
  ASSERT_TRUE(open);
  EXPECT_EQ((*open)[0].first, 0u);
  for (const std::string_view wrong : {"1", "2,1", "1.0000000001,2", "a,b", "1.,2", "99999999999999999999,",
                                       "1,2,3,4", "1,2 2,3", "3,4 1,2", "1,2 "}) {
    EXPECT_FALSE(parse_times(wrong, {})) << wrong;
  }
}

TEST(Filter, ReadsSeveralRangesOfSecondsAscending) {
  const auto two = parse_times("1,2 2.5,", {});
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ((*two)[1].first, 2'500'000'000u);
  EXPECT_EQ((*two)[1].last, ~std::uint64_t{0});
}

TEST(Filter, ReadsPartsOfTheCapture) {
  format::Environment environment;
  environment.sample_time = {1000, 2000};
  const auto half = parse_times("0%-50%", environment);
  ASSERT_TRUE(half);
  EXPECT_EQ((*half)[0].first, 1000u);
  EXPECT_EQ((*half)[0].last, 1499u) << "the second half begins at 1500";
  const auto tenth = parse_times("10%/2", environment);
  ASSERT_TRUE(tenth);
  EXPECT_EQ((*tenth)[0].first, 1100u);
  EXPECT_EQ((*tenth)[0].last, 1199u);
  const auto end = parse_times("90%-100%", environment);
  ASSERT_TRUE(end);
  EXPECT_EQ((*end)[0].last, 2000u);
  const auto first = parse_times("30%", environment);
  ASSERT_TRUE(first);
  EXPECT_EQ((*first)[0].first, 1000u);
  EXPECT_EQ((*first)[0].last, 1299u);
  const auto two = parse_times("30%-40%,0%-10%", environment);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->size(), 2u) << "in any order, as perf";
  EXPECT_FALSE(parse_times("10%,20%", environment));
  EXPECT_FALSE(parse_times("50%-20%", environment));
  EXPECT_FALSE(parse_times("0%-50%", {})) << "the capture does not say when it begins";
}

TEST(Filter, RangesIncludeBothEndsAndASampleWithoutTimeIsOfAnyTime) {
  Filter filter;
  filter.times = {{10, 19}, {20, 30}};
  EXPECT_FALSE(filter.accepts_time(9));
  EXPECT_TRUE(filter.accepts_time(10));
  EXPECT_TRUE(filter.accepts_time(20));
  EXPECT_TRUE(filter.accepts_time(30));
  EXPECT_FALSE(filter.accepts_time(31));
  EXPECT_TRUE(filter.accepts_time(0));
}

TEST(Filter, SymbolsThatReadAsAddressesAreAddressesToo) {
  Filter filter;
  filter.symbols = {"main", "0x1000", "add"};
  const WantedAddresses one_each(filter);
  EXPECT_FALSE(one_each.empty());
  EXPECT_TRUE(one_each.has(0x1000));
  EXPECT_TRUE(one_each.has(0xadd));
  EXPECT_FALSE(one_each.has(0x1001));
  filter.symbol_range = 16;
  const WantedAddresses many(filter);
  EXPECT_TRUE(many.has(0x100f));
  EXPECT_FALSE(many.has(0x1010));
  EXPECT_TRUE(WantedAddresses(Filter()).empty());
}

}  // namespace
}  // namespace tacho::report
