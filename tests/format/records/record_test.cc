#include "format/records/record.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>

namespace tacho::format {
namespace {

EventAttr attr_with_trailer() {
  EventAttr attr;
  attr.flags = abi::kSampleIdAll;
  attr.sample_type = abi::kSampleTid | abi::kSampleTime | abi::kSampleIdentifier;
  return attr;
}

RecordView view_of(const ByteWriter& out) {
  Cursor in(out.view());
  RecordView record;
  record.type = in.u32();
  record.misc = in.u16();
  EXPECT_EQ(in.u16(), out.size()) << "the record's own size";
  EXPECT_EQ(out.size() % 8, 0u);
  record.bytes = out.view();
  return record;
}

template <class T>
T parsed(const ByteWriter& out) {
  auto record = parse_record(view_of(out), attr_with_trailer());
  EXPECT_TRUE(record) << record.error().what;
  if (!record || !std::holds_alternative<T>(*record)) {
    ADD_FAILURE() << "another kind of record came back";
    return {};
  }
  return std::get<T>(*record);
}

const std::size_t kTrailer = sample_id_size(attr_with_trailer());

TEST(Record, Mmap2WithABuildIdComesBack) {
  MmapRecord mmap;
  mmap.pid = 10;
  mmap.tid = 11;
  mmap.start = 0x7f0000;
  mmap.length = 0x1000;
  mmap.page_offset = 0x2000;
  mmap.filename = "/usr/bin/dd";
  mmap.build_id = *BuildId::from_hex("0102030405060708");
  mmap.protection = 5;
  mmap.flags = 2;
  ByteWriter out;
  write_mmap2(out, mmap, abi::kCpumodeUser, kTrailer);
  const auto back = parsed<MmapRecord>(out);
  EXPECT_TRUE(back.is_mmap2);
  EXPECT_EQ(back.pid, 10u);
  EXPECT_EQ(back.tid, 11u);
  EXPECT_EQ(back.start, 0x7f0000u);
  EXPECT_EQ(back.length, 0x1000u);
  EXPECT_EQ(back.page_offset, 0x2000u);
  EXPECT_EQ(back.filename, "/usr/bin/dd");
  EXPECT_EQ(back.build_id, mmap.build_id);
  EXPECT_EQ(back.protection, 5u);
  EXPECT_EQ(back.flags, 2u);
}

TEST(Record, Mmap2WithoutABuildIdNamesDeviceAndInode) {
  MmapRecord mmap;
  mmap.filename = "//anon";
  mmap.major = 8;
  mmap.minor = 1;
  mmap.inode = 77;
  mmap.inode_generation = 3;
  ByteWriter out;
  write_mmap2(out, mmap, abi::kCpumodeUser, 0);
  EventAttr none;
  auto record = parse_record(view_of(out), none);
  ASSERT_TRUE(record);
  const auto& back = std::get<MmapRecord>(*record);
  EXPECT_EQ(back.major, 8u);
  EXPECT_EQ(back.minor, 1u);
  EXPECT_EQ(back.inode, 77u);
  EXPECT_EQ(back.inode_generation, 3u);
  EXPECT_TRUE(back.build_id.empty());
}

TEST(Record, KernelMmapComesBack) {
  MmapRecord mmap;
  mmap.pid = ~0U;
  mmap.start = 0xffffffff81000000;
  mmap.filename = "[kernel.kallsyms]_text";
  ByteWriter out;
  write_mmap(out, mmap, abi::kCpumodeKernel, kTrailer);
  const auto back = parsed<MmapRecord>(out);
  EXPECT_FALSE(back.is_mmap2);
  EXPECT_EQ(back.start, 0xffffffff81000000u);
  EXPECT_EQ(back.filename, "[kernel.kallsyms]_text");
}

TEST(Record, CommForkAndExitComeBack) {
  ByteWriter comm;
  write_comm(comm, {5, 6, "a name with blanks", true}, kTrailer);
  EXPECT_EQ(parsed<CommRecord>(comm).name, "a name with blanks");
  EXPECT_TRUE(parsed<CommRecord>(comm).is_exec);
  ByteWriter fork;
  write_fork(fork, {1, 2, 3, 4, 5, false}, kTrailer);
  EXPECT_EQ(parsed<TaskRecord>(fork).parent_tid, 4u);
  EXPECT_FALSE(parsed<TaskRecord>(fork).is_exit);
  ByteWriter exit;
  write_fork(exit, {1, 2, 3, 4, 5, true}, kTrailer);
  EXPECT_TRUE(parsed<TaskRecord>(exit).is_exit);
}

TEST(Record, KsymbolAndBpfEventComeBack) {
  ByteWriter symbol;
  write_ksymbol(symbol, {0xffffffffc0000000, 200, 1, 0, "bpf_prog_0123456789abcdef_read"}, kTrailer);
  EXPECT_EQ(parsed<KsymbolRecord>(symbol).name, "bpf_prog_0123456789abcdef_read");
  EXPECT_EQ(parsed<KsymbolRecord>(symbol).length, 200u);
  ByteWriter event;
  write_bpf_event(event, {1, 0, 42, {1, 2, 3, 4, 5, 6, 7, 8}}, kTrailer);
  EXPECT_EQ(parsed<BpfEventRecord>(event).id, 42u);
  EXPECT_EQ(parsed<BpfEventRecord>(event).tag[7], 8);
}

TEST(Record, LostSamplesSayWhoseTheyAre) {
  const EventAttr attr = attr_with_trailer();
  ByteWriter out;
  write_lost_samples(out, 1234, attr, 77);
  EXPECT_EQ(parsed<LostSamplesRecord>(out).lost, 1234u);
  EXPECT_EQ(parse_sample_id(view_of(out), attr).id, 77u);
}

TEST(Record, ANameLongerThanARecordIsCut) {
  const std::string name(100000, 'n');
  ByteWriter out;
  write_comm(out, {1, 1, name, false}, kTrailer);
  EXPECT_EQ(parsed<CommRecord>(out).name.size(), 4095u);
}

TEST(Record, OneShorterThanItsFieldsIsAnError) {
  ByteWriter out;
  out.u32(abi::kRecordFork).u16(0).u16(16).u64(1);
  RecordView record;
  record.type = abi::kRecordFork;
  record.bytes = out.view();
  const auto result = parse_record(record, EventAttr{});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "FORK record is shorter than its fields");
}

// 200 bytes of large numbers, so that every count and size in them is wrong, just before a page that may not
// be read.
class BytesBeforeAWall {
 public:
  BytesBeforeAWall() {
    if (pages_ == MAP_FAILED) return;
    std::memset(static_cast<std::byte*>(pages_) + page_ - kSize, 0xf7, kSize);
    ::mprotect(static_cast<std::byte*>(pages_) + page_, page_, PROT_NONE);
  }
  BytesBeforeAWall(const BytesBeforeAWall&) = delete;
  BytesBeforeAWall& operator=(const BytesBeforeAWall&) = delete;
  ~BytesBeforeAWall() { ::munmap(pages_, 2 * page_); }
  // The last of them.
  Bytes last(std::size_t size) const { return {static_cast<std::byte*>(pages_) + page_ - size, size}; }

  static constexpr std::size_t kSize = 200;

 private:
  std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* pages_ = ::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

// A read beyond the record ends this program.
TEST(Record, NoTypeReadsBeyondAnyCut) {
  const BytesBeforeAWall bytes;
  const EventAttr attr = attr_with_trailer();
  for (std::uint32_t type = 0; type < 100; ++type) {
    std::size_t refused = 0;
    for (std::size_t size = kRecordHeaderSize; size <= BytesBeforeAWall::kSize; ++size) {
      RecordView record;
      record.type = type;
      record.misc = 0xffff;
      record.bytes = bytes.last(size);
      const auto result = parse_record(record, attr);
      if (result) continue;
      ++refused;
      EXPECT_EQ(result.error().what, std::string(record_name(type)) + " record is shorter than its fields");
    }
    const bool has_fields = !record_name(type).empty() && type < abi::kRecordUserStart &&
                            type != abi::kRecordSample && type != abi::kRecordSwitch;
    if (has_fields) {
      EXPECT_GT(refused, 0u) << record_name(type) << ": one of 8 bytes has no room for its fields";
    }
  }
}

TEST(Record, NamesAreKnownAndDiffer) {
  std::set<std::string_view> names;
  for (std::uint32_t type = 0; type < 128; ++type) {
    if (record_name(type).empty()) continue;
    EXPECT_TRUE(names.insert(record_name(type)).second) << type;
  }
  EXPECT_EQ(names.size(), 22u + 23u) << "22 of the kernel, 23 of perf";
  EXPECT_EQ(record_name(4000), "");
}

TEST(Record, MarksAreHeadersAlone) {
  ByteWriter out;
  write_mark(out, abi::kRecordFinishedRound);
  EXPECT_EQ(out.size(), kRecordHeaderSize);
  EXPECT_EQ(view_of(out).type, abi::kRecordFinishedRound);
}

// An EVENT_UPDATE of this kind: what follows its id, then `more` bytes that are no zeros.
std::size_t unread_of_update(std::uint64_t kind, const ByteWriter& data, std::size_t more) {
  ByteWriter out;
  out.u32(abi::kRecordEventUpdate).u16(0).u16(0).u64(kind).u64(7).bytes(data.view()).zeros(16);
  for (std::size_t i = 0; i < more; ++i) out.u8(0x52);
  out.patch<std::uint16_t>(6, static_cast<std::uint16_t>(out.size()));
  return unread_bytes(view_of(out), {});
}

TEST(Record, AnUpdateThatSwallowsWhatFollowsHasBytesAfterItsLastField) {
  ByteWriter name, scale;
  name.padded_text("msec", 8);
  scale.u64(0x3eb0c6f7a0b5ed8d);
  EXPECT_EQ(unread_of_update(0, name, 0), 0u);
  EXPECT_EQ(unread_of_update(2, name, 0), 0u);
  EXPECT_EQ(unread_of_update(1, scale, 0), 0u);
  EXPECT_GT(unread_of_update(0, name, 24), 0u);
  EXPECT_GT(unread_of_update(1, scale, 24), 0u);
}

}  // namespace
}  // namespace tacho::format
