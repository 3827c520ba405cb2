#include "report/tables/capture_tables.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "format/codec/compression.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using test::CaptureBuilder;
using test::SampleFields;

class CaptureTablesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tacho-tables-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TableFiles files(RowFormat form = RowFormat::Csv) const {
    return {.folder = folder_, .capture_id = "one", .form = form, .packing = TablePacking::Plain};
  }
  // Writes the tables of a capture.
  void write(const std::vector<std::byte>& bytes, const TableFiles& to) {
    const test::TemporaryFile file(bytes);
    SessionOptions options;
    options.input = file.path();
    auto session = Session::open(options);
    ASSERT_TRUE(session);
    const auto id = id_of_capture(options.input);
    ASSERT_TRUE(id);
    auto output = TableOutput::open(to);
    ASSERT_TRUE(output);
    const auto shared = std::make_shared<TableOutput>(std::move(*output));
    TextOutput out(
        OutputFile(sandbox::Output{.write = [&](std::string_view more) { return shared->write(more); },
                                   .finish = [&] { return shared->finish(); },
                                   .is_reader_gone = [] { return false; }}));
    TableStream stream(out, to.form);
    CaptureTables tables(*session, stream, *id, "a.data", {.host = "", .service = "shop"});
    tables.prepare();
    session->run(tables);
    tables.finish();
    ASSERT_TRUE(out.finish());
  }
  std::string content(TableId table, const TableFiles& of) const {
    std::ifstream in(of.path_of(table), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  using Rows = std::vector<std::map<std::string, std::string>>;
  // Of tables whose cells have no quotes but around lists.
  Rows rows(TableId table, const TableFiles& of) const {
    Rows rows;
    std::istringstream in(content(table, of));
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      auto& row = rows.emplace_back();
      std::size_t at = 0;
      for (const std::string_view column : layout_of(table).columns) {
        const char end = line[at] == '"' ? '"' : ',';
        if (end == '"') ++at;
        const std::size_t to = std::min(line.find(end, at), line.size());
        row[std::string(column)] = line.substr(at, to - at);
        at = to + (end == '"' ? 2 : 1);
      }
    }
    return rows;
  }
  std::string folder_;
};

SampleFields at(std::uint64_t time, std::vector<std::uint64_t> chain = {}) {
  SampleFields fields;
  fields.id = 1;
  fields.pid = fields.tid = 5;
  fields.time = time;
  fields.ip = chain.empty() ? 0x1000 : chain.at(1);
  fields.period = 100;
  fields.callchain = std::move(chain);
  return fields;
}

CaptureBuilder mapped_at(std::uint64_t start) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.text_feature(abi::kFeatureHostname, "web1");
  capture.comm(5, 5, "worker").mmap(5, start, 0x1000, 0, "/bin/one");
  return capture;
}

TEST_F(CaptureTablesTest, EachSampleIsARowAndEachStackIsThereOnce) {
  CaptureBuilder capture = mapped_at(0x1000);
  const std::uint64_t user = abi::kContextUser;
  capture.sample(at(10, {user, 0x1010, 0x1020})).sample(at(20, {user, 0x1010, 0x1020}));
  capture.sample(at(30, {user, 0x1030}));
  write(capture.file(), files());
  const Rows samples = rows(TableId::Samples, files()), stacks = rows(TableId::Stacks, files());
  ASSERT_EQ(samples.size(), 3U);
  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(samples[0].at("stack_id"), samples[1].at("stack_id"));
  EXPECT_EQ(samples[0].at("stack_id"), stacks[0].at("stack_id"));
  EXPECT_EQ(samples[2].at("stack_id"), stacks[1].at("stack_id"));
  EXPECT_EQ(samples[0].at("value"), "100");
  EXPECT_EQ(samples[0].at("unit"), "ns");
  EXPECT_EQ(samples[0].at("comm"), "worker");
  EXPECT_EQ(samples[0].at("host"), "web1");
  EXPECT_EQ(samples[0].at("service"), "shop");
  EXPECT_EQ(stacks[0].at("depth"), "2");
  // Every frame of a stack has its row.
  std::set<std::string> frames;
  for (const auto& frame : rows(TableId::Frames, files())) frames.insert(frame.at("frame_id"));
  EXPECT_EQ(frames.size(), 3U);
  EXPECT_TRUE(frames.contains(stacks[1].at("frame_ids").substr(1, stacks[1].at("frame_ids").size() - 2)));
  const Rows captures = rows(TableId::Captures, files());
  ASSERT_EQ(captures.size(), 1U);
  EXPECT_EQ(captures[0].at("samples"), "3");
  EXPECT_EQ(captures[0].at("capture_id"), samples[0].at("capture_id"));
}

TEST_F(CaptureTablesTest, StacksOfOtherProcessesAndHostsHaveOneId) {
  std::set<std::string> ids;
  for (const std::uint64_t start : {0x1000U, 0x7f000U}) {
    CaptureBuilder capture = mapped_at(start);
    capture.sample(at(10, {abi::kContextUser, start + 0x10, start + 0x20}));
    write(capture.file(), files());
    ids.insert(rows(TableId::Samples, files()).at(0).at("stack_id"));
  }
  EXPECT_EQ(ids.size(), 1U);
}

TEST_F(CaptureTablesTest, ASampleWithoutACallChainHasAStackOfOneFrame) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.mmap(5, 0x1000, 0x1000, 0, "/bin/one").sample(at(10)).sample(at(20));
  write(capture.file(), files());
  ASSERT_EQ(rows(TableId::Stacks, files()).size(), 1U);
  EXPECT_EQ(rows(TableId::Stacks, files()).at(0).at("depth"), "1");
}

TEST_F(CaptureTablesTest, NamesCannotBreakOutOfTheirCells) {
  CaptureBuilder capture = mapped_at(0x1000);
  capture.comm(5, 5, "a\",\n\\N").sample(at(10));
  write(capture.file(), files());
  EXPECT_NE(content(TableId::Samples, files()).find(",\"a\"\",\\x0a\\N\","), std::string::npos)
      << content(TableId::Samples, files());
  write(capture.file(), files(RowFormat::Json));
  EXPECT_NE(content(TableId::Samples, files(RowFormat::Json)).find("\"comm\":\"a\\\",\\\\x0a\\\\N\","),
            std::string::npos)
      << content(TableId::Samples, files(RowFormat::Json));
}

TEST_F(CaptureTablesTest, TheStreamMayBeTornAnywhereAndBegunAnew) {
  std::string stream;
  // A piece is its table, four bytes of size, and the bytes.
  const auto piece = [&stream](char table, std::string_view bytes) {
    stream += std::string{table, static_cast<char>(bytes.size()), '\0', '\0', '\0'} + std::string(bytes);
  };
  piece(0, "cap");
  piece(1, "ab");
  piece(1, "c");
  for (std::size_t size = 1; size <= stream.size(); ++size) {
    auto output = TableOutput::open(files());
    ASSERT_TRUE(output);
    ASSERT_TRUE(output->write(stream));
    ASSERT_TRUE(output->restart());
    for (std::size_t from = 0; from < stream.size(); from += size)
      ASSERT_TRUE(output->write(std::string_view(stream).substr(from, size)));
    ASSERT_TRUE(output->finish());
    EXPECT_EQ(content(TableId::Captures, files()), "cap");
    EXPECT_EQ(content(TableId::Samples, files()), "abc");
  }
}

TEST_F(CaptureTablesTest, AStreamOfAnotherTableIsRefused) {
  auto output = TableOutput::open(files());
  ASSERT_TRUE(output);
  EXPECT_FALSE(output->write(std::string{7, 1, 0, 0, 0, 'x'}));
  EXPECT_FALSE(std::filesystem::exists(files().path_of(TableId::Samples))) << "before it is complete";
}

TEST_F(CaptureTablesTest, PackedTablesAreOneFrame) {
  TableFiles packed = files();
  packed.packing = TablePacking::Zstd;
  CaptureBuilder capture = mapped_at(0x1000);
  for (std::uint64_t i = 0; i < 1000; ++i) capture.sample(at(i));
  write(capture.file(), files());
  write(capture.file(), packed);
  const std::string plain = content(TableId::Samples, files()), frame = content(TableId::Samples, packed);
  std::vector<std::byte> inflated(plain.size());
  ASSERT_TRUE(format::inflate_into(std::as_bytes(std::span(frame)), inflated));
  EXPECT_EQ(format::as_text(inflated), plain);
  EXPECT_LT(frame.size() * 10, plain.size());
}

TEST(ContentIds, AReturnAddressIsTheCallBeforeIt) {
  symbolize::Module module;
  module.path = "/bin/one";
  symbolize::Mapping mapping;
  mapping.module = &module;
  mapping.start = 0x1000;
  mapping.end = 0x2000;
  Location called, caller;
  called.mapping = caller.mapping = &mapping;
  called.ip = {0x1010};
  caller.ip = {0x1011};
  caller.is_caller = true;
  EXPECT_EQ(id_of_frame(place_of(called), {}), id_of_frame(place_of(caller), {}));
}

TEST(ContentIds, CodeMadeAtRunTimeIsOfOneCapture) {
  symbolize::Module module;
  module.kind = symbolize::ModuleKind::Anonymous;
  module.path = "//anon";
  symbolize::Mapping mapping;
  mapping.module = &module;
  mapping.start = 0x1000;
  mapping.end = 0x2000;
  Location location;
  location.mapping = &mapping;
  location.ip = {0x1010};
  const FramePlace place = place_of(location);
  EXPECT_TRUE(place.is_of_capture);
  EXPECT_NE(id_of_frame(place, {1, 1}), id_of_frame(place, {1, 2}));
}

TEST(ContentIds, ABuildIdCountsAndNotThePath) {
  symbolize::Module one, other;
  one.path = "/bin/one";
  other.path = "/copy/one";
  one.build_id.size = other.build_id.size = 20;
  one.build_id.bytes[0] = other.build_id.bytes[0] = 7;
  const FramePlace here{.module = &one, .offset = 16}, there{.module = &other, .offset = 16};
  EXPECT_EQ(id_of_frame(here, {}), id_of_frame(there, {}));
  other.build_id.bytes[0] = 8;
  EXPECT_NE(id_of_frame(here, {}), id_of_frame(there, {}));
}

}  // namespace
}  // namespace tacho::report
