#include "format/capture_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "format/compression.h"
#include "format/record.h"
#include "format/sample.h"
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
  while (const auto record = reader.next()) list.push_back(record->type);
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
      EXPECT_EQ(finding.count, 1u) << Diagnostics::describe(finding);
    before = count;
  }
  EXPECT_EQ(before, kSmallTypes.size());
}

TEST(CaptureReader, AFileNeverClosedIsReadToItsEnd) {
  auto bytes = small_capture().file();
  // What a killed perf leaves: data size 0, nothing behind the data.
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
  const auto record = reader->next();
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
  while (const auto record = reader->next()) {
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

TEST(CaptureReader, ARecordThatSwallowsTheBareMarkBehindItIsTold) {
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
  const auto first = reader->next();
  const BlockRef block = reader->block();
  while (reader->next()) {
  }
  EXPECT_NE(reader->block(), block);
  EXPECT_EQ(first->body().u32(), 0u);
  EXPECT_EQ(text_of(first->bytes.subspan(16)), "name");
}

TEST(CaptureReader, ADirectoryIsReadFileByFile) {
  CaptureBuilder head = small_capture();
  ByteWriter version;
  version.u64(1);
  head.feature(abi::kFeatureDirFormat, std::move(version).take());
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
  EXPECT_EQ(refused({}), "is empty");
  EXPECT_EQ(refused(std::as_bytes(std::span(std::string_view("#!/bin/sh\nexit 0\n")))),
            "is not perf.data: it does not begin with PERFILE2");
  EXPECT_EQ(refused(std::as_bytes(std::span(std::string_view("PERFFILE\0\0\0\0\0\0\0\0", 16)))),
            "was written by a perf older than 2009 (version 1, PERFFILE): no reader of it is left");
  const auto whole = small_capture().file();
  EXPECT_EQ(refused(Bytes(whole).first(40)), "is cut short: its header ends at byte 40");
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
      if (reader) types(*reader);  // must end, whatever it gives
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
  const auto record = reader->next();
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
        << feature << ' ' << Diagnostics::describe(diagnostics.findings()[0]);
  }
}

TEST(CaptureReader, BytesBehindTheLastSectionAreSaidAndNoDamage) {
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
