// What simpleperf's captures have that perf's do not: samples of any size, and records of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/container/capture_reader.h"
#include "format/extensions/attachment.h"
#include "format/extensions/tracing_data.h"
#include "format/records/sample.h"
#include "tests/support/capture_builder.h"

namespace tacho::format {
namespace {

using test::CaptureBuilder;
using test::software_event;
using test::TemporaryFile;

constexpr std::uint64_t kCopied = abi::kSampleStackUser;

CaptureBuilder builder(std::uint64_t more_sample_type) {
  CaptureBuilder capture;
  capture.event(software_event(0, more_sample_type), "cpu-clock", {1});
  return capture;
}

Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// A sample of the usual fields, and of a copied stack of so many bytes.
void add_sample(CaptureBuilder& capture, std::uint64_t time, std::size_t stack) {
  capture.sample({.id = 1, .ip = 0x1000, .pid = 7, .tid = 7, .time = time});
  ByteWriter& data = capture.data();
  const std::size_t usual = kRecordHeaderSize + 6 * sizeof(std::uint64_t), start = data.size() - usual;
  data.u64(stack).zeros(stack).u64(stack);
  data.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(data.size() - start));
}

constexpr std::uint32_t kKernelSymbol = 32769, kSplit = 32772, kSplitEnd = 32773, kEventId = 32774,
                        kUnwindingResult = 32776, kTracingData = 32777;

// A record of simpleperf's as it is in memory: the upper half of its size stands where misc is.
std::vector<std::byte> own_record(std::uint32_t type, Bytes content, std::size_t padding = 0) {
  const std::size_t size = kRecordHeaderSize + sizeof(std::uint32_t) + content.size() + padding;
  ByteWriter record;
  record.u32(type).u16(static_cast<std::uint16_t>(size >> 16)).u16(static_cast<std::uint16_t>(size));
  record.u32(static_cast<std::uint32_t>(content.size())).bytes(content).zeros(padding);
  return std::move(record).take_bytes();
}

// The same in pieces of so many bytes.
void add_split(CaptureBuilder& capture, const std::vector<std::byte>& record, std::size_t most) {
  Bytes rest = record;
  while (!rest.empty()) {
    const Bytes piece = rest.first(std::min(most, rest.size()));
    capture.data().u32(kSplit).u16(0).u16(static_cast<std::uint16_t>(kRecordHeaderSize + piece.size()));
    capture.data().bytes(piece);
    rest = rest.subspan(piece.size());
  }
  capture.data().u32(kSplitEnd).u16(0).u16(kRecordHeaderSize);
}

struct Got {
  std::vector<std::uint64_t> times, stacks;
  std::string findings;
  Features features;
};

Got read(const CaptureBuilder& capture) {
  const TemporaryFile file(capture.file());
  Diagnostics diagnostics;
  Got got;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  EXPECT_TRUE(reader) << reader.error().what;
  if (!reader) return got;
  got.features = reader->features();
  while (const auto record = reader->next_record()) {
    if (record->type != abi::kRecordSample) continue;
    const auto sample = parse_sample(*record, reader->events()[0].attr);
    got.times.push_back(sample ? sample->time : 0);
    got.stacks.push_back(sample ? sample->user_stack.size() : 0);
  }
  for (const Finding& finding : diagnostics.findings())
    got.findings += Diagnostics::finding_text(finding) + "\n";
  return got;
}

using Numbers = std::vector<std::uint64_t>;

TEST(Simpleperf, ACopiedStackHasAsManyBytesAsTheKernelCouldRead) {
  auto capture = builder(kCopied);
  for (std::uint64_t time = 1; time <= 8; ++time) add_sample(capture, time, time == 5 ? 4033 : 1000 + time);
  const Got got = read(capture);
  EXPECT_EQ(got.times, (Numbers{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(got.stacks, (Numbers{1001, 1002, 1003, 1004, 4033, 1006, 1007, 1008}));
  EXPECT_EQ(got.findings, "");
}

TEST(Simpleperf, AnotherSampleOfSuchASizeIsDamage) {
  auto capture = builder(0);
  const auto add = [&](std::uint64_t time) {
    capture.sample({.id = 1, .ip = 0x1000, .pid = 7, .tid = 7, .time = time});
  };
  add(1);
  add(2);
  const std::size_t size = kRecordHeaderSize + 6 * sizeof(std::uint64_t);
  capture.data().patch<std::uint16_t>(size + 6, static_cast<std::uint16_t>(size + 3));
  capture.data().zeros(3);
  add(3);
  const Got got = read(capture);
  EXPECT_EQ(got.times, (Numbers{1, 3}));
  EXPECT_NE(got.findings, "");
}

TEST(Simpleperf, ItsRecordsAreNoDamageWhereverTheyStand) {
  auto capture = builder(kCopied);
  add_sample(capture, 1, 1003);
  capture.data().bytes(own_record(kEventId, as_bytes("eight or")));
  add_sample(capture, 2, 1000);
  add_split(capture, own_record(kUnwindingResult, as_bytes(std::string(3000, 'x')), 1), 1001);
  capture.data().bytes(own_record(kUnwindingResult, {}));
  add_sample(capture, 3, 1000);
  capture.data().bytes(own_record(kUnwindingResult, as_bytes("the end")));
  const Got got = read(capture);
  EXPECT_EQ(got.times, (Numbers{1, 2, 3}));
  EXPECT_EQ(got.findings, "");
}

TEST(Simpleperf, TracepointsAndKernelSymbolsAreReadFromTheRecordsInFront) {
  TracingData tracing;
  tracing.page_size = 4096;
  tracing.formats = {{"sched", "name: sched_switch\nID: 42\n"}};
  ByteWriter content;
  write_tracing_data(content, tracing);
  std::string symbols;
  while (symbols.size() < 70000) symbols += "ffff800080000000 T _text\n";  // more than 16 bits say
  auto capture = builder(kCopied);
  add_split(capture, own_record(kKernelSymbol, as_bytes(symbols), 3), 65527);
  capture.data().bytes(own_record(kTracingData, content.view(), 61));
  add_sample(capture, 1, 1000);
  const Got got = read(capture);
  EXPECT_EQ(got.times, (Numbers{1}));
  EXPECT_EQ(got.findings, "");
  ASSERT_EQ(got.features.tracing.formats.size(), 1u);
  EXPECT_EQ(got.features.tracing.formats[0].text, tracing.formats[0].text);
  const Attachment* const attached = got.features.attachment(kKallsymsAttachment);
  ASSERT_NE(attached, nullptr);
  const auto unpacked = unpack_attachment(*attached);
  ASSERT_TRUE(unpacked) << unpacked.error().what;
  EXPECT_EQ(as_text(*unpacked), symbols);
}

TEST(Simpleperf, ARecordOfItsOwnThatIsCutShortIsTold) {
  auto capture = builder(kCopied);
  capture.data().u32(kTracingData).u16(0).u16(16).u32(100).u32(0);
  add_sample(capture, 1, 1000);
  const Got got = read(capture);
  EXPECT_EQ(got.times, (Numbers{1}));
  EXPECT_NE(got.findings.find("record of type 32777 is cut short"), std::string::npos) << got.findings;
}

}  // namespace
}  // namespace tacho::format
