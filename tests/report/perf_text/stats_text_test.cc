#include <gtest/gtest.h>

#include <string>

#include "report/perf_text/header_text.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

using namespace format;

std::string stats(const test::CaptureBuilder& builder, Diagnostics& diagnostics) {
  const test::TemporaryFile file(builder.file());
  auto reader = CaptureReader::open(file.path(), diagnostics);
  EXPECT_TRUE(reader);
  TextBuffer out;
  write_stats(out, *reader, diagnostics, Names::Safe);
  return std::string(out.view());
}

TEST(StatsText, RecordsAreCountedByTypeAndSamplesByEvent) {
  test::CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {1});
  builder.event(test::software_event(abi::kPageFaults), "faults\x1b", {2});
  builder.event(test::software_event(abi::kDummy), "dummy", {3});
  builder.comm(1, 1, "init");
  test::SampleFields sample;
  for (const std::uint64_t id : {1, 2, 1}) {
    sample.id = id;
    builder.sample(sample);
  }
  write_lost_samples(builder.data(), 5, test::software_event(abi::kPageFaults), 2);
  builder.round();
  Diagnostics diagnostics;
  EXPECT_EQ(stats(builder, diagnostics),
            "\nAggregated stats:\n"
            "           TOTAL events:          6\n"
            "            COMM events:          1  (16.7%)\n"
            "          SAMPLE events:          3  (50.0%)\n"
            "    LOST_SAMPLES events:          1  (16.7%)\n"
            "  FINISHED_ROUND events:          1  (16.7%)\n"
            "clock stats:\n"
            "          SAMPLE events:          2\n"
            "faults\\x1b stats:\n"
            "          SAMPLE events:          1\n"
            "    LOST_SAMPLES events:          5\n");
  EXPECT_FALSE(diagnostics.incomplete());
}

TEST(StatsText, ASampleOfNoEventIsCountedAndTold) {
  test::CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {1});
  builder.event(test::software_event(abi::kPageFaults), "faults", {2});
  test::SampleFields sample;
  sample.id = 99;
  builder.sample(sample);
  Diagnostics diagnostics;
  EXPECT_NE(stats(builder, diagnostics).find("SAMPLE events:          1  (100.0%)"), std::string::npos);
  EXPECT_TRUE(diagnostics.incomplete());
}

TEST(StatsText, NothingInTheCaptureIsNoDivision) {
  test::CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {1});
  Diagnostics diagnostics;
  EXPECT_EQ(stats(builder, diagnostics), "\nAggregated stats:\n           TOTAL events:          0\n");
}

}  // namespace
}  // namespace tacho::report
