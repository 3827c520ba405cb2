#include "record/session/flight_recorder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;
namespace fs = std::filesystem;

std::vector<std::byte> kept_record(std::uint32_t type, std::uint64_t word) {
  format::ByteWriter out;
  out.u32(type).u16(0).u16(16).u64(word);
  const format::Bytes view = out.view();
  return {view.begin(), view.end()};
}

using RecordWords = std::vector<std::uint64_t>;  // the second word of each record

class MemoryOutput final : public CaptureOutput {
 public:
  explicit MemoryOutput(RecordWords& to, const std::string& path) : to_(to) { std::ofstream(path) << "x"; }
  Result<> write_plain(format::Bytes records) override { return write_records(records); }
  Result<> write_records(format::Bytes records) override {
    for (format::Cursor in(records); in.left() >= 16;) {
      in.u64();
      to_.push_back(in.u64());
    }
    return Done{};
  }
  Result<> finish_round() override { return Done{}; }
  Result<> close_capture(const format::Features&) override { return Done{}; }
  Result<> close_after_failure() override { return Done{}; }
  std::uint64_t bytes() const override { return to_.size() * 16; }

 private:
  RecordWords& to_;
};

class Flight : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-flight-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    path = folder + "/perf.data";
    files.reserve(20);
  }
  void TearDown() override { fs::remove_all(folder); }

  // What runs is described by a COMM record with the number of the description.
  FlightRecorder make(FlightRecorder::LastName last, std::size_t most_log = 1 << 20,
                      std::size_t most_files = 0) {
    CaptureSeries::Callbacks callbacks;
    callbacks.describe = [this] {
      return Result<CaptureStart>(CaptureStart{{}, kept_record(abi::kRecordComm, 1000 + ++descriptions), {}});
    };
    callbacks.open = [this](format::Features) -> Result<std::unique_ptr<CaptureOutput>> {
      return std::unique_ptr<CaptureOutput>(std::make_unique<MemoryOutput>(files.emplace_back(), path));
    };
    callbacks.end = [](const RecordCounts&, CaptureOutput& output) { return output.close_capture({}); };
    return {path,    most_files, last, {{}, kept_record(abi::kRecordComm, 1000), {}}, std::move(callbacks),
            most_log};
  }
  std::string folder, path;
  std::vector<RecordWords> files;
  std::uint64_t descriptions = 0;
};

TEST_F(Flight, NothingIsWrittenUntilASnapshotIsRequested) {
  FlightRecorder flight = make(FlightRecorder::LastName::Path);
  ASSERT_TRUE(flight.write_records(kept_record(abi::kRecordMmap2, 1)));
  EXPECT_TRUE(files.empty());
  ASSERT_TRUE(flight.write_records(kept_record(abi::kRecordSample, 2)));
  ASSERT_TRUE(flight.begin_next());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0], (RecordWords{1000, 1, 2}));
  EXPECT_FALSE(fs::exists(path)) << "a snapshot has its time in its name";
  ASSERT_TRUE(flight.write_records(kept_record(abi::kRecordComm, 3)));
  ASSERT_TRUE(flight.write_records(kept_record(abi::kRecordSample, 4)));
  ASSERT_TRUE(flight.finish());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[1], (RecordWords{1000, 1, 3, 4})) << "names of before, samples of now";
  EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(flight.total_bytes(), 7 * 16u);
}

TEST_F(Flight, SidebandIsBounded) {
  FlightRecorder flight = make(FlightRecorder::LastName::PathAndTime, 64);
  for (std::uint64_t i = 1; i <= 100; ++i)
    ASSERT_TRUE(flight.write_records(kept_record(abi::kRecordMmap2, i)));
  ASSERT_TRUE(flight.finish());
  const RecordWords& words = files.at(0);
  EXPECT_LE(words.size(), 1 + 2 * 5u) << "two intervals at most";
  EXPECT_GT(words.front(), 1000u) << "the description at the start of the older one";
  EXPECT_EQ(words.back(), 100u);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(Flight, OldSnapshotsMakeRoom) {
  FlightRecorder flight = make(FlightRecorder::LastName::PathAndTime, 1 << 20, 2);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(flight.begin_next());
  const auto in_folder = std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  EXPECT_EQ(in_folder, 2);
  EXPECT_EQ(flight.take_finished().size(), 5u);
}

}  // namespace

}  // namespace tacho::record
