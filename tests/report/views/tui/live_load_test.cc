#include "report/views/tui/live_load.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using std::chrono::seconds;

constexpr std::uint64_t kTick = 10'000'000;  // ns
constexpr ScreenSize kScreen{80, 24};

struct Load {
  LiveLoad load;
  format::EventAttr attr;
  LiveLoad::Clock::time_point now = LiveLoad::Clock::now();

  Load() {
    attr.type = abi::kSoftware;
    attr.config = abi::kCpuClock;
    attr.sample_type = abi::kSampleTid | abi::kSampleCpu | abi::kSamplePeriod;
    load.refresh(now);
  }
  Load& ticks(std::uint32_t cpu, int count, bool is_kernel, std::uint32_t pid = 7) {
    format::ByteWriter record;
    record.u32(abi::kRecordSample).u16(is_kernel ? abi::kCpumodeKernel : abi::kCpumodeUser).u16(32);
    record.u32(pid).u32(pid).u32(cpu).u32(0).u64(kTick);
    const std::vector<std::byte> bytes(record.view().begin(), record.view().end());
    for (int i = 0; i < count; ++i) load.take_sample(format::whole_record(bytes, std::endian::native), attr);
    return *this;
  }
  // The head's lines after another second.
  std::vector<std::string> lines(ScreenSize size = kScreen) {
    load.refresh(now += seconds(1));
    const std::uint16_t height = load.height(size);
    const Frame frame =
        load.with_head(Frame({size.width, static_cast<std::uint16_t>(size.height - height)}), size);
    std::vector<std::string> lines;
    for (std::size_t row = 0; row < height; ++row) lines.push_back(text_of(frame.rows[row]));
    return lines;
  }
};

TEST(LiveLoad, ABarForEachCpuAndTheirMean) {
  Load load;
  const auto lines = load.ticks(0, 50, false).ticks(0, 24, true).ticks(1, 90, false, 0).lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find("  0 ["), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(" 74 %"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("  1 ["), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("  0 %"), std::string::npos) << "idle: " << lines[0];
  EXPECT_NE(lines[1].find("37 % of 2 CPUs: user 25 %  kernel 12 %"), std::string::npos) << lines[1];
}

TEST(LiveLoad, OnlyCpusWithSamplesAreShown) {
  Load load;
  const auto lines = load.ticks(5, 50, false).lines();
  EXPECT_EQ(lines[0].substr(0, 5), "  5 [") << lines[0];
  EXPECT_NE(lines[1].find("50 % of 1 CPU"), std::string::npos) << lines[1];
}

TEST(LiveLoad, TheStripHasAColumnForEachRefresh) {
  Load load;
  (void)load.ticks(0, 100, false).lines();
  (void)load.ticks(0, 0, false).lines();
  const auto lines = load.ticks(0, 50, false).lines();
  EXPECT_NE(lines.back().find("█ ▄  50 % of 1 CPU"), std::string::npos) << lines.back();
}

TEST(LiveLoad, ManyCpusHaveAColumnEach) {
  Load load;
  for (std::uint32_t cpu = 0; cpu < 20; ++cpu)
    load.ticks(cpu, cpu == 19 ? 100 : 0, false).ticks(cpu, 1, false, 0);
  const auto lines = load.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "CPUs " + std::string(19, ' ') + "█");
}

TEST(LiveLoad, WithoutAClockOrRoomThereIsNoHead) {
  Load load;
  load.attr.config = 2;  // page-faults
  EXPECT_TRUE(load.ticks(0, 50, false).lines().empty());
  load.attr.config = abi::kCpuClock;
  EXPECT_EQ(load.ticks(0, 50, false).lines().size(), 2U);
  EXPECT_TRUE(load.lines({80, 11}).empty());
  EXPECT_TRUE(load.lines({30, 24}).empty());
}

TEST(LiveLoad, DamagedNumbersOfCpusAreLeftOut) {
  Load load;
  EXPECT_TRUE(load.ticks(4'000'000'000, 1, false).lines().empty());
}

}  // namespace
}  // namespace tacho::report
