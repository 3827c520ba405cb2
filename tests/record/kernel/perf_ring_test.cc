#include "record/kernel/perf_ring.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"

namespace tacho::record {

namespace {

void put(format::ByteWriter& out, std::uint32_t type, std::initializer_list<std::uint64_t> words) {
  out.u32(type).u16(0).u16(static_cast<std::uint16_t>(8 + 8 * words.size()));
  for (const std::uint64_t word : words) out.u64(word);
}

std::vector<std::byte> records(std::uint64_t id) {
  format::ByteWriter out;
  put(out, PERF_RECORD_SAMPLE, {id, 70, 7});    // id, and two fields that look like numbers
  put(out, PERF_RECORD_COMM, {7, 70, id});      // what it is about, and a trailer that ends with the id
  put(out, PERF_RECORD_LOST, {id, 7, 70, id});  // whose, how many, trailer
  put(out, PERF_RECORD_THROTTLE, {7, id, id, 70, id});
  put(out, PERF_RECORD_SWITCH, {id});
  put(out, PERF_RECORD_SAMPLE, {8, 7, 7});  // of another event
  return std::move(out).take_bytes();
}

TEST(RenamedIds, EveryPlaceOfARecordThatSaysWhoseItIs) {
  RenamedIds ids;
  ids.add_rule(7, 1);
  auto all = records(7);
  ids.apply(all, 0);
  EXPECT_EQ(all, records(1)) << "and nothing else";
}

TEST(RenamedIds, WhatStandsBeforeIsLeftAlone) {
  RenamedIds ids;
  ids.add_rule(7, 1);
  auto all = records(7);
  const auto added = records(7);
  const std::size_t begin = all.size();
  all.insert(all.end(), added.begin(), added.end());
  ids.apply(all, begin);
  auto expected = records(7);
  const auto renamed = records(1);
  expected.insert(expected.end(), renamed.begin(), renamed.end());
  EXPECT_EQ(all, expected);
}

TEST(RenamedIds, WhatIsNoRecordEndsIt) {
  RenamedIds ids;
  ids.add_rule(7, 1);
  for (const unsigned size : {0U, 8U, 4000U}) {
    format::ByteWriter out;
    out.u32(PERF_RECORD_SAMPLE).u16(0).u16(static_cast<std::uint16_t>(size)).u64(7).u64(7);
    auto bytes = std::move(out).take_bytes();
    const auto before = bytes;
    ids.apply(bytes, 0);
    EXPECT_EQ(bytes, before) << size;
  }
  std::vector<std::byte> few(5);
  ids.apply(few, 0);
  ids.apply(few, 5);
}

}  // namespace

namespace {

constexpr std::size_t kPage = 4096;

// A ring of one page whose kernel is the test.
struct FakeRing {
  FakeRing() : memory(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    page()->data_offset = kPage;
    page()->data_size = kPage;
  }
  perf_event_mmap_page* page() const { return static_cast<perf_event_mmap_page*>(memory); }
  void write(std::string_view text) {
    for (const char letter : text) {
      static_cast<char*>(memory)[kPage + page()->data_head % kPage] = letter;
      page()->data_head = page()->data_head + 1;
    }
  }
  void* memory;
};

std::vector<std::string> drained(PerfRing& ring) {
  std::vector<std::string> runs;
  ring.drain([&](format::Bytes run) { runs.emplace_back(format::as_text(run)); });
  return runs;
}

TEST(PerfRing, GivesWhatIsNewAndFreesIt) {
  FakeRing fake;
  PerfRing ring(format::Mapping(fake.memory, 2 * kPage));
  EXPECT_TRUE(drained(ring).empty());
  fake.write("abc");
  EXPECT_EQ(drained(ring), std::vector<std::string>{"abc"});
  EXPECT_EQ(fake.page()->data_tail, 3u);
  EXPECT_TRUE(drained(ring).empty()) << "nothing is given twice";
}

TEST(PerfRing, ARunThatWrapsComesAsTwo) {
  FakeRing fake;
  PerfRing ring(format::Mapping(fake.memory, 2 * kPage));
  fake.write(std::string(kPage - 2, '.'));
  drained(ring);
  fake.write("wrap");
  EXPECT_EQ(drained(ring), (std::vector<std::string>{"wr", "ap"}));
  EXPECT_EQ(fake.page()->data_tail, kPage + 2);
}

TEST(PerfRing, AFullRingIsGivenWhole) {
  FakeRing fake;
  PerfRing ring(format::Mapping(fake.memory, 2 * kPage));
  fake.write("x");
  drained(ring);
  fake.write(std::string(kPage, 'y'));
  const auto runs = drained(ring);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].size() + runs[1].size(), kPage);
}

// Writes records of `size` bytes from the end of the ring to its start, as the kernel does when it may write
// over what is there: type `first`, first + 1, ...
void write_backward(const FakeRing& fake, std::uint32_t first, std::uint32_t count, std::uint16_t size) {
  auto* const data = static_cast<unsigned char*>(fake.memory) + kPage;
  for (std::uint32_t type = first; type < first + count; ++type) {
    fake.page()->data_head = fake.page()->data_head - size;
    const perf_event_header header{type, 0, size};
    std::vector<unsigned char> record(size, 0xff);
    std::memcpy(record.data(), &header, sizeof header);
    for (std::size_t i = 0; i < size; ++i) data[(fake.page()->data_head + i) % kPage] = record[i];
  }
}

std::vector<std::uint32_t> types_in(const PerfRing& ring) {
  std::vector<std::byte> records;
  ring.copy_records(records);
  std::vector<std::uint32_t> types;
  for (format::Cursor in(records); in.left() > 0;) {
    types.push_back(in.u32());
    in.u16();
    in.skip(in.u16() - sizeof(perf_event_header));
    EXPECT_FALSE(in.failed());
  }
  return types;
}

// Samples of planned events: id, ip, thread, time.
void put_sample(format::ByteWriter& out, std::uint64_t time) {
  put(out, PERF_RECORD_SAMPLE, {1, 0x1000, 7, time, 2, 3});
}

TEST(RingGaps, BeginAtTheSampleBeforeTheLoss) {
  format::ByteWriter out;
  put_sample(out, 100);
  put_sample(out, 200);
  put(out, PERF_RECORD_LOST, {1, 50, 7, 900, 1});
  put_sample(out, 901);
  RingGaps gaps;
  gaps.look(out.view());
  EXPECT_EQ(gaps.take_begin(), 200u) << "the kernel writes LOST when there is room again";
  EXPECT_EQ(gaps.take_begin(), RingGaps::kNone);
  format::ByteWriter later;
  put(later, PERF_RECORD_LOST, {1, 5, 7, 1000, 1});
  gaps.look(later.view());
  EXPECT_EQ(gaps.take_begin(), 901u) << "of an earlier look";
}

TEST(RingGaps, RecordsMayBeCutBetweenTwoLooks) {
  format::ByteWriter out;
  put_sample(out, 100);
  put_sample(out, 200);
  put(out, PERF_RECORD_LOST, {1, 50, 7, 900, 1});
  for (std::size_t cut = 8; cut < out.view().size(); cut += 8) {
    RingGaps gaps;
    gaps.look(out.view().first(cut));
    gaps.look(out.view().subspan(cut));
    // The time of a sample that is cut before it is not read.
    EXPECT_TRUE(gaps.take_begin() != RingGaps::kNone || cut < 8 * 5) << cut;
  }
  RingGaps damaged;
  const std::vector<std::byte> zeros(64);
  damaged.look(zeros);
  EXPECT_EQ(damaged.take_begin(), RingGaps::kNone) << "and the loop ends";
}

TEST(PerfRing, ABackwardRingGivesTheOldestFirst) {
  FakeRing fake;
  const PerfRing ring(format::Mapping(fake.memory, 2 * kPage), RingKind::Backward);
  EXPECT_TRUE(types_in(ring).empty());
  write_backward(fake, 1, 3, 104);
  EXPECT_EQ(types_in(ring), (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(types_in(ring).size(), 3u) << "they stay for the next time";
}

TEST(PerfRing, WhatIsHalfWrittenOverIsLeftOut) {
  FakeRing fake;
  const PerfRing ring(format::Mapping(fake.memory, 2 * kPage), RingKind::Backward);
  write_backward(fake, 1, 100, 104);  // 39 of them fit, and 40 bytes of another
  const auto types = types_in(ring);
  ASSERT_EQ(types.size(), 39u);
  EXPECT_EQ(types.front(), 62u);
  EXPECT_EQ(types.back(), 100u);
  write_backward(fake, 101, 100, 4096);
  EXPECT_EQ(types_in(ring), std::vector<std::uint32_t>{200}) << "a record may fill the ring";
}

}  // namespace

}  // namespace tacho::record
