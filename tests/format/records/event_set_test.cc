#include "format/records/event_set.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "format/records/record.h"
#include "format/records/sample.h"
#include "tests/support/capture_builder.h"

namespace tacho::format {
namespace {

RecordView view_of(const ByteWriter& out) {
  Cursor in(out.view());
  RecordView record;
  record.type = in.u32();
  record.misc = in.u16();
  record.bytes = out.view();
  return record;
}

ByteWriter sample_with_id(std::uint64_t id) {
  ByteWriter out;
  out.u32(abi::kRecordSample).u16(0).u16(24).u64(id).u64(0);
  return out;
}

TEST(EventSet, ASampleBelongsToTheEventOfItsIdentifier) {
  EventSet events;
  events.add_event({test::software_event(abi::kCpuClock), "clock", {11, 12}});
  events.add_event({test::software_event(abi::kPageFaults), "faults", {21}});
  const ByteWriter sample = sample_with_id(21);
  EXPECT_EQ(events.event_of(view_of(sample)), 1u);
  const ByteWriter other = sample_with_id(12);
  EXPECT_EQ(events.event_of(view_of(other)), 0u);
}

TEST(EventSet, AnUnknownIdBelongsToNoEvent) {
  EventSet events;
  events.add_event({test::software_event(abi::kCpuClock), "clock", {11}});
  events.add_event({test::software_event(abi::kPageFaults), "faults", {21}});
  const ByteWriter sample = sample_with_id(99);
  EXPECT_EQ(events.event_of(view_of(sample)), std::nullopt);
}

// As Linux writes it for a recorder that comes after one with a trailer of 32 bytes.
TEST(EventSet, BytesThatTheKernelLeavesAfterATrailerAreNoPartOfIt) {
  EventSet events;
  for (const std::uint64_t id : {11, 21}) {
    EventAttr attr = test::software_event(abi::kCpuClock);
    attr.sample_type = abi::kSampleTime | abi::kSampleIdentifier;
    attr.flags |= abi::kSampleIdAll;
    events.add_event({attr, "clock", {id}});
  }
  ByteWriter load, symbol;
  load.u32(abi::kRecordBpfEvent).u16(0).u16(72).u16(1).u16(0).u32(42).u64(0).u64(1234).u64(21);
  for (int word = 0; word < 4; ++word) load.u64(0x6b6b6b6b6b6b6b6b);
  symbol.u32(abi::kRecordKsymbol).u16(0).u16(80).u64(0xffffffffc0000000).u32(200).u16(1).u16(0);
  symbol.u64(0x00676f7270667062).u64(1235).u64(11);  // "bpfprog"
  for (int word = 0; word < 4; ++word) symbol.u64(0x6b6b6b6b6b6b6b6b);
  ASSERT_EQ(symbol.view().size(), 80u);
  ASSERT_EQ(load.view().size(), 72u);
  const EventAttr& attr = events[0].attr;
  EXPECT_EQ(events.event_of(view_of(load)), 1u);
  EXPECT_EQ(record_time(view_of(load), attr), 1234u);
  EXPECT_EQ(unread_bytes(view_of(load), attr), 0u);
  EXPECT_EQ(events.event_of(view_of(symbol)), 0u);
  EXPECT_EQ(parse_sample_id(view_of(symbol), attr).time, 1235u);
  EXPECT_EQ(unread_bytes(view_of(symbol), attr), 0u);
}

// A size that is wrong swallows what follows; what a ring held before is older.
TEST(EventSet, RecordsAfterATrailerAreBytesThatNobodyReads) {
  EventAttr attr = test::software_event(abi::kCpuClock);
  attr.sample_type = abi::kSampleTime | abi::kSampleIdentifier;
  attr.flags |= abi::kSampleIdAll;
  ByteWriter load;
  load.u32(abi::kRecordBpfEvent).u16(0).u16(80).u16(1).u16(0).u32(42).u64(0).u64(1234).u64(21);
  load.u32(abi::kRecordLost).u16(0).u16(40).u64(21).u64(1).u64(1235).u64(21);
  EXPECT_EQ(unread_bytes(view_of(load), attr), 40u);
  ByteWriter old;
  old.u32(abi::kRecordBpfEvent).u16(0).u16(80).u16(1).u16(0).u32(42).u64(0).u64(1234).u64(21);
  old.u32(abi::kRecordLost).u16(0).u16(40).u64(21).u64(1).u64(1233).u64(21);
  EXPECT_EQ(unread_bytes(view_of(old), attr), 0u);
}

TEST(EventSet, IdZeroIsTheFirstEvent) {
  EventSet events;
  events.add_event({test::software_event(abi::kCpuClock), "clock", {11}});
  events.add_event({test::software_event(abi::kPageFaults), "faults", {21}});
  ByteWriter comm;
  write_comm(comm, {1, 1, "init", false}, sample_id_size(events[0].attr));
  EXPECT_EQ(events.event_of(view_of(comm)), 0u);
}

TEST(EventSet, OneEventTakesEveryRecordWhateverItsId) {
  EventSet events;
  events.add_event({test::software_event(abi::kCpuClock), "clock", {11}});
  const ByteWriter sample = sample_with_id(99);
  EXPECT_EQ(events.event_of(view_of(sample)), 0u);
}

TEST(EventSet, TheOldIdStandsAfterTheFieldsBeforeIt) {
  EventAttr attr;
  attr.sample_type = abi::kSampleIp | abi::kSampleTid | abi::kSampleTime | abi::kSampleId | abi::kSampleCpu;
  attr.flags = abi::kSampleIdAll;
  EventSet events;
  events.add_event({attr, "a", {5}});
  events.add_event({attr, "b", {6}});
  ByteWriter sample;
  sample.u32(abi::kRecordSample).u16(0).u16(48).u64(0x1000).u64(1).u64(2).u64(6).u64(0);
  EXPECT_EQ(events.event_of(view_of(sample)), 1u);
  ByteWriter lost;  // id, lost; trailer: tid, time, id, cpu
  lost.u32(abi::kRecordLost).u16(0).u16(56).u64(0).u64(3).u64(1).u64(2).u64(6).u64(0);
  EXPECT_EQ(events.event_of(view_of(lost)), 1u);
}

TEST(EventSet, ARecordTooShortForItsIdBelongsToNoEvent) {
  EventSet events;
  events.add_event({test::software_event(abi::kCpuClock), "clock", {11}});
  events.add_event({test::software_event(abi::kPageFaults), "faults", {21}});
  ByteWriter empty;
  empty.u32(abi::kRecordSample).u16(0).u16(8);
  EXPECT_EQ(events.event_of(view_of(empty)), std::nullopt);
}

// Ids close to the first one lie in an array, others in a table; a hostile capture may choose any.
TEST(EventSet, FindsIdsHoweverFarApartTheyLie) {
  constexpr std::uint64_t kHighest = ~std::uint64_t{0};
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{70}, std::uint64_t{1} << 40, kHighest}) {
    EventSet events;
    std::vector<std::uint64_t> ids;
    for (const std::uint64_t step : {0UL, 1UL, 1000UL, 32'767UL, 32'768UL, 32'769UL, 65'536UL, 1UL << 33}) {
      ids.push_back(first + step);
      if (step != 0) ids.push_back(first - step);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      events.add_event(Event{});
      events.add_id(i, ids[i]);
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(events.find_id(ids[i]), i) << first << " " << ids[i];
    EXPECT_EQ(events.find_id(first + 2), std::nullopt);
    EXPECT_EQ(events.find_id(first + 500'000), std::nullopt);
    events.add_id(0, ids[1]);
    EXPECT_EQ(events.find_id(ids[1]), 0u) << "the last one to claim an id has it";
  }
}

// In any order of the calls, and with repeated ones.
TEST(EventSet, FindsIdsInWhateverOrderTheyCome) {
  std::mt19937_64 random(7);  // NOLINT(bugprone-random-generator-seed): the same numbers each time
  for (const int order : {0, 1, 2}) {
    EventSet events;
    std::map<std::uint64_t, std::size_t> expected;
    constexpr std::size_t kEvents = 7;
    for (std::size_t i = 0; i < kEvents; ++i) events.add_event(Event{});
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::uint64_t id = order == 0   ? 1'000'000'000 - 100'000 * i  // falling
                               : order == 1 ? random() % 5'000 * 100'000   // again and again
                                            : (i % 2 ? i : 40'000 - i) * 100'000;
      events.add_id(i % kEvents, id);
      expected[id] = i % kEvents;
    }
    for (const auto& [id, event] : expected) ASSERT_EQ(events.find_id(id), event) << order << " " << id;
    EXPECT_EQ(events.find_id(50'001), std::nullopt);
  }
}

}  // namespace
}  // namespace tacho::format
