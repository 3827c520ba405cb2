#include "format/container/pipe_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "format/container/capture_reader.h"
#include "format/records/record.h"
#include "tests/support/capture_builder.h"

namespace tacho::format {
namespace {

class PipeWriterTest : public testing::Test {
 protected:
  PipeWriterTest() {
    events_.add_event({test::software_event(abi::kBpfOutput, abi::kSampleRaw), "bigread", {1, 2}});
    events_.add_event({test::software_event(abi::kDummy), "dummy:HG", {3, 4}});
  }
  Fd output() const { return Fd(::open(file_.path().c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)); }
  // Everything read back; the events and features are in the reader then.
  CaptureReader read(Diagnostics& diagnostics, std::vector<std::uint32_t>& pids) {
    ReadOptions options;
    options.keep_all = true;
    auto reader = CaptureReader::open(file_.path(), diagnostics, options);
    EXPECT_TRUE(reader) << reader.error().what;
    while (const auto record = reader->next_record())
      if (record->type == abi::kRecordComm) pids.push_back(record->body().u32());
    return std::move(*reader);
  }

  test::TemporaryFile file_{Bytes{}};
  EventSet events_;
  Features features_;
};

TEST_F(PipeWriterTest, EventsSectionsAndRecordsAreReadBack) {
  features_.environment.hostname = "host";
  features_.environment.cache_line_size = 64;  // a number perf 6.1 does not know
  features_.environment.build_ids = {{-1, 1, *BuildId::from_hex("0102"), "[kernel.kallsyms]"}};
  features_.schemas = {{"bigread", "event", 8, {}}};
  // An attachment that shrinks to more than one record holds.
  std::string noise(200000, '\0');
  std::uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  features_.attachments = {*pack_attachment("kallsyms", "/proc/kallsyms", std::as_bytes(std::span(noise)))};
  for (const bool is_compressed : {false, true}) {
    WriteOptions options;
    if (!is_compressed) options.compression_level.reset();
    auto writer = PipeWriter::create(output(), events_, features_, options);
    ASSERT_TRUE(writer) << writer.error().what;
    ByteWriter records;
    for (std::uint32_t pid = 0; pid < 1000; ++pid) write_comm(records, {pid, pid, "name", false}, 40);
    ASSERT_TRUE(writer->write_records(records.view()));
    ASSERT_TRUE(writer->finish_round());
    Diagnostics diagnostics;
    std::vector<std::uint32_t> pids;
    const CaptureReader reader = read(diagnostics, pids);
    EXPECT_TRUE(diagnostics.findings().empty()) << Diagnostics::finding_text(diagnostics.findings()[0]);
    EXPECT_TRUE(reader.layout().is_pipe);
    ASSERT_EQ(pids.size(), 1000u);
    EXPECT_EQ(pids[999], 999u);
    ASSERT_EQ(reader.events().size(), 2u);
    EXPECT_EQ(reader.events()[0].name, "bigread");
    EXPECT_EQ(reader.events()[1].ids, (std::vector<std::uint64_t>{3, 4}));
    const Features& features = reader.features();
    EXPECT_EQ(features.environment.hostname, "host");
    EXPECT_EQ(features.environment.cache_line_size, 64u);
    EXPECT_EQ(features.environment.compression.has_value(), is_compressed);
    ASSERT_EQ(features.environment.build_ids.size(), 1u);
    EXPECT_EQ(features.environment.build_ids[0].filename, "[kernel.kallsyms]");
    EXPECT_EQ(features.schemas.size(), 1u);
    ASSERT_NE(features.attachment("kallsyms"), nullptr);
    EXPECT_EQ(features.attachment("kallsyms")->packed, features_.attachments[0].packed);
  }
}

TEST_F(PipeWriterTest, PerfIsGivenNoSectionItWouldRefuse) {
  features_.environment.hostname = "host";
  features_.environment.cache_line_size = 64;
  features_.raw = {{200, std::vector<std::byte>(5)}};
  ASSERT_TRUE(PipeWriter::create(output(), events_, features_, {}));
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file_.path(), diagnostics);
  ASSERT_TRUE(reader);
  // Nor a mark for their end: its number is the first that a perf does not know, and a later one does.
  while (const auto record = reader->next_record()) {
    if (record->type != abi::kRecordHeaderFeature) continue;
    EXPECT_LT(record->body().u64(), 32u);
  }
  EXPECT_EQ(reader->features().raw.size(), 1u) << "ours travel all the same";
}

TEST_F(PipeWriterTest, BuildIdsEndAtMultiplesOf8) {
  features_.environment.build_ids = {{-1, 1, *BuildId::from_hex("0102"), "[kernel.kallsyms]"},
                                     {1, 2, *BuildId::from_hex("0304"), "/bin/true"}};
  ASSERT_TRUE(PipeWriter::create(output(), events_, features_, {}));
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file_.path(), diagnostics);
  ASSERT_TRUE(reader);
  int count = 0;
  while (const auto record = reader->next_record()) {
    if (record->type != abi::kRecordBuildId) continue;
    ++count;
    EXPECT_EQ(record->bytes.size() % 8, 0u);
  }
  EXPECT_EQ(count, 2);
  EXPECT_TRUE(diagnostics.findings().empty());
}

TEST_F(PipeWriterTest, MoreIdsThanARecordHoldsAreRefused) {
  Event event{test::software_event(abi::kCpuClock), "cpu-clock", {}};
  for (std::uint64_t id = 1; id <= 9000; ++id) event.ids.push_back(id);
  events_.add_event(event);
  const auto writer = PipeWriter::create(output(), events_, features_, {});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().fault, Fault::Output);
  EXPECT_NE(writer.error().what.find("9000 ids"), std::string::npos);
}

TEST_F(PipeWriterTest, ALateSectionIsReadToo) {
  auto writer = PipeWriter::create(output(), events_, features_, {});
  ASSERT_TRUE(writer);
  ByteWriter section;
  section.header_string("late");
  ASSERT_TRUE(writer->write_section(abi::kFeatureHostname, section.view()));
  ASSERT_TRUE(writer->write_section(240, std::vector<std::byte>(9)));
  Diagnostics diagnostics;
  std::vector<std::uint32_t> pids;
  const CaptureReader reader = read(diagnostics, pids);
  EXPECT_EQ(reader.features().environment.hostname, "late");
  EXPECT_TRUE(reader.features().present[240]);
}

TEST_F(PipeWriterTest, APipeThatEndsWithinASectionSaysSo) {
  features_.raw = {{240, std::vector<std::byte>(100000)}};
  ASSERT_TRUE(PipeWriter::create(output(), events_, features_, {}));
  Diagnostics whole, cut;
  std::vector<std::uint32_t> pids;
  read(whole, pids);
  EXPECT_FALSE(whole.incomplete());
  std::filesystem::resize_file(file_.path(), 65536 + 1000);
  read(cut, pids);
  EXPECT_TRUE(cut.incomplete());
}

}  // namespace
}  // namespace tacho::format
