#include "format/records/byte_swap.h"

#include <gtest/gtest.h>

#include <functional>

#include "format/base/file.h"
#include "format/container/features.h"
#include "format/records/record.h"
#include "format/records/sample.h"

namespace tacho::format {
namespace {

constexpr std::endian kForeign =
    std::endian::native == std::endian::little ? std::endian::big : std::endian::little;

// The same fields written twice: as this machine does, and as one of the other byte order does.
class Both {
 public:
  explicit Both(std::uint32_t type) : type_(type) { u32(type).u16(0).u16(0); }
  Both& u8(std::uint8_t value) { return put(value); }
  Both& u16(std::uint16_t value) { return put(value); }
  Both& u32(std::uint32_t value) { return put(value); }
  Both& u64(std::uint64_t value) { return put(value); }
  Both& text(std::string_view text) {
    native_.bytes(std::as_bytes(std::span(text)));
    foreign_.bytes(std::as_bytes(std::span(text)));
    return *this;
  }
  Both& two(std::uint64_t native, std::uint64_t foreign) {
    native_.u64(native);
    foreign_.u64(Cursor::swapped(foreign));
    return *this;
  }
  RecordView native() { return view(native_, std::endian::native); }
  RecordView foreign() { return view(foreign_, kForeign); }

 private:
  template <class T>
  Both& put(T value) {
    native_.write(value);
    foreign_.write(Cursor::swapped(value));
    return *this;
  }
  RecordView view(ByteWriter& bytes, std::endian order) const {
    const auto size = static_cast<std::uint16_t>(bytes.size());
    bytes.patch(6, order == std::endian::native ? size : Cursor::swapped(size));
    RecordView record;
    record.type = type_;
    record.bytes = bytes.view();
    record.order = order;
    return record;
  }
  std::uint32_t type_;
  ByteWriter native_, foreign_;
};

std::vector<std::byte> bytes_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// Either form turned gives the other.
void expect_turns(Both record, const EventAttr& attr = {}) {
  ByteWriter turned;
  ASSERT_TRUE(swap_record(record.native(), attr, turned));
  EXPECT_EQ(bytes_of(turned.view()), bytes_of(record.foreign().bytes));
  turned.clear();
  ASSERT_TRUE(swap_record(record.foreign(), attr, turned));
  EXPECT_EQ(bytes_of(turned.view()), bytes_of(record.native().bytes));
}

EventAttr attr_with_sample_id_all() {
  EventAttr attr;
  attr.flags = abi::kSampleIdAll;
  attr.sample_type = abi::kSampleTid | abi::kSampleTime | abi::kSampleCpu | abi::kSampleIdentifier;
  return attr;
}

Both& trailer(Both& record) { return record.u32(1).u32(2).u64(3).u32(4).u32(0).u64(5); }

TEST(ForeignOrder, KernelRecordsKeepTheirTextsAndTurnTheirTrailers) {
  const EventAttr attr = attr_with_sample_id_all();
  Both mmap(abi::kRecordMmap2);
  mmap.u32(1).u32(2).u64(3).u64(4).u64(5).u32(6).u32(7).u64(8).u64(9).u32(10).u32(11).text("/bin/ls\0");
  expect_turns(trailer(mmap.text(std::string_view("\0", 1))), attr);
  Both comm(abi::kRecordComm);
  expect_turns(trailer(comm.u32(1).u32(2).text("name").u32(0)), attr);
  Both fork(abi::kRecordFork);
  expect_turns(trailer(fork.u32(1).u32(2).u32(3).u32(4).u64(5)), attr);
  Both lost(abi::kRecordLost);
  expect_turns(trailer(lost.u64(1).u64(2)), attr);
  Both symbol(abi::kRecordKsymbol);
  expect_turns(trailer(symbol.u64(1).u32(2).u16(3).u16(4).text("bpf_prog")), attr);
  Both program(abi::kRecordBpfEvent);
  expect_turns(trailer(program.u16(1).u16(2).u32(3).text("tagtagta")), attr);
  Both spaces(abi::kRecordNamespaces);
  expect_turns(trailer(spaces.u32(1).u32(2).u64(2).u64(3).u64(4).u64(5).u64(6)), attr);
  Both poke(abi::kRecordTextPoke);
  expect_turns(trailer(poke.u64(1).u16(2).u16(2).text("abcd")), attr);
  Both none(abi::kRecordSwitch);
  expect_turns(trailer(none), attr);
}

TEST(ForeignOrder, AnMmapsBuildIdIsBytes) {
  Both record(abi::kRecordMmap2);
  record.u32(1)
      .u32(2)
      .u64(3)
      .u64(4)
      .u64(5)
      .u8(20)
      .u8(0)
      .u16(0)
      .text("12345678901234567890")
      .u32(6)
      .u32(7)
      .text("/bin/ls\0");
  RecordView native = record.native();
  native.misc = abi::kMiscMmapBuildId;
  EventAttr attr;
  attr.flags = abi::kBuildId;
  ByteWriter turned;
  ASSERT_TRUE(swap_record(native, attr, turned));
  EXPECT_EQ(as_text(turned.view()).substr(8 + 32 + 4, 20), "12345678901234567890");
  RecordView foreign = native;
  foreign.bytes = turned.view();
  foreign.order = kForeign;
  const auto parsed = parse_record(foreign, attr);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(std::get<MmapRecord>(*parsed).protection, 6u);
}

TEST(ForeignOrder, ASampleTurnsButForItsPayloads) {
  EventAttr attr;
  attr.sample_type = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid | abi::kSampleTime |
                     abi::kSampleCpu | abi::kSampleRead | abi::kSampleCallchain | abi::kSampleRaw |
                     abi::kSampleRegsUser | abi::kSampleStackUser | abi::kSampleWeight | abi::kSampleAux;
  attr.read_format = abi::kReadTimeEnabled | abi::kReadId | abi::kReadGroup;
  attr.sample_regs_user = 0b11;
  Both sample(abi::kRecordSample);
  sample.u64(1).u64(2).u32(3).u32(4).u64(5).u32(6).u32(0);
  sample.u64(2).u64(7).u64(8).u64(9).u64(10).u64(11);  // a group of two
  sample.u64(2).u64(12).u64(13).u32(4).text("raw!");
  sample.u64(2).u64(14).u64(15);           // registers
  sample.u64(8).text("a stack!").u64(8);   // user stack
  sample.u64(16).u64(8).text("aux data");  // weight, aux
  expect_turns(sample, attr);
  attr.read_format = abi::kReadTimeEnabled | abi::kReadTimeRunning | abi::kReadId;
  attr.sample_type = abi::kSampleRead;
  Both single(abi::kRecordSample);
  expect_turns(single.u64(1).u64(2).u64(3).u64(4), attr);
}

TEST(ForeignOrder, BranchFlagsAreNumberedFromTheOtherEnd) {
  EventAttr attr;
  attr.sample_type = abi::kSampleBranchStack;
  attr.branch_sample_type = abi::kBranchHwIndex;
  // Mispredicted, 5 cycles, type 3: bits 0, 4 to 19 and 20 to 23 from the low end, or from the high one.
  const std::uint64_t native = 1 | 5 << 4 | 3 << 20;
  const std::uint64_t foreign = std::uint64_t{1} << 63 | std::uint64_t{5} << 44 | std::uint64_t{3} << 40;
  EXPECT_EQ(branch_flags_from_foreign(foreign), native);
  EXPECT_EQ(branch_flags_to_foreign(native), foreign);
  Both sample(abi::kRecordSample);
  sample.u64(2).u64(9).u64(1).u64(2).two(native, foreign).u64(3).u64(4).two(0, 0);
  expect_turns(sample, attr);
  const auto read = parse_sample(sample.foreign(), attr);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->branch(0).flags, native) << "the reader gives what the native capture would have";
}

TEST(ForeignOrder, RecordsOfPerfTurnFieldByField) {
  expect_turns(Both(abi::kRecordFinishedRound));
  expect_turns(Both(abi::kRecordIdIndex).u64(1).u64(2).u64(3).u64(4).u64(5).u64(6).u64(7));
  expect_turns(Both(abi::kRecordAuxtraceInfo).u32(1).u32(0).u64(2).u64(3));
  expect_turns(Both(abi::kRecordAuxtrace).u64(1).u64(2).u64(3).u32(4).u32(5).u32(6).u32(0));
  expect_turns(Both(abi::kRecordThreadMap).u64(1).u64(2).text("sixteen letters!"));
  expect_turns(Both(abi::kRecordCpuMap).u16(0).u16(2).u16(0).u16(1));
  expect_turns(Both(abi::kRecordCpuMap).u16(1).u16(1).u16(4).u32(3).u16(0));
  expect_turns(Both(abi::kRecordCpuMap).u16(1).u16(1).u16(8).text("pad!").u64(3).text("123456"));
  expect_turns(Both(abi::kRecordCpuMap).u16(2).u8(1).u8(0).u16(0).u16(7));
  expect_turns(Both(abi::kRecordStatConfig).u64(1).u64(2).u64(3));
  expect_turns(Both(abi::kRecordStat).u64(1).u32(2).u32(3).u64(4).u64(5).u64(6));
  expect_turns(Both(abi::kRecordStatRound).u64(1).u64(2));
  expect_turns(Both(abi::kRecordTimeConv).u64(1).u64(2).u64(3).u64(4).u64(5).u8(1).u8(0).text("zeros."));
  expect_turns(Both(abi::kRecordEventUpdate).u64(1).u64(7).u64(0x3ff0000000000000));
  expect_turns(Both(abi::kRecordEventUpdate).u64(2).u64(7).text("evt name"));
  expect_turns(Both(abi::kRecordEventUpdate).u64(3).u64(7).u16(0).u16(1).u16(0).u16(0));
  const std::string message(64, 'm');
  expect_turns(
      Both(abi::kRecordAuxtraceError).u32(1).u32(2).u32(3).u32(4).u32(5).u32(0).u64(7).text(message));
  expect_turns(Both(abi::kRecordAuxtraceError)
                   .u32(1)
                   .u32(2)
                   .u32(3)
                   .u32(4)
                   .u32(5)
                   .u32(2)
                   .u64(7)
                   .u64(8)
                   .text(message)
                   .u32(9)
                   .u32(10));
  const std::string program(512, 'p'), entry(64 + 256, 'e');
  expect_turns(Both(abi::kRecordBpfMetadata).text(program).u64(1).text(entry));
  const std::string build_id(20, 'b');
  expect_turns(Both(abi::kRecordBuildId).u32(~0U).text(build_id).u8(20).u8(0).u16(0).text("/bin/ls\0"));
}

TEST(ForeignOrder, ARecordThatIsNotKnownOrTooShortIsRefused) {
  ByteWriter turned;
  EXPECT_FALSE(swap_record(Both(abi::kRecordSchedstatCpu).u64(1).native(), {}, turned));
  EXPECT_FALSE(swap_record(Both(200).u64(1).native(), {}, turned));
  EXPECT_FALSE(swap_record(Both(63).u64(1).native(), {}, turned));
  EXPECT_FALSE(swap_record(Both(abi::kRecordLost).u64(1).native(), {}, turned));
  EXPECT_FALSE(swap_record(Both(abi::kRecordCpuMap).u16(1).u16(1).u16(3).u16(0).native(), {}, turned));
  EXPECT_FALSE(swap_record(Both(abi::kRecordCpuMap).u16(0).u16(3).u16(5).u16(0).native(), {}, turned));
  EXPECT_FALSE(swap_record(Both(abi::kRecordCpuMap).u16(3).u16(1).u16(0).u16(0).native(), {}, turned));
  EventAttr attr;
  attr.sample_type = abi::kSampleCallchain;
  EXPECT_FALSE(swap_record(Both(abi::kRecordSample).u64(2).u64(1).native(), attr, turned));
  EXPECT_TRUE(turned.empty());
}

TEST(ForeignOrder, AnAttrsFlagsAreMirroredWithinTheirBytes) {
  EventAttr attr;
  attr.type = abi::kSoftware;
  attr.config = 9;
  attr.flags = abi::kDisabled | abi::kSampleIdAll | abi::kMmap2;
  attr.sample_max_stack = 127;
  ByteWriter native;
  write_event_attr(native, attr, kCompatibleAttrSize);
  FieldLog log;
  ASSERT_TRUE(parse_event_attr(Cursor(native.view(), std::endian::native, &log)));
  std::vector<std::byte> foreign = bytes_of(native.view());
  swap_fields(foreign, native.view(), log, std::endian::native);
  EXPECT_EQ(std::to_integer<int>(foreign[40]), 0x80) << "`disabled` is the first bit from the other end";
  const auto read = parse_event_attr(Cursor(foreign, kForeign));
  ASSERT_TRUE(read);
  attr.size = kCompatibleAttrSize;
  EXPECT_EQ(*read, attr);
}

TEST(ForeignOrder, AHeaderSectionTurnsByWhatItsReaderReads) {
  Features features;
  features.environment.command_line = {"perf", "record"};
  features.environment.numa_nodes = {{1, 2, 3, "0-1"}};
  for (const std::uint32_t feature : {abi::kFeatureCmdline, abi::kFeatureNumaTopology}) {
    ByteWriter native;
    ASSERT_TRUE(write_feature(feature, features, native));
    FieldLog log;
    Features seen;
    ASSERT_TRUE(read_feature(feature, Cursor(native.view(), std::endian::native, &log), seen));
    std::vector<std::byte> foreign = bytes_of(native.view());
    swap_fields(foreign, native.view(), log, std::endian::native);
    EXPECT_NE(foreign, bytes_of(native.view()));
    Features back;
    ASSERT_TRUE(read_feature(feature, Cursor(foreign, kForeign), back));
    ByteWriter again;
    ASSERT_TRUE(write_feature(feature, back, again));
    EXPECT_EQ(bytes_of(again.view()), bytes_of(native.view()));
  }
}

}  // namespace
}  // namespace tacho::format
