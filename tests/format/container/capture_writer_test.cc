#include "format/container/capture_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "format/base/file.h"
#include "format/container/capture_reader.h"
#include "format/container/file_head.h"
#include "format/records/record.h"
#include "tests/support/capture_builder.h"

namespace tacho::format {
namespace {

class CaptureWriterTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-writer.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    events_.add_event({test::software_event(abi::kBpfOutput, abi::kSampleRaw), "bigread", {1, 2}});
    events_.add_event({test::software_event(abi::kDummy), "dummy:HG", {3, 4}});
    features_.environment.hostname = "host";
    features_.schemas = {{"bigread", "event", 8, {}}};
    auto attachment = pack_attachment("kallsyms", "/proc/kallsyms", std::as_bytes(std::span(kallsyms_)));
    features_.attachments = {*attachment};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "out.data"; }
  WriteOptions options() const {
    WriteOptions options;
    if (!GetParam()) options.compression_level.reset();
    return options;
  }
  static ByteWriter comms(std::uint32_t from, std::uint32_t count) {
    ByteWriter out;
    for (std::uint32_t i = 0; i < count; ++i) write_comm(out, {from + i, from + i, "name", false}, 40);
    return out;
  }
  // pids of the COMM records in the file as it is now, and what was found to complain of.
  std::vector<std::uint32_t> pids(Diagnostics& diagnostics, const std::string& file) {
    auto reader = CaptureReader::open(file, diagnostics);
    EXPECT_TRUE(reader) << reader.error().what;
    std::vector<std::uint32_t> list;
    if (!reader) return list;
    EXPECT_EQ(reader->events().size(), 2u);
    EXPECT_EQ(reader->events()[0].name, "bigread");
    EXPECT_EQ(reader->events()[1].ids, (std::vector<std::uint64_t>{3, 4}));
    EXPECT_EQ(reader->features().environment.hostname, "host");
    EXPECT_EQ(reader->features().schemas.size(), 1u);
    EXPECT_NE(reader->features().attachment("kallsyms"), nullptr);
    while (const auto record = reader->next_record())
      if (record->type == abi::kRecordComm) list.push_back(record->body().u32());
    return list;
  }

  std::filesystem::path folder_;
  EventSet events_;
  Features features_;
  std::string kallsyms_ = "ffffffff81000000 T _text\n";
};

TEST_P(CaptureWriterTest, WhatIsWrittenIsReadBack) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer) << writer.error().what;
  ASSERT_TRUE(writer->write_plain(comms(0, 2).view()));
  ASSERT_TRUE(writer->write_records(comms(2, 1000).view()));
  ASSERT_TRUE(writer->finish_round());
  Features late;
  late.environment.sample_time = {5, 6};
  late.environment.hostname = "host";
  ASSERT_TRUE(writer->close_file(late));
  Diagnostics diagnostics;
  const auto list = pids(diagnostics, path());
  ASSERT_EQ(list.size(), 1002u);
  EXPECT_EQ(list[1001], 1001u);
  EXPECT_TRUE(diagnostics.findings().empty()) << Diagnostics::finding_text(diagnostics.findings()[0]);
  Diagnostics again;
  auto reader = CaptureReader::open(path(), again);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->features().environment.sample_time->second, 6u);
  EXPECT_EQ(std::filesystem::file_size(path()), writer->file_bytes());
}

TEST_P(CaptureWriterTest, TheRatioOfItsCompressionStandsInTheHeader) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer);
  const std::uint64_t begin = writer->next_offset();
  ASSERT_TRUE(writer->write_records(comms(0, 5000).view()));
  const std::uint64_t stored = writer->next_offset() - begin;
  ASSERT_TRUE(writer->finish_round());
  ASSERT_TRUE(writer->close_file({}));
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(path(), diagnostics);
  ASSERT_TRUE(reader);
  const auto& compression = reader->features().environment.compression;
  ASSERT_EQ(compression.has_value(), GetParam());
  if (!compression) {
    EXPECT_EQ(stored, comms(0, 5000).view().size()) << "a plain file stores records as they are";
    return;
  }
  const auto all = static_cast<double>(comms(0, 5000).view().size());
  EXPECT_GT(compression->ratio, 1u);
  EXPECT_NEAR(compression->ratio, all / static_cast<double>(stored), 0.51);
  EXPECT_EQ(compression->level, 1u);
}

TEST_P(CaptureWriterTest, AfterEveryRoundACopyOfTheFileIsReadableToThere) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer);
  for (std::uint32_t round = 0; round < 5; ++round) {
    ASSERT_TRUE(writer->write_records(comms(round * 10, 10).view()));
    ASSERT_TRUE(writer->finish_round());
    const std::string copy = path() + ".copy";
    std::filesystem::copy_file(path(), copy, std::filesystem::copy_options::overwrite_existing);
    Diagnostics diagnostics;
    EXPECT_EQ(pids(diagnostics, copy).size(), (round + 1) * 10);
    ASSERT_EQ(diagnostics.findings().size(), 1u);
    EXPECT_EQ(diagnostics.findings()[0].kind, Damage::NotClosed);
  }
}

TEST_P(CaptureWriterTest, KilledBetweenTwoRoundsTheFileEndsWithTheLastWholeOne) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write_records(comms(0, 10).view()));
  ASSERT_TRUE(writer->finish_round());
  // Overwrites the table after the data, as every round does before its own is there.
  ASSERT_TRUE(writer->write_records(comms(10, 500).view()));
  Diagnostics diagnostics;
  EXPECT_EQ(pids(diagnostics, path()).size(), 10u);
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(diagnostics.findings()[0].kind, Damage::NotClosed);
}

TEST_P(CaptureWriterTest, AfterAFailureTheFileIsWholeUpToTheLastRound) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write_records(comms(0, 10).view()));
  ASSERT_TRUE(writer->finish_round());
  ASSERT_TRUE(writer->write_records(comms(10, 500).view()));
  ASSERT_TRUE(writer->close_after_failure());
  Diagnostics diagnostics;
  EXPECT_EQ(pids(diagnostics, path()).size(), 10u);
  EXPECT_TRUE(diagnostics.findings().empty());
}

// There is room for the records, but not for the feature sections at the end.
TEST_P(CaptureWriterTest, LateSectionsWithoutRoomAreNotTold) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write_records(comms(0, 10).view()));
  ASSERT_TRUE(writer->finish_round());
  Features late;
  late.environment.sample_time = {5, 6};
  late.environment.attached_programs = {{"read", "kretprobe/vfs_read", "a.bpf.o", 5, "attached"}};
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{writer->file_bytes() + 16, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const auto closed = writer->close_file(late);
  const auto ended = writer->close_after_failure();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(closed);
  ASSERT_TRUE(ended);
  Diagnostics diagnostics;
  EXPECT_EQ(pids(diagnostics, path()).size(), 10u);
  EXPECT_TRUE(diagnostics.findings().empty());
}

TEST_P(CaptureWriterTest, AClosedFileCutAfterItsDataIsSaid) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write_records(comms(0, 10).view()));
  ASSERT_TRUE(writer->finish_round());
  ASSERT_TRUE(writer->close_file({}));
  for (std::uint64_t cut = 8; cut <= 32; cut += 8) {  // the table's two entries, HOSTNAME and EVENT_DESC
    std::filesystem::resize_file(path(), writer->file_bytes() - cut);
    Diagnostics diagnostics;
    EXPECT_EQ(pids(diagnostics, path()).size(), 10u);
    EXPECT_TRUE(diagnostics.incomplete()) << cut << " bytes less";
  }
}

// perf 6.1's inject writes the sections of all feature bits again, by a table that ends at 31.
TEST_P(CaptureWriterTest, PerfSeesNoFeatureOfOurs) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write_records(comms(0, 10).view()));
  Features late;
  late.environment.sample_time = {5, 6};
  late.environment.attached_programs = {{"read", "kretprobe/vfs_read", "a.bpf.o", 5, "attached"}};
  ASSERT_TRUE(writer->close_file(late));
  const auto start = read_file(path());
  ASSERT_TRUE(start);
  const auto head = parse_file_head(*start);
  ASSERT_TRUE(head);
  for (std::uint32_t feature = 32; feature < abi::kFeatureCount; ++feature)
    EXPECT_FALSE(head->features[feature]) << feature;
  Diagnostics diagnostics;
  EXPECT_EQ(pids(diagnostics, path()).size(), 10u);
  auto reader = CaptureReader::open(path(), diagnostics);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->features().environment.attached_programs, late.environment.attached_programs);
  EXPECT_EQ(reader->features().environment.sample_time->second, 6u);
  EXPECT_TRUE(diagnostics.findings().empty());
}

TEST_P(CaptureWriterTest, AttrsStaySmallEnoughForOldPerf) {
  auto writer = CaptureWriter::create(path(), events_, features_, options());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->close_file({}));
  const auto start = read_file(path());
  ASSERT_TRUE(start);
  EXPECT_EQ(Cursor(Bytes(*start).subspan(16)).u64(), 144u);
}

INSTANTIATE_TEST_SUITE_P(PlainAndCompressed, CaptureWriterTest, testing::Bool(),
                         [](const auto& about) { return about.param ? "Compressed" : "Plain"; });

}  // namespace
}  // namespace tacho::format
