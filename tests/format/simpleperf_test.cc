// What simpleperf's captures have that perf's do not: samples of any size.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/capture_reader.h"
#include "format/sample.h"
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

// A sample of the usual fields, and of a copied stack of so many bytes.
void add_sample(CaptureBuilder& capture, std::uint64_t time, std::size_t stack) {
  capture.sample({.id = 1, .ip = 0x1000, .pid = 7, .tid = 7, .time = time});
  ByteWriter& data = capture.data();
  const std::size_t usual = kRecordHeaderSize + 6 * sizeof(std::uint64_t), start = data.size() - usual;
  data.u64(stack).zeros(stack).u64(stack);
  data.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(data.size() - start));
}

struct Got {
  std::vector<std::uint64_t> times, stacks;
  std::string told;
};

Got read(const CaptureBuilder& capture) {
  const TemporaryFile file(capture.file());
  Diagnostics diagnostics;
  Got got;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  EXPECT_TRUE(reader) << reader.error().what;
  if (!reader) return got;
  while (const auto record = reader->next()) {
    if (record->type != abi::kRecordSample) continue;
    const auto sample = parse_sample(*record, reader->events()[0].attr);
    got.times.push_back(sample ? sample->time : 0);
    got.stacks.push_back(sample ? sample->user_stack.size() : 0);
  }
  for (const Finding& finding : diagnostics.findings()) got.told += Diagnostics::describe(finding) + "\n";
  return got;
}

using Numbers = std::vector<std::uint64_t>;

TEST(Simpleperf, ACopiedStackHasAsManyBytesAsTheKernelCouldRead) {
  auto capture = builder(kCopied);
  for (std::uint64_t time = 1; time <= 8; ++time) add_sample(capture, time, time == 5 ? 4033 : 1000 + time);
  const Got got = read(capture);
  EXPECT_EQ(got.times, (Numbers{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(got.stacks, (Numbers{1001, 1002, 1003, 1004, 4033, 1006, 1007, 1008}));
  EXPECT_EQ(got.told, "");
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
  EXPECT_NE(got.told, "");
}

}  // namespace
}  // namespace tacho::format
