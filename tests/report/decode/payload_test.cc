#include "report/decode/payload.h"

#include <gtest/gtest.h>

#include "format/base/byte_writer.h"

namespace tacho::report {
namespace {

using format::ByteWriter;
using format::FieldKind;

PayloadField field(std::string name, FieldKind kind, std::uint32_t bit_offset, std::uint32_t bit_size) {
  PayloadField made;
  made.name = std::move(name);
  made.kind = kind;
  made.bit_offset = bit_offset;
  made.bit_size = bit_size;
  return made;
}

TEST(Payload, ShowsEveryKindOfField) {
  PayloadField operation = field("op", FieldKind::Enum, 64, 32);
  operation.enumerators = {{3, "READ"}, {4, "WRITE"}};
  PayloadField comm = field("comm", FieldKind::Text, 96, 8);
  comm.count = 4;
  PayloadField pair = field("pair", FieldKind::Signed, 128, 8);
  pair.count = 2;
  PayloadField address = field("addr", FieldKind::Unsigned, 144, 16);
  address.format = "hex";
  PayloadSchema schema;
  schema.fields = {field("bytes", FieldKind::Unsigned, 0, 64), operation, comm, pair, address};
  ByteWriter bytes;
  bytes.u64(2097152).u32(4).padded_text("dd", 4).u8(1).u8(0xff).u16(0x1f);
  EXPECT_EQ(show_payload(schema, bytes.view(), std::endian::native, Names::Safe),
            "bytes=2097152 op=WRITE comm=\"dd\" pair=[1,-1] addr=0x1f");
}

TEST(Payload, FieldsBeyondTheEndAreLeftOut) {
  PayloadSchema schema;
  schema.fields = {field("a", FieldKind::Unsigned, 0, 32), field("b", FieldKind::Unsigned, 32, 32)};
  ByteWriter bytes;
  bytes.u32(7);
  EXPECT_EQ(show_payload(schema, bytes.view(), std::endian::native, Names::Safe), "a=7");
  EXPECT_FALSE(read_number(schema.fields[1], bytes.view(), std::endian::native));
}

TEST(Payload, ReadsBitfieldsOfEitherByteOrder) {
  const std::byte bytes[] = {std::byte{0b1010'0101}, std::byte{0b0000'0011}};
  EXPECT_EQ(read_number(field("low", FieldKind::Unsigned, 0, 3), bytes, std::endian::little), 0b101);
  EXPECT_EQ(read_number(field("over", FieldKind::Unsigned, 6, 4), bytes, std::endian::little), 0b1110);
  EXPECT_EQ(read_number(field("high", FieldKind::Unsigned, 0, 3), bytes, std::endian::big), 0b101);
  EXPECT_EQ(read_number(field("sign", FieldKind::Signed, 0, 3), bytes, std::endian::little), -3);
}

TEST(Payload, ReadsTheOtherByteOrder) {
  const std::byte bytes[] = {std::byte{0}, std::byte{0x20}, std::byte{0}, std::byte{0}};
  EXPECT_EQ(read_number(field("n", FieldKind::Unsigned, 0, 32), bytes, std::endian::big), 0x200000);
}

TEST(Payload, UnsignedNumbersBeyondTheSignedRangeAreWhole) {
  ByteWriter bytes;
  bytes.u64(~std::uint64_t{0});
  EXPECT_TRUE(read_number(field("n", FieldKind::Unsigned, 0, 64), bytes.view(), std::endian::native) ==
              kHighest);
  EXPECT_TRUE(read_number(field("n", FieldKind::Signed, 0, 64), bytes.view(), std::endian::native) == -1);
  EXPECT_TRUE(number_of(1e30) == kHighest);
  EXPECT_TRUE(number_of(-1e30) == kLowest);
  EXPECT_TRUE(number_of(1.5e19) == static_cast<Int128>(15'000'000'000'000'000'000ULL));
}

TEST(Payload, AnArrayWithoutCountTakesWhatThereIs) {
  PayloadField rest = field("rest", FieldKind::Unsigned, 8, 8);
  rest.count = 0;
  PayloadSchema schema;
  schema.fields = {rest};
  const std::byte bytes[] = {std::byte{9}, std::byte{1}, std::byte{2}};
  EXPECT_EQ(show_payload(schema, bytes, std::endian::native, Names::Safe), "rest=[1,2]");
}

TEST(Payload, HostileOffsetsGiveNothing) {
  const std::byte bytes[] = {std::byte{1}};
  EXPECT_FALSE(read_field(field("n", FieldKind::Unsigned, ~0U, 64), bytes, std::endian::native));
  EXPECT_FALSE(read_field(field("n", FieldKind::Unsigned, 0, 0), bytes, std::endian::native));
  EXPECT_FALSE(read_field(field("t", FieldKind::Text, ~0U, 8), bytes, std::endian::native));
}

TEST(Payload, NamesFromOutsideAreMadeSafe) {
  PayloadField text = field("t\x1b", FieldKind::Text, 0, 8);
  text.count = 2;
  PayloadSchema schema;
  schema.fields = {text};
  const std::byte bytes[] = {std::byte{'\n'}, std::byte{'x'}};
  EXPECT_EQ(show_payload(schema, bytes, std::endian::native, Names::Safe), "t\\x1b=\"\\x0ax\"");
}

constexpr std::string_view kFormat =
    "name: sched_process_exec\nID: 314\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:char comm[4];\toffset:16;\tsize:4;\tsigned:0;\n"
    "\tfield:const char * where;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:u16 parts[2];\toffset:32;\tsize:4;\tsigned:0;\n"
    "\nprint fmt: \"pid=%d field:x;\toffset:0;\tsize:1;\", REC->pid\n";

TEST(TracepointFields, AreReadFromTheFormatFile) {
  EXPECT_EQ(format::tracepoint_id(kFormat), 314u);
  const PayloadSchema schema = tracepoint_schema("sched:sched_process_exec", kFormat);
  ASSERT_EQ(schema.fields.size(), 5u)
      << "common fields are left out, and what the print format says is no field";
  ByteWriter record;
  record.u16(314).u16(0).u32(0);
  record.u32(36 | 3 << 16);  // the text lies at 36 and has 3 bytes
  record.u32(static_cast<std::uint32_t>(-5))
      .padded_text("ls", 4)
      .u32(0)
      .u64(0x10)
      .u16(1)
      .u16(2)
      .padded_text("sh", 4);
  EXPECT_EQ(show_payload(schema, record.view(), std::endian::native, Names::Safe),
            "filename=\"sh\" pid=-5 comm=\"ls\" where=0x10 parts=[1,2]");
}

TEST(TracepointFields, TextThatLiesOutsideTheRecordIsLeftOut) {
  const PayloadSchema schema = tracepoint_schema("e", kFormat);
  ByteWriter record;
  record.u16(314).u16(0).u32(0).u32(0xffff | 0xffffU << 16);
  EXPECT_EQ(show_payload(schema, record.view(), std::endian::native, Names::Safe), "");
}

}  // namespace
}  // namespace tacho::report
