#include "report/views/convert/convert.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "format/base/file.h"
#include "format/container/capture_reader.h"
#include "format/records/record.h"
#include "tests/support/capture_builder.h"
#include "tests/support/foreign_capture.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using test::CaptureBuilder;
using test::SampleFields;
using FileBytes = std::vector<std::byte>;

// What a capture says, without where it says it.
struct Read {
  std::vector<std::string> records;  // the kernel's and marks: type, then all bytes after the header
  std::vector<std::string> events;   // names
  std::vector<std::vector<std::uint64_t>> ids;
  format::Features features;
  format::Diagnostics diagnostics;
  bool is_pipe = false;
  std::size_t count(std::string_view type) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(records, [&](const std::string& text) { return text.starts_with(type); }));
  }
};

class ConvertTest : public testing::Test {
 protected:
  ConvertTest() {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-convert.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    options_.output = folder_ / "out.data";
  }
  ~ConvertTest() override { std::filesystem::remove_all(folder_); }

  // Two events; a thread, its mapping, samples of both in two rounds.
  static CaptureBuilder capture() {
    CaptureBuilder builder;
    builder.event(test::software_event(abi::kCpuClock), "cpu-clock", {11, 12});
    builder.event(test::software_event(abi::kPageFaults), "page-faults", {21, 22});
    builder.text_feature(abi::kFeatureHostname, "host");
    builder.comm(5, 5, "five").mmap(5, 0x1000, 0x1000, 0, "/bin/five");
    for (std::uint64_t i = 0; i < 10; ++i) {
      builder.sample(sample_at(1000 + i * 100, 11)).sample(sample_at(1050 + i * 100, 21), 1);
      if (i % 5 == 4) builder.round();
    }
    return builder;
  }
  static SampleFields sample_at(std::uint64_t time, std::uint64_t id) {
    SampleFields fields;
    fields.id = id;
    fields.ip = 0x1234;
    fields.pid = fields.tid = 5;
    fields.time = time;
    return fields;
  }

  Result<> run(const FileBytes& input) {
    const test::TemporaryFile file(input);
    options_.input = file.path();
    return convert_file();
  }
  Result<> convert_file() {
    diagnostics_ = {};
    auto target = CaptureTarget::open({.input = options_.input, .output = options_.output});
    if (!target) return std::move(target.error());
    return convert(options_, target->here(), diagnostics_);
  }
  FileBytes output() const { return *format::read_file(options_.output); }
  static Read read(const FileBytes& bytes) {
    const test::TemporaryFile file(bytes);
    Read read;
    format::ReadOptions options;
    options.keep_all = true;
    auto reader = format::CaptureReader::open(file.path(), read.diagnostics, options);
    EXPECT_TRUE(reader) << reader.error().what;
    if (!reader) return read;
    while (const auto record = reader->next_record()) {
      const bool is_head = record->type >= abi::kRecordUserStart &&
                           record->type != abi::kRecordFinishedRound && record->type != abi::kRecordIdIndex &&
                           record->type != abi::kRecordAuxtrace && record->type < 100;
      if (is_head) continue;
      read.records.push_back(std::string(format::record_name(record->type)) + " " +
                             std::string(format::as_text(record->bytes.subspan(4))));
      for (format::Bytes piece; !(piece = reader->next_payload()).empty();)
        read.records.back() += format::as_text(piece);
    }
    for (const format::Event& event : reader->events()) {
      read.events.push_back(event.name);
      read.ids.push_back(event.ids);
    }
    read.features = reader->features();
    read.is_pipe = reader->layout().is_pipe;
    return read;
  }
  // Converts and reads; everything must have gone well.
  Read converted(const FileBytes& input) {
    const auto done = run(input);
    EXPECT_TRUE(done) << done.error().what;
    EXPECT_FALSE(diagnostics_.incomplete());
    Read result = read(output());
    EXPECT_TRUE(result.diagnostics.findings().empty());
    return result;
  }

  std::filesystem::path folder_;
  ConvertOptions options_;
  format::Diagnostics diagnostics_;
};

TEST_F(ConvertTest, EveryFormHoldsTheSame) {
  const FileBytes file = capture().file();
  const Read before = read(file);
  ASSERT_EQ(before.records.size(), 24u);
  FileBytes input = file;
  for (const CaptureForm form :
       {CaptureForm::Pipe, CaptureForm::File, CaptureForm::Pipe, CaptureForm::Pipe}) {
    for (const Packing packing : {Packing::Compressed, Packing::AsItIs, Packing::Plain}) {
      options_.form = form;
      options_.packing = packing;
      const Read after = converted(input);
      input = output();
      EXPECT_EQ(after.records, before.records);
      EXPECT_EQ(after.events, before.events);
      EXPECT_EQ(after.ids, before.ids);
      EXPECT_EQ(after.is_pipe, form == CaptureForm::Pipe);
      EXPECT_EQ(after.features.environment.hostname, "host");
      EXPECT_EQ(after.features.environment.compression.has_value(), packing != Packing::Plain);
    }
  }
}

TEST_F(ConvertTest, APlainCopyOfACopyIsTheCopy) {
  converted(capture().file());
  const FileBytes once = output();
  converted(once);
  EXPECT_EQ(output(), once);
}

TEST_F(ConvertTest, TheOtherByteOrderComesOutAsThisOne) {
  for (const bool is_pipe : {false, true}) {
    options_.form = is_pipe ? CaptureForm::Pipe : CaptureForm::File;
    converted(is_pipe ? capture().pipe() : capture().file());
    const FileBytes native = output();
    const test::TemporaryFile file(native);
    const FileBytes foreign = test::ForeignCapture::of(file.path(), native);
    ASSERT_FALSE(foreign.empty());
    ASSERT_NE(foreign, native);
    const Read as_foreign = read(foreign);
    EXPECT_EQ(as_foreign.events, read(native).events);
    converted(foreign);
    EXPECT_EQ(output(), native);
  }
}

TEST_F(ConvertTest, WhatIsUnknownPassesAndInTheOtherOrderIsSaidToBeLost) {
  CaptureBuilder builder = capture();
  builder.data().u32(111).u16(7).u16(16).u64(42);
  builder.feature(99, FileBytes(5, std::byte{1}));
  const Read after = converted(builder.file());
  EXPECT_EQ(after.records.size(), 25u);
  ASSERT_TRUE(after.features.present[99]);
  const FileBytes native = output();
  const test::TemporaryFile file(native);
  // The unknown record cannot be turned, so the capture is made without it.
  CaptureBuilder plain = capture();
  plain.feature(99, FileBytes(5, std::byte{1}));
  const FileBytes known = plain.file();
  const test::TemporaryFile known_file(known);
  const FileBytes foreign = test::ForeignCapture::of(known_file.path(), known);
  ASSERT_FALSE(foreign.empty());
  ASSERT_TRUE(run(foreign));
  EXPECT_TRUE(diagnostics_.incomplete()) << "section 99 is of no known kind";
  EXPECT_FALSE(read(output()).features.present[99]);
}

TEST_F(ConvertTest, TimesChooseSamplesAndNothingElse) {
  options_.times = "0.000001400,0.000001650";
  const Read after = converted(capture().file());
  EXPECT_EQ(after.count("SAMPLE"), 6u) << "1400 to 1650 in steps of 50, both ends";
  EXPECT_EQ(after.count("COMM"), 1u);
  EXPECT_EQ(after.count("MMAP2"), 1u);
  EXPECT_EQ(after.count("FINISHED_ROUND"), 2u);
}

TEST_F(ConvertTest, PartsOfTheCaptureMoveItsTimes) {
  CaptureBuilder builder = capture();
  format::ByteWriter times;
  times.u64(1000).u64(2000);
  builder.feature(abi::kFeatureSampleTime, std::move(times).take_bytes());
  options_.times = "50%-100%";
  const Read after = converted(builder.file());
  EXPECT_EQ(after.count("SAMPLE"), 10u);
  EXPECT_EQ(after.features.environment.sample_time, std::pair(std::uint64_t{1500}, std::uint64_t{2000}));
}

// A live COMM record of an event, with the trailer that its attr says.
void put_comm(CaptureBuilder& builder, const format::EventAttr& attr, std::uint64_t id) {
  format::ByteWriter& data = builder.data();
  const std::size_t start = data.size();
  format::write_comm(data, {5, 6, "five", false}, 0);
  format::write_sample_id(data, {5, 6, 777, id, 0, 1}, attr);
  data.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(data.size() - start));
}

TEST_F(ConvertTest, ThreadsOfAnEventThatGoesBecomeAnothers) {
  const auto first = test::software_event(abi::kCpuClock);
  const auto second = test::software_event(abi::kPageFaults, abi::kSampleStreamId);  // a longer trailer
  CaptureBuilder builder;
  builder.event(first, "cpu-clock", {11, 12}).event(second, "page-faults", {21, 22});
  builder.comm(7, 7, "made at the start");
  put_comm(builder, first, 12);
  put_comm(builder, second, 22);
  builder.sample(sample_at(1000, 11));
  options_.events = {"page-faults"};
  ASSERT_TRUE(run(builder.file()));
  format::Diagnostics diagnostics;
  auto reader = format::CaptureReader::open(options_.output, diagnostics);
  ASSERT_TRUE(reader);
  ASSERT_EQ(reader->events().size(), 1u);
  EXPECT_EQ(reader->events()[0].name, "page-faults");
  EXPECT_EQ(reader->events()[0].attr, second);
  std::vector<format::SampleId> ids;
  std::vector<std::string> names;
  while (const auto record = reader->next_record()) {
    ASSERT_EQ(record->type, std::uint32_t{abi::kRecordComm});
    const auto parsed = format::parse_record(*record, second);
    ASSERT_TRUE(parsed);
    names.emplace_back(std::get<format::CommRecord>(*parsed).name);
    ids.push_back(format::parse_sample_id(*record, second));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"made at the start", "five", "five"}));
  EXPECT_EQ(ids[0].id, 0u) << "still the first event's, which is another now";
  EXPECT_EQ(ids[0].time, 0u);
  EXPECT_EQ(ids[1].id, 21u);
  EXPECT_EQ(ids[1].time, 777u);
  EXPECT_EQ(ids[1].cpu, 1u);
  EXPECT_EQ(ids[2].id, 22u) << "its own event stays";
}

TEST_F(ConvertTest, RecordsThatNameEventsForgetThoseThatGo) {
  CaptureBuilder builder = capture();
  format::ByteWriter& data = builder.data();
  data.u32(abi::kRecordIdIndex).u16(0).u16(8 + 8 + 4 * 32);
  data.u64(4);
  for (const std::uint64_t id : {11, 12, 21, 22}) data.u64(id).u64(0).u64(0).u64(9);
  format::ByteWriter groups;
  groups.u32(1).header_string("{all}").u32(0).u32(2);
  builder.feature(abi::kFeatureGroupDesc, std::move(groups).take_bytes());
  options_.events = {"page-faults"};
  const Read after = converted(builder.file());
  EXPECT_EQ(after.events, std::vector<std::string>{"page-faults"});
  EXPECT_EQ(after.count("SAMPLE"), 10u);
  EXPECT_TRUE(after.features.environment.groups.empty()) << "its leader is gone";
  ASSERT_EQ(after.features.event_descriptions.size(), 1u);
  ASSERT_EQ(after.count("ID_INDEX"), 1u);
  const std::string& index = after.records.back();
  EXPECT_EQ(index.size(), std::string("ID_INDEX ").size() + 4 + 8 + 2 * 32) << "two entries are left";
}

TEST_F(ConvertTest, AGroupWhoseLeaderHoldsTheValuesStaysWhole) {
  auto leader = test::software_event(abi::kCpuClock, abi::kSampleRead);
  leader.read_format = abi::kReadId | abi::kReadGroup;
  CaptureBuilder builder;
  builder.event(leader, "cpu-clock", {11}).event(leader, "page-faults", {21});
  builder.event(test::software_event(abi::kDummy), "dummy", {31});
  format::ByteWriter groups;
  groups.u32(1).header_string("{cpu-clock,page-faults}").u32(0).u32(2);
  builder.feature(abi::kFeatureGroupDesc, std::move(groups).take_bytes());
  options_.events = {"page-faults"};
  const Read after = converted(builder.file());
  EXPECT_EQ(after.events, (std::vector<std::string>{"cpu-clock", "page-faults"}));
  EXPECT_EQ(after.features.environment.groups.size(), 1u);
}

TEST_F(ConvertTest, WhatTheCaptureDoesNotHaveIsWrongUse) {
  options_.events = {"cycles"};
  const auto unknown = run(capture().file());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().fault, Fault::Use);
  EXPECT_NE(unknown.error().what.find("it has cpu-clock, page-faults"), std::string::npos);
  options_.events.clear();
  options_.times = "10%-20%";
  const auto no_times = run(capture().file());
  ASSERT_FALSE(no_times);
  EXPECT_EQ(no_times.error().fault, Fault::Use);
  EXPECT_FALSE(std::filesystem::exists(options_.output)) << "nothing was asked that could be written";
}

TEST_F(ConvertTest, TheIndexOfTraceDataPointsAtTheCopys) {
  CaptureBuilder builder = capture();
  for (std::uint64_t i = 0; i < 2; ++i) {
    builder.data().u32(abi::kRecordAuxtrace).u16(0).u16(48).u64(16).u64(0).u64(0).u32(0).u32(0).u32(0).u32(0);
    builder.data().u64(0x1111 + i).u64(0x2222);
  }
  format::ByteWriter index;
  index.u64(1).u64(999999).u64(48);
  builder.feature(abi::kFeatureAuxtrace, std::move(index).take_bytes());
  const Read before = read(builder.file());
  options_.form = CaptureForm::Pipe;
  const Read piped = converted(builder.file());
  EXPECT_EQ(piped.records, before.records);
  EXPECT_FALSE(piped.features.present[abi::kFeatureAuxtrace]) << "offsets mean nothing in a pipe";
  const FileBytes pipe = output();
  options_.form = CaptureForm::File;
  options_.packing = Packing::Compressed;
  const Read after = converted(pipe);
  EXPECT_EQ(after.records, before.records);
  ASSERT_TRUE(after.features.present[abi::kFeatureAuxtrace]);
  const FileBytes file = output();
  const auto raw = std::ranges::find(after.features.raw, std::uint32_t{abi::kFeatureAuxtrace},
                                     &format::RawSection::feature);
  format::Cursor entries(raw->bytes);
  ASSERT_EQ(entries.u64(), 2u);
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::uint64_t offset = entries.u64();
    EXPECT_EQ(entries.u64(), 48u);
    format::Cursor record(format::Bytes(file).subspan(offset));
    EXPECT_EQ(record.u32(), std::uint32_t{abi::kRecordAuxtrace});
    record.skip(44);
    EXPECT_EQ(record.u64(), 0x1111 + i);
  }
}

TEST_F(ConvertTest, ACutCaptureBecomesAWholeOneOfWhatIsLeft) {
  const FileBytes whole = capture().file();
  const Read before = read(whole);
  std::size_t most = 0;
  for (std::size_t size = 0; size < whole.size(); size += 40) {
    const FileBytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto done = run(cut);
    if (!done) {
      EXPECT_EQ(done.error().fault, Fault::Input);
      continue;
    }
    EXPECT_TRUE(diagnostics_.incomplete()) << size;
    const Read after = read(output());
    EXPECT_FALSE(after.diagnostics.incomplete()) << "the copy itself is whole";
    ASSERT_LE(after.records.size(), before.records.size());
    EXPECT_TRUE(std::equal(after.records.begin(), after.records.end(), before.records.begin()));
    EXPECT_GE(after.records.size(), most);
    most = after.records.size();
  }
  EXPECT_EQ(most, before.records.size());
}

TEST_F(ConvertTest, AFolderBecomesOneFileWithoutItsRounds) {
  CaptureBuilder builder = capture();
  format::ByteWriter version;
  version.u64(1);
  builder.feature(abi::kFeatureDirFormat, std::move(version).take_bytes());
  const std::filesystem::path folder = folder_ / "dir.data";
  std::filesystem::create_directory(folder);
  const auto write = [&](const char* name, format::Bytes bytes) {
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  write("data", builder.file());
  CaptureBuilder thread = capture();
  write("data.0", thread.data().view());
  options_.input = folder;
  const auto done = convert_file();
  ASSERT_TRUE(done) << done.error().what;
  const Read after = read(output());
  EXPECT_EQ(after.count("SAMPLE"), 40u);
  EXPECT_EQ(after.count("FINISHED_ROUND"), 0u) << "records of data.0 belong before them";
  EXPECT_FALSE(after.features.present[abi::kFeatureDirFormat]);
}

TEST_F(ConvertTest, APipeThatDescribesItselfLateLosesNothing) {
  FileBytes pipe = capture().pipe();
  format::ByteWriter late;
  late.u32(abi::kRecordHeaderFeature).u16(0).u16(16 + 68).u64(abi::kFeatureOsRelease).header_string("6.18");
  late.u32(abi::kRecordEventUpdate).u16(0).u16(32).u64(2).u64(21).padded_text("faults", 8);
  pipe.insert(pipe.end(), late.view().begin(), late.view().end());
  for (const CaptureForm form : {CaptureForm::File, CaptureForm::Pipe}) {
    options_.form = form;
    const Read after = converted(pipe);
    EXPECT_EQ(after.events, (std::vector<std::string>{"cpu-clock", "faults"}));
    EXPECT_EQ(after.features.environment.os_release, "6.18");
  }
}

TEST_F(ConvertTest, AnAttrLargerThanPerfsKeepsItsTail) {
  auto attr = test::software_event(abi::kCpuClock);
  attr.size = 152;
  attr.config3 = 7;
  attr.tail = FileBytes(8, std::byte{9});
  format::ByteWriter pipe;
  pipe.u64(abi::kMagic).u64(16);
  pipe.u32(abi::kRecordHeaderAttr).u16(0).u16(8 + 152 + 8);
  format::write_event_attr(pipe, attr, 152);
  pipe.u64(1);
  for (const CaptureForm form : {CaptureForm::File, CaptureForm::Pipe}) {
    options_.form = form;
    ASSERT_TRUE(run(FileBytes(pipe.view().begin(), pipe.view().end())));
    format::Diagnostics diagnostics;
    auto reader = format::CaptureReader::open(options_.output, diagnostics);
    ASSERT_TRUE(reader);
    reader->next_record();
    ASSERT_EQ(reader->events().size(), 1u);
    EXPECT_EQ(reader->events()[0].attr, attr);
  }
}

TEST_F(ConvertTest, PlainCutsAttrsToWhatPerf6Knows) {
  for (const bool has_values : {false, true}) {
    auto attr = test::software_event(abi::kCpuClock);
    attr.size = 144;
    if (has_values) attr.config3 = 7;
    format::ByteWriter pipe;
    pipe.u64(abi::kMagic).u64(16);
    pipe.u32(abi::kRecordHeaderAttr).u16(0).u16(8 + 144 + 8);
    format::write_event_attr(pipe, attr, 144);
    pipe.u64(1);
    options_.packing = Packing::Plain;
    ASSERT_TRUE(run(FileBytes(pipe.view().begin(), pipe.view().end())));
    EXPECT_EQ(std::ranges::count(diagnostics_.findings(), format::Damage::Note, &format::Finding::kind),
              has_values ? 1 : 0)
        << "what is lost is said";
    format::Diagnostics diagnostics;
    auto reader = format::CaptureReader::open(options_.output, diagnostics);
    ASSERT_TRUE(reader);
    reader->next_record();
    ASSERT_EQ(reader->events().size(), 1u);
    EXPECT_EQ(reader->events()[0].attr.size, format::kCompatibleAttrSize);
    EXPECT_EQ(reader->events()[0].attr.config3, 0u);
    std::filesystem::remove(options_.output);
  }
}

TEST_F(ConvertTest, APipeWithoutEventsIsUnreadable) {
  format::ByteWriter pipe;
  pipe.u64(abi::kMagic).u64(16);
  const auto done = run(FileBytes(pipe.view().begin(), pipe.view().end()));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().fault, Fault::Input);
  EXPECT_FALSE(std::filesystem::exists(options_.output));
}

}  // namespace
}  // namespace tacho::report
