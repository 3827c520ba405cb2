#include "report/profile/weight.h"

#include <gtest/gtest.h>

#include "report/profile/distribution.h"
#include "report/samples/session.h"
#include "report/views/hist/hist_sink.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {

namespace {

namespace abi = format::abi;

// Samples of a BPF event with a field "bytes" at byte 8 of its payload.
struct Weighed : Sink {
  explicit Weighed(std::string_view weight, const std::vector<std::int64_t>& bytes) : what(weight) {
    test::CaptureBuilder capture;
    capture.event(test::software_event(abi::kBpfOutput, abi::kSampleRaw), "op", {1});
    format::ByteWriter schemas;
    format::write_payload_schemas(schemas, {{"op",
                                             "op",
                                             16,
                                             {{.name = "bytes",
                                               .kind = format::FieldKind::Signed,
                                               .bit_offset = 64,
                                               .bit_size = 64,
                                               .role = "weight"}}}});
    capture.feature(abi::kFeaturePayloadSchemas, std::move(schemas).take_bytes());
    std::uint64_t time = 1;
    for (const std::int64_t value : bytes) {
      format::ByteWriter raw;
      raw.u64(0).u64(static_cast<std::uint64_t>(value)).u32(0);
      capture.sample({.id = 1, .time = ++time, .period = 3, .raw = std::move(raw).take_bytes()});
    }
    const test::TemporaryFile file(capture.file());
    SessionOptions options;
    options.input = file.path();
    auto session = Session::open(options);
    EventSchemas schemas_of(session->events(), session->features());
    WeightChoice made(what, session->events().size(), schemas_of);
    choice = &made;
    session->run(*this);
    unreadable = made.unreadable();
    unweighed = made.unweighed();
    by_role = made.chosen_by_role();
  }
  Flow on_sample(const ResolvedSample& sample) override {
    if (const auto weight = choice->of(sample)) total += *weight;
    return Flow::Continue;
  }
  std::string_view what;
  WeightChoice* choice = nullptr;
  std::uint64_t total = 0, unreadable = 0;
  Unweighed unweighed;
  std::string by_role;
};

TEST(Weight, IsThePeriodOneOrAField) {
  EXPECT_EQ(Weighed("period", {100, 200}).total, 6U);
  EXPECT_EQ(Weighed("samples", {100, 200}).total, 2U);
  const Weighed field("bytes", {100, 200});
  EXPECT_EQ(field.total, 300U);
  EXPECT_EQ(field.by_role, "");
}

TEST(Weight, WithoutAWishTheFieldOfThatRole) {
  const Weighed weighted("", {100, 200});
  EXPECT_EQ(weighted.total, 300U);
  EXPECT_EQ(weighted.by_role, "bytes");
}

TEST(Weight, CountsWhatCannotBeWeighed) {
  const Weighed below("bytes", {5, -1});
  EXPECT_EQ(below.total, 5U);
  EXPECT_EQ(below.unweighed.negative, 1U);
  EXPECT_EQ(below.unreadable + below.unweighed.damaged, 0U);
  EXPECT_EQ(Weighed("nosuch", {5, 6}).unreadable, 2U);
}

}  // namespace

namespace {

TEST(Distribution, NoughtAndOneShareTheFirstRow) {
  Distribution values;
  for (const std::int64_t value : {0, 1, 2, 3, 4, 7, 8}) values.add_value(value);
  const auto rows = values.buckets();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].low, 0);
  EXPECT_EQ(rows[0].high, 1);
  EXPECT_EQ(rows[0].count, 2u);
  EXPECT_EQ(rows[1].count, 2u);
  EXPECT_EQ(rows[2].count, 2u);
  EXPECT_EQ(rows[3].low, 8);
  EXPECT_EQ(rows[3].high, 15);
}

TEST(Distribution, RowsBeginAtTheFirstWithACount) {
  Distribution values;
  values.add_value(2097152, 3);
  const auto rows = values.buckets();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].low, 2097152);
  EXPECT_EQ(rows[0].high, 4194303);
  EXPECT_EQ(rows[0].count, 3u);
}

TEST(Distribution, PowersInPartsHoldEachNumberOnceWithoutGaps) {
  for (const int bits : {1, 2, 3, 6}) {
    std::int64_t next = -5000;
    Distribution values(0, bits);
    for (std::int64_t value = -5000; value <= 5000; ++value) values.add_value(value);
    for (const Bucket& row : values.buckets()) {
      const auto low = static_cast<std::int64_t>(row.low), high = static_cast<std::int64_t>(row.high);
      EXPECT_TRUE(low == next || next == -5000) << bits << ": " << low;
      // No row is wider than its part of the power that it begins in.
      const std::int64_t least = std::min(std::abs(low), std::abs(high));
      EXPECT_LE((high - low + 1) << bits, std::max<std::int64_t>(least, 1)
                                              << (least < (1 << bits) ? bits : 0));
      const std::int64_t counted =
          std::min<std::int64_t>(high, 5000) - std::max<std::int64_t>(low, -5000) + 1;
      EXPECT_EQ(row.count, static_cast<std::uint64_t>(counted));
      next = high + 1;
    }
    EXPECT_GT(next, 5000);
  }
}

TEST(Distribution, PowersInPartsReachTheEndsOfTheNumbers) {
  Distribution values(0, 2);
  values.add_value(kHighest);
  values.add_value(kLowest);
  values.add_value(kLowest + 1);
  const auto rows = values.buckets();
  EXPECT_EQ(rows.front().low, kLowest);
  EXPECT_EQ(rows.front().count, 1u);
  EXPECT_EQ(rows[1].count, 1u);
  EXPECT_EQ(rows[1].low, kLowest + 1);
  EXPECT_EQ(rows.back().high, kHighest);
  EXPECT_EQ(rows.back().count, 1u);
}

TEST(Distribution, RowsBetweenAreShownThoughEmpty) {
  Distribution values;
  values.add_value(4);
  values.add_value(40);
  const auto rows = values.buckets();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].low, 4);
  EXPECT_EQ(rows[1].low, 8);
  EXPECT_EQ(rows[1].count, 0u);
  EXPECT_EQ(rows[3].high, 63);
}

TEST(Distribution, NegativeValuesMirrorPositiveOnes) {
  Distribution values;
  for (const std::int64_t value : {-1, -2, -3, -4, 5}) values.add_value(value);
  const auto rows = values.buckets();
  EXPECT_EQ(rows.front().low, -7);
  EXPECT_EQ(rows.front().high, -4);
  EXPECT_EQ(rows[1].low, -3);
  EXPECT_EQ(rows[1].count, 2u);
  EXPECT_EQ(rows[2].low, -1);
  EXPECT_EQ(rows[2].high, -1);
  EXPECT_EQ(rows[3].low, 0);
}

TEST(Distribution, EveryValueFallsIntoTheRowThatHoldsIt) {
  for (const std::uint64_t step :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{1} << 62}) {
    for (const Int128 value :
         {kLowest, kLowest + 1, Int128{-1000}, Int128{-8}, Int128{-7}, Int128{-1}, Int128{0}, Int128{1},
          Int128{6}, Int128{7}, Int128{1} << 40, Int128{1} << 63, kHighest - 1, kHighest}) {
      Distribution values(step);
      values.add_value(value);
      const auto rows = values.buckets();
      ASSERT_FALSE(rows.empty());
      std::uint64_t counted = 0;
      for (const Bucket& row : rows) {
        EXPECT_LE(row.low, row.high);
        if (row.count == 0) continue;
        ++counted;
        EXPECT_LE(row.low, value) << "step " << step;
        EXPECT_GE(row.high, value) << "step " << step;
      }
      EXPECT_EQ(counted, 1u);
    }
  }
}

TEST(Distribution, AWideGapBetweenStepsIsLeftOut) {
  Distribution values(1);
  values.add_value(kLowest);
  values.add_value(0);
  values.add_value(kHighest);
  const auto rows = values.buckets();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].left_out, (std::uint64_t{1} << 63) - 1);
  EXPECT_EQ(rows[2].left_out, ~std::uint64_t{0} - 1);
}

TEST(Distribution, NumbersFrom2To63HaveARowOfTheirOwn) {
  for (const auto& [bits, low] : {std::pair(0, Int128{1} << 63), std::pair(1, Int128{3} << 62)}) {
    Distribution values(0, bits);
    values.add_value((Int128{1} << 63) - 1);
    values.add_value(kHighest, 2);
    const auto rows = values.buckets();
    EXPECT_TRUE(rows.front().high == (Int128{1} << 63) - 1);
    EXPECT_EQ(rows.front().count, 1u);
    EXPECT_TRUE(rows.back().low == low && rows.back().high == kHighest);
    EXPECT_EQ(rows.back().count, 2u);
  }
}

TEST(Distribution, AWideGapBetweenPartsOfPowersIsCounted) {
  Distribution values(0, 6);
  values.add_value(1);
  values.add_value(std::int64_t{1} << 40);
  const auto rows = values.buckets();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].left_out, 0u);
  // 2 to 63, and 64 for each of the powers from 2^6 to 2^39.
  EXPECT_EQ(rows[1].left_out, 62u + 34 * 64);
  EXPECT_EQ(rows[1].count, 1u);
}

TEST(DistributionText, LooksAsBccPrintsIt) {
  TextBuffer out;
  write_distribution(out, "kbytes", {{0, 1, 0}, {2, 3, 4}, {4, 7, 1}});
  EXPECT_EQ(out.view(),
            "     kbytes              : count     distribution\n"
            "         0 -> 1          : 0        |                                        |\n"
            "         2 -> 3          : 4        |****************************************|\n"
            "         4 -> 7          : 1        |**********                              |\n");
}

TEST(DistributionText, LongNumbersGetTheWideForm) {
  TextBuffer out;
  write_distribution(out, "ns", {{std::int64_t{1} << 40, (std::int64_t{1} << 41) - 1, 2}});
  EXPECT_EQ(out.view(),
            "               ns                            : count     distribution\n"
            "       1099511627776 -> 2199023255551        : 2        |********************|\n");
}

TEST(DistributionText, AllRowsOnlyWhereAsked) {
  std::vector<Bucket> buckets;
  for (std::int64_t i = 0; i < 1500; ++i) buckets.push_back({i, i, 1});
  buckets.push_back({1600, 1600, 1, 100});
  TextBuffer thousand, all;
  write_distribution(thousand, "ns", buckets);
  EXPECT_NE(thousand.view().find("left out: 501 rows of higher values, with 501 values"),
            std::string_view::npos);
  EXPECT_EQ(thousand.view().find("without"), std::string_view::npos);
  write_distribution(all, "ns", buckets, Rows::All);
  EXPECT_EQ(all.view().find("left out"), std::string_view::npos);
  EXPECT_NE(all.view().find("       ...    100 rows without values\n      1600 -> 1600"),
            std::string_view::npos);
}

}  // namespace

}  // namespace tacho::report
