#include "format/container/capture_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "format/base/file.h"
#include "format/codec/compression.h"
#include "format/container/file_head.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "tests/support/capture_builder.h"

namespace tacho::format {
namespace {

using test::CaptureBuilder;
using test::TemporaryFile;

// Three comms, two samples and a round of one event.
CaptureBuilder small_capture() {
  CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "my-clock", {7});
  builder.text_feature(abi::kFeatureHostname, "builder");
  builder.comm(1, 1, "init").comm(2, 2, "dd").comm(3, 3, "sh");
  test::SampleFields sample;
  sample.id = 7;
  sample.ip = 0x1000;
  sample.pid = sample.tid = 2;
  sample.time = 100;
  sample.callchain = {abi::kContextUser, 0x1000, 0x2000};
  builder.sample(sample);
  sample.time = 200;
  builder.sample(sample).round();
  return builder;
}

std::vector<std::uint32_t> types(CaptureReader& reader) {
  std::vector<std::uint32_t> list;
  while (const auto record = reader.next_record()) list.push_back(record->type);
  return list;
}

const std::vector<std::uint32_t> kSmallTypes{abi::kRecordComm,   abi::kRecordComm,
                                             abi::kRecordComm,   abi::kRecordSample,
                                             abi::kRecordSample, abi::kRecordFinishedRound};

TEST(CaptureReader, GivesAFilesRecordsInOrder) {
  const TemporaryFile file(small_capture().file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  EXPECT_EQ(reader->events()[0].name, "my-clock");
  EXPECT_EQ(reader->features().environment.hostname, "builder");
  EXPECT_TRUE(reader->layout().is_closed);
  EXPECT_EQ(types(*reader), kSmallTypes);
  EXPECT_TRUE(diagnostics.findings().empty());
}

TEST(CaptureReader, GivesAPipesRecordsAndItsHeader) {
  const TemporaryFile file(small_capture().pipe());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  EXPECT_TRUE(reader->layout().is_pipe);
  const auto all = types(*reader);
  ASSERT_EQ(all.size(), 3 + kSmallTypes.size());
  EXPECT_TRUE(std::ranges::equal(std::span(all).subspan(3), kSmallTypes));
  EXPECT_EQ(reader->events()[0].name, "my-clock");
  EXPECT_EQ(reader->features().environment.hostname, "builder");
}

TEST(CaptureReader, ATornFileGivesEverythingBeforeTheTear) {
  const auto whole = small_capture().file();
  std::size_t before = 0;
  for (std::size_t size = 0; size < whole.size(); size += 8) {
    const TemporaryFile file(Bytes(whole).first(size));
    Diagnostics diagnostics;
    auto reader = CaptureReader::open(file.path(), diagnostics);
    if (!reader) {
      EXPECT_NE(reader.error().what.find(file.path()), std::string::npos);
      EXPECT_EQ(before, 0u) << "once records were given, a longer file must give them too";
      continue;
    }
    const std::size_t count = types(*reader).size();
    EXPECT_GE(count, before) << size;
    EXPECT_TRUE(diagnostics.incomplete()) << "a cut to " << size << " of " << whole.size() << " was not said";
    for (const Finding& finding : diagnostics.findings())
      EXPECT_EQ(finding.count, 1u) << Diagnostics::finding_text(finding);
    before = count;
  }
  EXPECT_EQ(before, kSmallTypes.size());
}

TEST(CaptureReader, AFileNeverClosedIsReadToItsEnd) {
  auto bytes = small_capture().file();
  // What a killed perf leaves: data size 0, nothing after the data.
  std::uint64_t data[2];
  std::memcpy(data, bytes.data() + 40, sizeof data);
  bytes.resize(data[0] + data[1]);
  std::memset(bytes.data() + 48, 0, 8);
  const TemporaryFile file(bytes);
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  EXPECT_FALSE(reader->layout().is_closed);
  EXPECT_EQ(types(*reader), kSmallTypes);
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(diagnostics.findings()[0].kind, Damage::NotClosed);
}

TEST(CaptureReader, ReadsTheOtherByteOrder) {
  // A big-endian file with one event and one COMM record, written field by field.
  ByteWriter out;
  const auto be64 = [&](std::uint64_t value) { out.u64(Cursor::swapped(value)); };
  const auto be32 = [&](std::uint32_t value) { out.u32(Cursor::swapped(value)); };
  const std::uint64_t words[] = {abi::kMagic, 104, 80, 104, 80, 184, 24, 0, 0, 0, 0, 0, 0};
  for (const std::uint64_t word : words) be64(word);
  be32(1), be32(64), be64(0), be64(1000), be64(abi::kSampleIp), be64(0), out.zeros(24);  // attr
  be64(0), be64(0);                                                                      // ids
  be32(abi::kRecordComm), out.u16(0).u16(Cursor::swapped(std::uint16_t{24}));
  be32(0x102), be32(0x304);
  out.padded_text("beast", 8);
  const TemporaryFile file(out.view());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  EXPECT_EQ(reader->events()[0].attr.sample_period, 1000u);
  const auto record = reader->next_record();
  ASSERT_TRUE(record);
  const auto comm = parse_record(*record, reader->events()[0].attr);
  ASSERT_TRUE(comm);
  EXPECT_EQ(std::get<CommRecord>(*comm).tid, 0x304u);
  EXPECT_EQ(std::get<CommRecord>(*comm).name, "beast");
}

TEST(CaptureReader, InflatesCompressedRecords) {
  CaptureBuilder plain = small_capture();
  CaptureBuilder packed;
  packed.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "my-clock", {7});
  auto compressor = RecordCompressor::create(1);
  ASSERT_TRUE(compressor);
  std::vector<std::byte> records;
  ASSERT_TRUE(compressor->compress(plain.data().view(), records));
  packed.data().bytes(records);
  const TemporaryFile file(packed.file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  EXPECT_EQ(types(*reader), kSmallTypes);
  EXPECT_TRUE(diagnostics.findings().empty());
  EXPECT_EQ(reader->compressed_records(abi::kRecordCompressed), 1u);
  EXPECT_EQ(reader->compressed_records(abi::kRecordCompressed2), 0u);
}

// perf 6.17 and later: the number of packed bytes stands in front of them, zeros after.
TEST(CaptureReader, Compressed2RecordsAreInflatedAndCountedAsThemselves) {
  CaptureBuilder packed;
  packed.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "my-clock", {7});
  auto compressor = RecordCompressor::create(3);
  ASSERT_TRUE(compressor);
  std::vector<std::byte> record;
  ASSERT_TRUE(compressor->compress(small_capture().data().view(), record));
  const Bytes content = packed_bytes(Bytes(record).subspan(kRecordHeaderSize)).frames;
  const std::size_t padding = (8 - content.size() % 8) % 8;
  packed.data().u32(abi::kRecordCompressed2).u16(0x7f88);
  packed.data().u16(static_cast<std::uint16_t>(16 + content.size() + padding)).u64(content.size());
  packed.data().bytes(content).zeros(padding);
  const TemporaryFile file(packed.file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  EXPECT_EQ(types(*reader), kSmallTypes);
  EXPECT_TRUE(diagnostics.findings().empty());
  EXPECT_EQ(reader->compressed_records(abi::kRecordCompressed), 0u);
  EXPECT_EQ(reader->compressed_records(abi::kRecordCompressed2), 1u);
}

// A pipe of two comms with an AUXTRACE record between them; the trace is cut to `kept` bytes of 0xa5.
std::vector<std::byte> traced_pipe(std::uint64_t size, std::size_t kept) {
  CaptureBuilder before, after;
  for (CaptureBuilder* part : {&before, &after})
    part->event(test::software_event(abi::kCpuClock), "clock", {7});
  before.comm(1, 1, "before");
  after.comm(2, 2, "after");
  before.data().u32(abi::kRecordAuxtrace).u16(0).u16(48).u64(size).u64(0).u64(0);
  before.data().u32(0).u32(1).u32(~0U).u32(0);
  for (std::size_t i = 0; i < kept; ++i) before.data().u8(0xa5);
  if (kept == size) before.data().bytes(after.data().view());
  return before.pipe();
}

std::vector<std::uint32_t> types_behind_head(CaptureReader& reader, std::uint64_t& trace,
                                             std::size_t& given) {
  std::vector<std::uint32_t> list;
  while (const auto record = reader.next_record()) {
    if (record->type != abi::kRecordHeaderAttr && record->type != abi::kRecordEventUpdate)
      list.push_back(record->type);
    if (record->type != abi::kRecordAuxtrace) continue;
    trace = record->payload_size;
    for (Bytes piece; given != 0 && !(piece = reader.next_payload()).empty();) given += piece.size();
  }
  return list;
}

const std::vector<std::uint32_t> kTracedTypes{abi::kRecordComm, abi::kRecordAuxtrace, abi::kRecordComm};

TEST(CaptureReader, ATraceIsSteppedOverOrGivenInPieces) {
  constexpr std::size_t kTrace = 3'000'001;  // more than is read at a time
  for (const bool is_taken : {false, true}) {
    for (const bool is_stream : {false, true}) {
      const auto bytes = traced_pipe(kTrace, kTrace);
      const TemporaryFile file(bytes);
      int ends[2];
      ASSERT_EQ(::pipe(ends), 0);
      std::thread writer([&] {
        for (Bytes rest = bytes; is_stream && !rest.empty();) {
          const ssize_t count = ::write(ends[1], rest.data(), rest.size());
          if (count <= 0) break;
          rest = rest.subspan(static_cast<std::size_t>(count));
        }
        ::close(ends[1]);
      });
      {
        Diagnostics diagnostics;
        auto reader = CaptureReader::open(
            is_stream ? "/proc/self/fd/" + std::to_string(ends[0]) : file.path(), diagnostics);
        EXPECT_TRUE(reader) << reader.error().what;
        std::uint64_t trace = 0;
        std::size_t given = is_taken ? 1 : 0;
        if (reader) {
          EXPECT_EQ(types_behind_head(*reader, trace, given), kTracedTypes);
        }
        EXPECT_EQ(trace, kTrace);
        EXPECT_EQ(given, is_taken ? kTrace + 1 : 0) << is_stream;
        EXPECT_TRUE(diagnostics.findings().empty());
      }
      ::close(ends[0]);
      writer.join();
    }
  }
}

TEST(CaptureReader, ATraceOfManyGigabytesCostsNoReading) {
  constexpr std::uint64_t kTrace = 1ULL << 40;
  const auto start = traced_pipe(kTrace, 0);
  CaptureBuilder after;
  after.event(test::software_event(abi::kCpuClock), "clock", {7});
  after.comm(2, 2, "after");
  const TemporaryFile file(start);
  std::error_code refused;
  std::filesystem::resize_file(file.path(), start.size() + kTrace, refused);  // a hole
  if (refused) GTEST_SKIP() << "the file system has no files of a terabyte: " << refused.message();
  std::ofstream(file.path(), std::ios::binary | std::ios::app)
      .write(as_text(after.data().view()).data(), static_cast<std::streamsize>(after.data().size()));
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  std::uint64_t trace = 0;
  std::size_t given = 0;
  EXPECT_EQ(types_behind_head(*reader, trace, given), kTracedTypes);
  EXPECT_EQ(trace, kTrace);
  EXPECT_TRUE(diagnostics.findings().empty());
}

TEST(CaptureReader, ATraceThatEndsTooEarlyIsToldOnce) {
  const TemporaryFile file(traced_pipe(1000, 900));
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  std::uint64_t trace = 0;
  std::size_t given = 0;
  EXPECT_EQ(types_behind_head(*reader, trace, given), std::vector<std::uint32_t>{abi::kRecordComm});
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(diagnostics.findings()[0].kind, Damage::CutShort);
  EXPECT_EQ(diagnostics.findings()[0].count, 1u);
}

// The size of a trace is damaged: what follows is found by looking for it.
TEST(CaptureReader, ATraceThatIsFollowedByNoRecordIsDamage) {
  for (const std::uint64_t size : {101ULL, 1ULL << 50}) {
    auto pipe = traced_pipe(100, 100);
    const auto at = std::string(as_text(pipe)).find(std::string("\x47\0\0\0\0\0\x30\0", 8));
    ASSERT_NE(at, std::string::npos);
    std::memcpy(pipe.data() + at + 8, &size, sizeof size);
    const TemporaryFile file(pipe);
    Diagnostics diagnostics;
    auto reader = CaptureReader::open(file.path(), diagnostics);
    ASSERT_TRUE(reader) << reader.error().what;
    std::uint64_t trace = 0;
    std::size_t given = 0;
    EXPECT_EQ(types_behind_head(*reader, trace, given),
              (std::vector<std::uint32_t>{abi::kRecordComm, abi::kRecordComm}));
    EXPECT_TRUE(diagnostics.incomplete());
  }
}

TEST(CaptureReader, ManyFramesComeInTheirOrderWhoeverInflatesThem) {
  constexpr std::uint32_t kFrames = 200, kInEach = 500;
  CaptureBuilder packed;
  packed.event(test::software_event(abi::kCpuClock), "clock", {7});
  auto compressor = RecordCompressor::create(1);
  ASSERT_TRUE(compressor);
  for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
    CaptureBuilder records;
    records.event(test::software_event(abi::kCpuClock), "clock", {7});
    for (std::uint32_t i = 0; i < kInEach; ++i) records.comm(frame * kInEach + i, i * i, "name");
    std::vector<std::byte> out;
    ASSERT_TRUE(compressor->compress(records.data().view(), out));
    packed.data().bytes(out);
  }
  const TemporaryFile file(packed.file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader);
  std::uint32_t wanted = 0;
  while (const auto record = reader->next_record()) {
    ASSERT_EQ(record->body().u32(), wanted++);
    // Gives other threads time to begin with what is ahead.
    if (wanted % (20 * kInEach) == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(wanted, kFrames * kInEach);
  EXPECT_TRUE(diagnostics.findings().empty());
}

TEST(CaptureReader, ABrokenFrameCostsItselfOnly) {
  CaptureBuilder plain = small_capture();
  CaptureBuilder packed;
  packed.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "my-clock", {7});
  auto compressor = RecordCompressor::create(1);
  ASSERT_TRUE(compressor);
  std::vector<std::byte> frame;
  ASSERT_TRUE(compressor->compress(plain.data().view(), frame));
  auto broken = frame;
  broken[broken.size() - 8] ^= std::byte{0xff};
  packed.data().bytes(broken).bytes(frame);
  const TemporaryFile file(packed.file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader);
  const auto all = types(*reader);
  ASSERT_GE(all.size(), kSmallTypes.size());
  EXPECT_TRUE(std::equal(kSmallTypes.rbegin(), kSmallTypes.rend(), all.rbegin()));
  EXPECT_TRUE(diagnostics.incomplete());
}

TEST(CaptureReader, AfterARecordOfSizeZeroTheNextSoundOneIsFound) {
  CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {7});
  builder.comm(1, 1, "before");
  builder.data().zeros(40);
  builder.comm(2, 2, "after").comm(3, 3, "later");
  const TemporaryFile file(builder.file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader);
  EXPECT_EQ(types(*reader).size(), 3u);
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(diagnostics.findings()[0].kind, Damage::BadRecord);
  EXPECT_EQ(diagnostics.findings()[0].bytes, 40u);
}

TEST(CaptureReader, AHeaderThatNoRecordHasIsDamageAndTheNextSoundRecordIsFound) {
  const std::pair<std::uint32_t, std::uint16_t> impossible[] = {
      {4000, 16}, {0xffffffff, 16}, {200, 17}, {abi::kRecordComm, 20}};
  for (const auto& [type, size] : impossible) {
    CaptureBuilder builder;
    builder.event(test::software_event(abi::kCpuClock), "clock", {7});
    builder.comm(1, 1, "one");
    builder.data().u32(type).u16(0).u16(size).u64(0).u64(0);
    builder.comm(2, 2, "two").comm(3, 3, "three").round();
    const TemporaryFile file(builder.file());
    Diagnostics diagnostics;
    auto reader = CaptureReader::open(file.path(), diagnostics);
    ASSERT_TRUE(reader);
    EXPECT_EQ(types(*reader), (std::vector<std::uint32_t>{abi::kRecordComm, abi::kRecordComm,
                                                          abi::kRecordComm, abi::kRecordFinishedRound}))
        << type;
    EXPECT_TRUE(diagnostics.incomplete()) << type;
  }
}

TEST(CaptureReader, ARecordThatSwallowsTheNextOneIsTold) {
  CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {7});
  builder.comm(1, 1, "one").comm(2, 2, "two").comm(3, 3, "three");
  auto bytes = builder.file();
  const std::size_t data = bytes.size();
  Cursor head(Bytes(bytes).subspan(40));
  const auto at = static_cast<std::size_t>(head.u64());
  ASSERT_LT(at, data);
  bytes[at + 6] = std::byte{static_cast<std::uint8_t>(2 * static_cast<std::uint8_t>(bytes[at + 6]))};
  const TemporaryFile file(bytes);
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader);
  EXPECT_EQ(types(*reader).size(), 2u);
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(diagnostics.findings()[0].kind, Damage::BadRecord);
}

TEST(CaptureReader, ARecordThatSwallowsTheBareMarkAfterItIsTold) {
  EventAttr attr = test::software_event(abi::kCpuClock);
  attr.sample_type &= ~abi::kSampleIdentifier;  // the CPU and its reserved word come last
  ASSERT_TRUE(attr.samples(abi::kSampleCpu));
  CaptureBuilder builder;
  builder.event(attr, "clock", {7});
  builder.comm(1, 1, "one").round().comm(2, 2, "two");
  auto bytes = builder.file();
  const auto at = static_cast<std::size_t>(Cursor(Bytes(bytes).subspan(40)).u64());
  bytes[at + 6] = std::byte{static_cast<std::uint8_t>(8 + static_cast<std::uint8_t>(bytes[at + 6]))};
  const TemporaryFile file(bytes);
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader);
  EXPECT_EQ(types(*reader).size(), 2u);
  EXPECT_TRUE(diagnostics.incomplete());
}

TEST(CaptureReader, UnknownRecordsAreCountedAndLeftOut) {
  CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {7});
  builder.data().u32(200).u16(0).u16(16).u64(0);
  builder.comm(1, 1, "x");
  const TemporaryFile file(builder.file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader);
  EXPECT_EQ(types(*reader), (std::vector<std::uint32_t>{abi::kRecordComm}));
  EXPECT_FALSE(diagnostics.incomplete());
  EXPECT_EQ(diagnostics.findings().size(), 1u);
}

TEST(CaptureReader, ABlockKeptKeepsItsRecordsValid) {
  CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {7});
  for (std::uint32_t i = 0; i < 100000; ++i) builder.comm(i, i, "name");  // several blocks
  const TemporaryFile file(builder.file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader);
  const auto first = reader->next_record();
  const BlockRef block = reader->block();
  while (reader->next_record()) {
  }
  EXPECT_NE(reader->block(), block);
  EXPECT_EQ(first->body().u32(), 0u);
  EXPECT_EQ(text_of(first->bytes.subspan(16)), "name");
}

TEST(CaptureReader, ADirectoryIsReadFileByFile) {
  CaptureBuilder head = small_capture();
  ByteWriter version;
  version.u64(1);
  head.feature(abi::kFeatureDirFormat, std::move(version).take_bytes());
  CaptureBuilder parts[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    parts[i].event(test::software_event(abi::kCpuClock), "clock", {7});
    parts[i].comm(10 + i, 10 + i, "part");
  }
  std::string name = (std::filesystem::temp_directory_path() / "tacho-dir.XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  const auto put = [&](const char* file, Bytes bytes) {
    std::ofstream(folder / file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  put("data", head.file());
  put("data.0", parts[0].data().view());
  put("data.1", parts[1].data().view());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(folder, diagnostics);
  ASSERT_TRUE(reader) << reader.error().what;
  auto expected = kSmallTypes;
  expected.insert(expected.end(), 2, abi::kRecordComm);
  EXPECT_EQ(types(*reader), expected);
  EXPECT_TRUE(diagnostics.findings().empty());
  std::filesystem::remove_all(folder);
}

TEST(CaptureReader, WhatIsNoCaptureIsRefusedByWhatItIs) {
  const auto refused = [](Bytes content) {
    const TemporaryFile file(content);
    Diagnostics diagnostics;
    auto reader = CaptureReader::open(file.path(), diagnostics);
    EXPECT_FALSE(reader);
    return reader ? std::string() : reader.error().what.substr(file.path().size() + 2);
  };
  constexpr std::string_view kNoCapture =
      "is not perf.data: it does not start with PERFILE2; name a file that tacho record or perf record wrote";
  EXPECT_EQ(refused({}), "is empty");
  EXPECT_EQ(refused(std::as_bytes(std::span(std::string_view("#!/bin/sh\nexit 0\n")))), kNoCapture);
  EXPECT_EQ(refused(std::as_bytes(std::span(std::string_view("PERFFILE\0\0\0\0\0\0\0\0", 16)))),
            "has a header of 0 bytes, 104 were expected (72 in the oldest files, 16 in a pipe)");
  const auto whole = small_capture().file();
  EXPECT_EQ(refused(Bytes(whole).first(40)),
            "is cut short: its header ends at byte 40; copy or record it again");
  auto large = whole;
  large[22] = std::byte{4};  // of the size of event attributes, at byte 16
  EXPECT_EQ(
      refused(large),
      "has event attributes of 1125899906842768 bytes, 80 to 65536 were expected; copy or record it again");
  EXPECT_TRUE(refused(Bytes(whole).first(110)).ends_with("the file has 110; copy or record it again"));
  // What captures are sent in, by its first bytes.
  const auto text = [](std::string_view bytes) { return std::as_bytes(std::span(bytes)); };
  EXPECT_EQ(refused(text("\x1f\x8b\x08 and more than a capture's first 16")),
            "is a gzip file, not a capture: unpack it with gzip -d");
  EXPECT_EQ(refused(text("\x28\xb5\x2f\xfd")), "is a zstd file, not a capture: unpack it with zstd -d");
  EXPECT_EQ(refused(text(std::string_view("\xfd\x37zXZ\0more", 10))),
            "is a xz file, not a capture: unpack it with xz -d");
  EXPECT_TRUE(
      refused(text("BZh91AY&SY")).starts_with("is a bzip2 file, not a capture: unpack it with bzip2"));
  const std::string tar = std::string(257, 'p') + "ustar" + std::string(250, '\0');
  EXPECT_EQ(refused(text(tar)),
            "is a tar file, not a capture: unpack it with tar -xf and name the capture in it");
  EXPECT_EQ(refused(text(tar.substr(0, 261))), kNoCapture);
}

// perf 3.4 to 6.8 left misc of records of their own uninitialized.
class Noise {
 public:
  std::uint16_t next() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return state_ >> 62 == 0 ? 0x7f88 : static_cast<std::uint16_t>(state_ >> 33);
  }

 private:
  std::uint64_t state_ = 1;
};

// Puts noise into misc of all records from 64 up but BUILD_ID, where it says something. How many there were.
int add_noise(std::vector<std::byte>& capture) {
  const auto head =
      parse_file_head(Bytes(capture).first(std::min<std::size_t>(capture.size(), FileHead::kSize)));
  if (!head || head->order != std::endian::native) return 0;
  std::size_t at = head->is_pipe ? FileHead::kPipeSize : head->data.offset;
  const std::size_t end = head->is_pipe ? capture.size() : head->data.offset + head->data.size;
  Noise noise;
  int count = 0;
  while (at + kRecordHeaderSize <= end) {
    Cursor record(Bytes(capture).subspan(at));
    const std::uint32_t type = record.u32();
    record.u16();
    const std::size_t size = record.u16();
    if (size < kRecordHeaderSize) break;
    constexpr std::uint32_t kSimpleperfs = 32768;  // theirs is the upper half of the size
    if (type >= abi::kRecordUserStart && type < kSimpleperfs && type != abi::kRecordBuildId) {
      const std::uint16_t misc = noise.next();
      std::memcpy(capture.data() + at + 4, &misc, sizeof misc);
      ++count;
    }
    at += size + (type == abi::kRecordTracingData ? record.u32() : 0);
  }
  return count;
}

struct Reading {
  std::vector<std::string> records;  // without misc
  std::vector<std::string> events, findings;
};

Reading read_all(Bytes capture) {
  const TemporaryFile file(capture);
  Diagnostics diagnostics;
  Reading reading;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  EXPECT_TRUE(reader) << reader.error().what;
  if (!reader) return reading;
  while (const auto record = reader->next_record())
    reading.records.push_back(std::to_string(record->type) + std::string(as_text(record->bytes.subspan(6))));
  for (const Event& event : reader->events()) reading.events.push_back(event.name);
  for (const Finding& finding : diagnostics.findings())
    reading.findings.push_back(Diagnostics::finding_text(finding));
  return reading;
}

void expect_noise_changes_nothing(std::vector<std::byte> capture, const std::string& name,
                                  int& noisy_records) {
  const Reading sound = read_all(capture);
  noisy_records += add_noise(capture);
  const Reading noisy = read_all(capture);
  EXPECT_EQ(noisy.records, sound.records) << name;
  EXPECT_EQ(noisy.events, sound.events) << name;
  EXPECT_EQ(noisy.findings, sound.findings) << name;
}

TEST(CaptureReader, NoiseInMiscOfPerfsOwnRecordsChangesNothing) {
  int noisy_records = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TACHO_GOLDEN_CAPTURES)) {
    if (entry.path().extension() != ".data") continue;
    auto capture = read_file(entry.path());
    ASSERT_TRUE(capture) << capture.error().what;
    expect_noise_changes_nothing(std::move(*capture), entry.path().filename(), noisy_records);
  }
  EXPECT_GT(noisy_records, 50);
  auto pipe = small_capture().pipe();
  EXPECT_GT(add_noise(pipe), 3);
  EXPECT_EQ(read_all(pipe).findings, std::vector<std::string>{});
}

// An old perf's pipe: events, their names in records of type 65, tracepoint formats, then records.
TEST(CaptureReader, AnOldPerfsPipeIsReadWholeWhateverItsMiscHolds) {
  const CaptureBuilder small = small_capture();
  const auto pipe = small.pipe();
  const std::size_t records = pipe.size() - CaptureBuilder(small).data().size();
  ByteWriter old;
  old.bytes(Bytes(pipe).first(records));
  old.u32(abi::kRecordEventType).u16(0x7f88).u16(80).u64(7).padded_text("my-clock", 64);
  old.u32(abi::kRecordTracingData).u16(0x7f88).u16(12).u32(24).bytes(Bytes(pipe).first(24));
  old.u32(99).u16(0x7f88).u16(16).u64(0);  // a record of perf's that this program does not know
  old.u32(abi::kRecordFinishedRound).u16(0x7f88).u16(8);
  old.bytes(Bytes(pipe).subspan(records));
  const Reading reading = read_all(old.view());
  ASSERT_EQ(reading.records.size(), 3U + 3U + kSmallTypes.size());
  for (const std::string& finding : reading.findings)
    EXPECT_EQ(finding.find("no record has such a type"), std::string::npos) << finding;
}

// Whether the number at this offset of the header is the place or the size of a section, and too large for
// the file.
bool points_nowhere(std::size_t at, std::uint64_t value) {
  return at >= 24 && at < 56 && value >= std::uint64_t{1} << 40;
}

TEST(CaptureReader, HeaderNumbersThatPointNowhereAreRefusedOrSaid) {
  const auto whole = small_capture().file();
  for (std::size_t at = 16; at < 104; at += 8) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3},
                                      std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
      auto bytes = whole;
      std::memcpy(bytes.data() + at, &value, sizeof value);
      if (bytes == whole) continue;
      const TemporaryFile file(bytes);
      Diagnostics diagnostics;
      auto reader = CaptureReader::open(file.path(), diagnostics);
      const bool is_whole = reader && types(*reader) == kSmallTypes;
      if (!reader) {
        EXPECT_FALSE(reader.error().what.empty()) << at << ": " << value;
      } else if (diagnostics.findings().empty()) {
        EXPECT_TRUE(is_whole) << at << ": " << value << ": records are missing, and nothing says so";
        EXPECT_FALSE(points_nowhere(at, value)) << at << ": " << value << ": nothing says so";
      }
    }
  }
}

// The mapping of a capture whose event's attr has `flags`; `size` is that of the build id that it announces.
MmapRecord mapping_with_build_id(std::uint64_t flags, std::uint8_t size, std::uint64_t id = 7) {
  EventAttr attr = test::software_event(abi::kCpuClock);
  attr.flags |= flags;
  CaptureBuilder builder;
  builder.event(attr, "clock", {7});
  const std::size_t start = builder.data().size();
  builder.mmap(1, 0x1000, 0x1000, 0, "/usr/bin/true");
  builder.data().patch<std::uint16_t>(start + 4, abi::kCpumodeUser | abi::kMiscMmapBuildId);
  builder.data().patch<std::uint32_t>(start + 40, size);  // the device's major number, or the id's size
  builder.data().patch<std::uint64_t>(start + 44, 0x1122334455667788);
  builder.data().patch<std::uint64_t>(builder.data().size() - 8, id);
  const TemporaryFile file(builder.file());
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  EXPECT_TRUE(reader);
  const auto record = reader->next_record();
  const auto parsed = parse_record(*record, reader->events()[0].attr);
  EXPECT_TRUE(parsed);
  MmapRecord mapping = std::get<MmapRecord>(*parsed);
  EXPECT_EQ(mapping.filename, "/usr/bin/true");
  mapping.filename = {};
  return mapping;
}

TEST(CaptureReader, AMappingsBuildIdIsBelievedWhereItsEventAskedForIt) {
  EXPECT_EQ(mapping_with_build_id(abi::kBuildId, 8).build_id.hex(), "8877665544332211");
  const MmapRecord leaked = mapping_with_build_id(0, 8);
  EXPECT_TRUE(leaked.build_id.empty()) << "the bit came from another recorder's event";
  EXPECT_EQ(leaked.major, 8u);
  EXPECT_FALSE(mapping_with_build_id(0, 8, 0).build_id.empty())
      << "made by the recorder, for its first event";
  for (const int size : {0, 21, 255})
    EXPECT_TRUE(mapping_with_build_id(abi::kBuildId, static_cast<std::uint8_t>(size)).build_id.empty())
        << size;
}

TEST(CaptureReader, ASectionWithoutBytesIsNoDamage) {
  for (std::uint32_t feature = 1; feature <= abi::kFeatureClnSize; ++feature) {
    if (feature == abi::kFeatureEventDesc) continue;
    CaptureBuilder builder = small_capture();
    if (feature != abi::kFeatureHostname) builder.feature(feature, {});
    const TemporaryFile file(builder.file());
    Diagnostics diagnostics;
    auto reader = CaptureReader::open(file.path(), diagnostics);
    ASSERT_TRUE(reader);
    EXPECT_EQ(types(*reader), kSmallTypes);
    EXPECT_TRUE(diagnostics.findings().empty())
        << feature << ' ' << Diagnostics::finding_text(diagnostics.findings()[0]);
  }
}

TEST(CaptureReader, BytesAfterTheLastSectionAreSaidAndNoDamage) {
  auto bytes = small_capture().file();
  bytes.insert(bytes.end(), 100, std::byte{1});
  const TemporaryFile file(bytes);
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  ASSERT_TRUE(reader);
  EXPECT_EQ(types(*reader), kSmallTypes);
  EXPECT_FALSE(diagnostics.incomplete());
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(diagnostics.findings()[0].kind, Damage::Note);
  EXPECT_NE(diagnostics.findings()[0].first.find("100 bytes"), std::string::npos);
}

}  // namespace
}  // namespace tacho::format
