#include "record/session/capture_series.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;
namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(const format::ByteWriter& out) {
  const format::Bytes view = out.view();
  return {view.begin(), view.end()};
}
std::vector<std::byte> record_of(std::uint32_t type, std::uint64_t word) {
  format::ByteWriter out;
  out.u32(type).u16(0).u16(16).u64(word);
  return bytes_of(out);
}

// What was written to one file: the second word of each record, in order.
struct Written {
  std::vector<std::uint64_t> words;
  bool is_closed = false, is_given_up = false;
};

class FakeOutput final : public CaptureOutput {
 public:
  explicit FakeOutput(Written& to, const std::string& path) : to_(to) { std::ofstream(path) << "x"; }
  Result<> write_plain(format::Bytes records) override { return write_records(records); }
  Result<> write_records(format::Bytes records) override {
    for (format::Cursor in(records); in.left() >= 16;) {
      in.u64();
      to_.words.push_back(in.u64());
    }
    return Done{};
  }
  Result<> finish_round() override { return Done{}; }
  Result<> close_capture(const format::Features&) override {
    to_.is_closed = true;
    return Done{};
  }
  Result<> close_after_failure() override {
    to_.is_given_up = true;
    return Done{};
  }
  std::uint64_t bytes() const override { return to_.words.size() * 16; }

 private:
  Written& to_;
};

class Series : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-series-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    path = folder + "/perf.data";
    files.reserve(20);
  }
  void TearDown() override { fs::remove_all(folder); }

  std::unique_ptr<CaptureOutput> open() { return std::make_unique<FakeOutput>(files.emplace_back(), path); }
  CaptureSeries make(std::size_t most_files = 0) {
    CaptureSeries::Callbacks callbacks;
    callbacks.describe = [this] {
      ++described;
      return Result<CaptureStart>(CaptureStart{{}, record_of(abi::kRecordComm, 1000), {}});
    };
    callbacks.open = [this](format::Features) -> Result<std::unique_ptr<CaptureOutput>> {
      if (is_refused) return output_error("no room");
      return open();
    };
    callbacks.end = [this](const RecordCounts& counts, CaptureOutput& output) {
      samples.push_back(counts.samples);
      return output.close_capture({});
    };
    return {path, most_files, open(), std::move(callbacks)};
  }
  std::size_t in_folder() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  std::string folder, path;
  std::vector<Written> files;
  std::vector<std::uint64_t> samples;
  bool is_refused = false;
  int described = 0;
};

TEST_F(Series, SidebandWhileTheNextIsPreparedIsInBoth) {
  CaptureSeries series = make();
  ASSERT_TRUE(series.write_records(record_of(abi::kRecordComm, 1)));
  ASSERT_TRUE(series.prepare_next());
  ASSERT_TRUE(series.write_records(record_of(abi::kRecordMmap2, 2)));
  ASSERT_TRUE(series.write_records(record_of(abi::kRecordSample, 3)));
  ASSERT_TRUE(series.write_records(record_of(abi::kRecordLost, 4)));
  ASSERT_TRUE(series.begin_next());
  ASSERT_TRUE(series.write_records(record_of(abi::kRecordSample, 5)));
  ASSERT_TRUE(series.finish());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].words, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(files[1].words, (std::vector<std::uint64_t>{1000, 2, 5}));
  EXPECT_TRUE(files[0].is_closed && files[1].is_closed);
  EXPECT_EQ(samples, (std::vector<std::uint64_t>{1, 1})) << "each file counts its own";
  EXPECT_EQ(series.total_bytes(), 7 * 16u);
}

TEST_F(Series, WhatRunsIsReadOnceForFilesThatFollowFast) {
  CaptureSeries series = make();
  ASSERT_TRUE(series.prepare_next());
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(series.write_records(record_of(abi::kRecordMmap2, i)));
    ASSERT_TRUE(series.prepare_next());
    ASSERT_TRUE(series.begin_next());
  }
  ASSERT_TRUE(series.finish());
  EXPECT_EQ(described, 1);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[3].words, (std::vector<std::uint64_t>{1000, 1, 2, 3})) << "and what came since";
}

TEST_F(Series, FinishedFilesAreNamedByTimeAndNeverOverOthers) {
  CaptureSeries series = make();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(series.prepare_next());
    ASSERT_TRUE(series.begin_next());
  }
  ASSERT_TRUE(series.finish());
  EXPECT_EQ(in_folder(), 6u) << "within a hundredth of a second they still have names of their own";
  EXPECT_FALSE(fs::exists(path));
  const auto names = series.take_finished();
  ASSERT_EQ(names.size(), 6u);
  EXPECT_EQ(names[0].substr(0, path.size() + 3), path + ".20");
  EXPECT_TRUE(series.take_finished().empty());
}

TEST_F(Series, OldFilesOfOursAreRemoved) {
  CaptureSeries series = make(2);
  std::ofstream(folder + "/perf.data.2001") << "of somebody else";
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(series.prepare_next());
    ASSERT_TRUE(series.begin_next());
    EXPECT_LE(in_folder(), 3u) << "two of ours";
  }
  ASSERT_TRUE(series.finish());
  EXPECT_EQ(in_folder(), 3u);
  EXPECT_TRUE(fs::exists(folder + "/perf.data.2001"));
}

TEST_F(Series, AFileThatAnotherProcessRewritesStaysOneOfTheSeries) {
  CaptureSeries series = make(2);
  ASSERT_TRUE(series.prepare_next());
  ASSERT_TRUE(series.begin_next());
  const std::string first = series.take_finished().at(0);
  const auto rewrite = [&] {
    std::ofstream(folder + "/new") << "with names";
    fs::rename(folder + "/new", first);
  };
  EXPECT_FALSE(series.begin_rewrite(folder + "/perf.data.2001")) << "it is no file of the series";
  ASSERT_TRUE(series.begin_rewrite(first));
  rewrite();
  series.end_rewrite();
  ASSERT_TRUE(series.begin_rewrite(first));
  usleep(20'000);  // names have hundredths of a second, and the next file must not get this one's
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(series.prepare_next());
    ASSERT_TRUE(series.begin_next());
  }
  EXPECT_FALSE(fs::exists(first)) << "removed, though it is another file now";
  rewrite();
  series.end_rewrite();
  EXPECT_FALSE(fs::exists(first)) << "it is not there again";
  EXPECT_FALSE(series.begin_rewrite(first));
}

TEST_F(Series, TheNextFileWaitsForTheDescription) {
  CaptureSeries series = make();
  EXPECT_FALSE(series.is_next_prepared());
  ASSERT_TRUE(series.prepare_next());
  for (int i = 0; i < 1000 && !series.is_next_prepared(); ++i) usleep(1000);
  EXPECT_TRUE(series.is_next_prepared());
  ASSERT_TRUE(series.begin_next());
  EXPECT_TRUE(series.is_next_prepared()) << "of the same description";
}

TEST_F(Series, AFailureBetweenTwoFilesHarmsNeither) {
  CaptureSeries series = make();
  ASSERT_TRUE(series.prepare_next());
  is_refused = true;
  EXPECT_FALSE(series.begin_next());
  EXPECT_TRUE(series.close_after_failure());
  EXPECT_TRUE(files[0].is_closed && !files[0].is_given_up);
}

}  // namespace

}  // namespace tacho::record
