#include "report/views/tui/live_window.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using std::chrono::seconds;

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

format::EventAttr attr_of_samples() {
  format::EventAttr attr;
  attr.sample_type = abi::kSampleIp | abi::kSampleTid | abi::kSampleTime | abi::kSamplePeriod;
  attr.flags = abi::kSampleIdAll;
  return attr;
}

// Records in the order that they come in.
struct Recording {
  LiveWindow window{seconds(15), 8 * kMegabyte};
  format::EventAttr attr = attr_of_samples();
  std::uint64_t time = 1000;

  void take(std::uint32_t type, std::uint16_t misc, const format::ByteWriter& body) {
    format::ByteWriter record;
    const std::size_t size = format::kRecordHeaderSize + body.view().size();
    record.u32(type).u16(misc).u16(static_cast<std::uint16_t>(size)).bytes(body.view());
    const std::vector<std::byte> bytes(record.view().begin(), record.view().end());
    OrderedRecord ordered;
    ordered.view = format::whole_record(bytes, std::endian::native);
    ordered.time = time;
    window.take_record(ordered, attr);
    time += 10;
  }
  void ids(format::ByteWriter& body, std::uint32_t pid, std::uint32_t tid) const {
    body.u32(pid).u32(tid).u64(time);  // what sample_id_all adds here: TID and TIME
  }
  Recording& comm(std::uint32_t pid, std::uint32_t tid, const std::string& name, bool is_exec = false) {
    format::ByteWriter body;
    body.u32(pid).u32(tid).padded_text(name, 8);
    ids(body, pid, tid);
    take(abi::kRecordComm, is_exec ? abi::kMiscCommExec : 0, body);
    return *this;
  }
  Recording& mmap(std::uint32_t pid, std::uint64_t start, std::uint64_t length, const std::string& path) {
    format::ByteWriter body;
    body.u32(pid).u32(pid).u64(start).u64(length).u64(0).padded_text(path, 8);
    ids(body, pid, pid);
    take(abi::kRecordMmap, 0, body);
    return *this;
  }
  Recording& task(std::uint32_t type, std::uint32_t pid, std::uint32_t parent, std::uint32_t tid,
                  std::uint32_t parent_tid) {
    format::ByteWriter body;
    body.u32(pid).u32(parent).u32(tid).u32(parent_tid).u64(time);
    ids(body, pid, tid);
    take(type, 0, body);
    return *this;
  }
  Recording& fork(std::uint32_t pid, std::uint32_t parent) {
    return task(abi::kRecordFork, pid, parent, pid, parent);
  }
  Recording& exit(std::uint32_t pid) { return task(abi::kRecordExit, pid, 1, pid, 1); }
  Recording& sample(std::uint32_t pid, std::uint32_t tid) {
    format::ByteWriter body;
    body.u64(0x1234).u32(pid).u32(tid).u64(time).u64(1);
    take(abi::kRecordSample, abi::kCpumodeUser, body);
    return *this;
  }
};

struct Seen {
  std::uint32_t type = 0, pid = 0, tid = 0;
  std::string text;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> seen(const std::vector<std::byte>& records) {
  std::vector<Seen> out;
  for (format::Bytes left(records); left.size() >= format::kRecordHeaderSize;) {
    format::Cursor head(left, std::endian::native);
    const auto type = head.u32();
    (void)head.u16();
    const std::size_t size = head.u16();
    if (size < format::kRecordHeaderSize || size > left.size()) {
      ADD_FAILURE() << "a record of " << size << " bytes";
      break;
    }
    format::Cursor body(left.subspan(format::kRecordHeaderSize, size - format::kRecordHeaderSize),
                        std::endian::native);
    if (type == abi::kRecordSample) (void)body.u64();
    Seen one{type, 0, 0, {}};
    if (type != abi::kRecordFinishedRound) {
      one.pid = body.u32();
      one.tid = body.u32();
    }
    if (type == abi::kRecordMmap)
      for (int i = 0; i < 3; ++i) (void)body.u64();
    if (type == abi::kRecordMmap || type == abi::kRecordComm)
      one.text = reinterpret_cast<const char*>(body.take_bytes(body.left()).data());
    out.push_back(std::move(one));
    left = left.subspan(size);
  }
  return out;
}

constexpr std::uint32_t kComm = abi::kRecordComm, kMmap = abi::kRecordMmap, kSample = abi::kRecordSample,
                        kExit = abi::kRecordExit, kRound = abi::kRecordFinishedRound;

TEST(LiveWindow, AProcessStandsBeforeItsFirstSample) {
  Recording recording;
  recording.comm(7, 7, "one").mmap(7, 0x1000, 0x1000, "/a").comm(8, 8, "two").mmap(8, 0x1000, 0x1000, "/b");
  EXPECT_TRUE(recording.window.newer().empty());
  recording.sample(7, 7).sample(7, 7);
  EXPECT_EQ(seen(recording.window.newer()),
            (std::vector<Seen>{
                {kComm, 7, 7, "one"}, {kMmap, 7, 7, "/a"}, {kSample, 7, 7, ""}, {kSample, 7, 7, ""}}));
  recording.mmap(7, 0x5000, 0x1000, "/c").exit(8);
  EXPECT_EQ(seen(recording.window.newer()).back(), (Seen{kMmap, 7, 7, "/c"}));
  recording.window.finish_round();
  EXPECT_EQ(seen(recording.window.newer()).back(), (Seen{kRound, 0, 0, ""}));
  EXPECT_EQ(recording.window.processes(), 1U);
}

TEST(LiveWindow, AChildHasItsParentsMappingsUntilItRunsAnotherProgram) {
  Recording recording;
  recording.comm(7, 7, "shell").mmap(7, 0x1000, 0x1000, "/bin/sh").fork(9, 7).fork(10, 7);
  recording.mmap(7, 0x9000, 0x1000, "/late");  // the child does not have it
  recording.sample(9, 9);
  EXPECT_EQ(seen(recording.window.newer()),
            (std::vector<Seen>{{kComm, 9, 9, "shell"}, {kMmap, 9, 9, "/bin/sh"}, {kSample, 9, 9, ""}}));
  recording.comm(10, 10, "true", true).mmap(10, 0x4000, 0x1000, "/bin/true").sample(10, 10);
  const auto all = seen(recording.window.newer());
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[3], (Seen{kComm, 10, 10, "true"}));
  EXPECT_EQ(all[4], (Seen{kMmap, 10, 10, "/bin/true"}));
}

TEST(LiveWindow, AThreadHasItsStartersNameAndLastSamplesKeepIt) {
  Recording recording;
  recording.comm(7, 7, "pool").mmap(7, 0x1000, 0x1000, "/a").task(abi::kRecordFork, 7, 7, 12, 7);
  recording.sample(7, 12).task(abi::kRecordExit, 7, 7, 12, 7).sample(7, 12);
  const auto all = seen(recording.window.newer());
  EXPECT_EQ(all, (std::vector<Seen>{{kComm, 7, 7, "pool"},
                                    {kComm, 7, 12, "pool"},
                                    {kMmap, 7, 7, "/a"},
                                    {kSample, 7, 12, ""},
                                    {kExit, 7, 7, ""},
                                    {kSample, 7, 12, ""}}));
  recording.window.finish_round();
  EXPECT_EQ(recording.window.threads(), 1U);
}

TEST(LiveWindow, EachHalfIsWholeByItself) {
  Recording recording;
  recording.comm(7, 7, "one").mmap(7, 0x1000, 0x1000, "/a").sample(7, 7);
  const auto first = seen(recording.window.newer());
  recording.window.begin_half(LiveWindow::Clock::now());
  EXPECT_EQ(seen(recording.window.older()), first);
  EXPECT_TRUE(recording.window.newer().empty());
  recording.sample(7, 7);
  EXPECT_EQ(seen(recording.window.newer()), first);
  recording.window.begin_half(LiveWindow::Clock::now());
  recording.window.begin_half(LiveWindow::Clock::now());
  EXPECT_TRUE(recording.window.older().empty());
}

TEST(LiveWindow, AMappingOverAnotherReplacesIt) {
  Recording recording;
  for (int i = 0; i < 10'000; ++i) recording.mmap(7, 0x1000, 0x1000, "/again");
  recording.sample(7, 7);
  EXPECT_EQ(seen(recording.window.newer()).size(), 2U);
}

// Code that is mapped at new addresses all the time, as by a compiler in a program.
TEST(LiveWindow, MappingsAtNewAddressesDoNotFillTheMemory) {
  constexpr std::uint64_t kMost = 16'384;
  Recording recording;
  recording.mmap(7, 0x1000, 0x1000, "/program");
  for (std::uint64_t i = 1; i <= 2 * kMost; ++i) recording.mmap(7, (i + 1) << 12, 0x1000, std::to_string(i));
  recording.sample(7, 7);
  const auto all = seen(recording.window.newer());
  EXPECT_LE(all.size(), kMost + 1);
  EXPECT_EQ(all[0].text, "/program");
  EXPECT_EQ(all[all.size() - 2].text, std::to_string(2 * kMost));
}

TEST(LiveWindow, AThreadNumberThatIsUsedAgainLeavesItsProcess) {
  Recording recording;
  recording.comm(7, 7, "one").comm(7, 9, "one").comm(8, 9, "two");
  EXPECT_EQ(recording.window.processes(), 2U);
  recording.comm(8, 7, "two");
  EXPECT_EQ(recording.window.processes(), 1U);
  EXPECT_EQ(recording.window.threads(), 2U);
}

// What a machine costs that starts 500 programs a second, one of a hundred of them with a sample.
TEST(LiveWindow, ProcessesThatComeAndGoLeaveNothing) {
  Recording recording;
  recording.comm(7, 7, "shell").mmap(7, 0x1000, 0x1000, "/bin/sh");
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const std::uint32_t pid = 100 + i % 30'000;
    recording.fork(pid, 7).comm(pid, pid, "true", true);
    for (std::uint64_t map = 1; map < 6; ++map) recording.mmap(pid, map << 20, 0x1000, "/lib/a.so");
    if (i % 100 == 0) recording.sample(pid, pid);
    recording.exit(pid);
    if (i % 1000 == 999) recording.window.finish_round();
    if (i % 10'000 == 9999) recording.window.begin_half(LiveWindow::Clock::now());
    most = std::max(most, recording.window.older().size() + recording.window.newer().size());
  }
  EXPECT_EQ(recording.window.processes(), 1U);
  EXPECT_EQ(recording.window.threads(), 1U);
  EXPECT_LT(most, kMegabyte);
}

TEST(LiveWindow, EndsThatWereLostDoNotFillTheMemory) {
  Recording recording;
  for (std::uint32_t pid = 1; pid < 150'000; ++pid) {
    recording.comm(pid, pid, "lost");
    if (pid % 10'000 == 0) recording.window.begin_half(LiveWindow::Clock::now());
  }
  EXPECT_LE(recording.window.processes(), 80'000U);
}

TEST(LiveWindow, ItTurnsWhenItIsFull) {
  LiveWindow window(seconds(2), kMegabyte);
  const auto now = LiveWindow::Clock::now();
  EXPECT_FALSE(window.is_full(now));
  EXPECT_TRUE(window.is_full(now + seconds(3)));
  Recording recording;
  for (int i = 0; i < 200'000; ++i) recording.sample(7, 7);
  EXPECT_TRUE(recording.window.is_full(LiveWindow::Clock::now()));
}

// Records cut short anywhere are no reason to read after them.
TEST(LiveWindow, RecordsThatAreTooShortAreLeftOut) {
  const format::EventAttr attr = attr_of_samples();
  LiveWindow window(seconds(15), kMegabyte);
  for (std::uint32_t type = 0; type < 24; ++type) {
    for (std::uint16_t size = format::kRecordHeaderSize; size < 64; ++size) {
      format::ByteWriter record;
      record.u32(type).u16(0).u16(size).zeros(size - format::kRecordHeaderSize);
      const std::vector<std::byte> bytes(record.view().begin(), record.view().end());
      OrderedRecord ordered;
      ordered.view = format::whole_record(bytes, std::endian::native);
      window.take_record(ordered, attr);
    }
  }
  window.finish_round();
  window.begin_half(LiveWindow::Clock::now());
  EXPECT_LT(window.older().size(), kMegabyte);
}

}  // namespace
}  // namespace tacho::report
