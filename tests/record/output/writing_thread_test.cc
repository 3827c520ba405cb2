#include "record/output/writing_thread.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "format/records/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// A capture as it would be without compression: bytes, and how many records of which size went into it.
class Memory final : public CaptureOutput {
 public:
  Result<> write_plain(format::Bytes records) override { return write_records(records); }
  Result<> write_records(format::Bytes records) override {
    size += records.size();
    return Done{};
  }
  Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) override {
    if (size + records.size() + closing_room() > most_bytes) return false;
    size += records.size();
    return true;
  }
  std::uint64_t closing_room() const override { return 100; }
  Result<> finish_round() override {
    ++rounds;
    return Done{};
  }
  Result<> close_capture(const format::Features&) override { return Done{}; }
  Result<> close_after_failure() override { return Done{}; }
  std::uint64_t bytes() const override { return size; }

  std::uint64_t size = 0;
  int rounds = 0;
};

constexpr std::size_t kSampleBytes = 40;  // IDENTIFIER, IP, TID, TIME

std::vector<std::byte> samples(std::size_t count, std::uint64_t first_time) {
  std::vector<std::byte> out(count * kSampleBytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t type = abi::kRecordSample;
    const std::uint16_t size = kSampleBytes;
    const std::uint64_t time = first_time + i;
    std::byte* const at = out.data() + i * kSampleBytes;
    std::memcpy(at, &type, sizeof type);
    std::memcpy(at + 6, &size, sizeof size);
    std::memcpy(at + 32, &time, sizeof time);
  }
  return out;
}

struct Written {
  RecordCounts kept, reported;
  Limit limit = Limit::None;
  Memory output;
};

// Pieces of so many samples each, every second one the end of a round.
void write(std::uint64_t most_bytes, std::size_t pieces, std::size_t samples_each, Written& to) {
  RecordQueue queue(std::size_t{1} << 20);
  WritingThread thread(to.output, queue, {.most_bytes = most_bytes}, [&to](const RecordCounts& counts) {
    to.reported = counts;
    return Result<>(Done{});
  });
  ASSERT_TRUE(thread.start());
  RecordCounts counts;
  for (std::size_t i = 0; i < pieces; ++i) {
    Batch batch{samples(samples_each, 1000 * i), i % 2 == 1, {}};
    count_records(batch.records, counts);
    batch.counts = counts;
    while (!queue.push_batch(batch, std::chrono::milliseconds(100))) {
    }
  }
  queue.close_queue();
  EXPECT_FALSE(thread.join());
  to.kept = thread.kept();
  to.limit = thread.limit();
}

TEST(WritingThread, AnExceptionIsAFailure) {
  Memory output;
  RecordQueue queue(std::size_t{1} << 20);
  WritingThread thread(output, queue, {},
                       [](const RecordCounts&) -> Result<> { throw std::length_error("a bug"); });
  ASSERT_TRUE(thread.start());
  queue.close_queue();
  const auto failure = thread.join();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->what, "a bug");
}

TEST(WritingThread, WithoutALimitEverythingIsWritten) {
  Written all;
  write(0, 6, 100, all);
  EXPECT_EQ(all.limit, Limit::None);
  EXPECT_EQ(all.kept.samples, 600U);
  EXPECT_EQ(all.output.size, 600 * kSampleBytes);
  EXPECT_EQ(all.output.rounds, 3);
}

TEST(WritingThread, ASizeIsFilledAndNeverExceeded) {
  for (const std::uint64_t most : {5'000U, 10'100U, 11'717U, 20'000U}) {
    Written some;
    write(most, 6, 100, some);
    EXPECT_EQ(some.limit, Limit::Size) << most;
    EXPECT_LE(some.output.size + some.output.closing_room(), most);
    EXPECT_GT(some.output.size + some.output.closing_room() + 2048, most) << "pieces of pieces go in";
    EXPECT_EQ(some.kept.samples, some.output.size / kSampleBytes) << "the count is that of the file";
    EXPECT_EQ(some.reported.samples, some.kept.samples);
    EXPECT_EQ(some.reported.last_time,
              1000 * ((some.kept.samples - 1) / 100) + (some.kept.samples - 1) % 100);
  }
}

TEST(WritingThread, ASizeThatIsNotReachedChangesNothing) {
  Written all;
  write(600 * kSampleBytes + 100, 6, 100, all);
  EXPECT_EQ(all.limit, Limit::None);
  EXPECT_EQ(all.kept.samples, 600U);
}

}  // namespace
}  // namespace tacho::record
