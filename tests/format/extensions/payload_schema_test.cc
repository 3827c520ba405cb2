#include "format/extensions/payload_schema.h"

#include <gtest/gtest.h>

namespace tacho::format {
namespace {

PayloadSchema example_schema() {
  PayloadSchema schema{"bigread", "bigread_event", 24, {}};
  PayloadField bytes;
  bytes.name = "bytes";
  bytes.bit_size = 64;
  bytes.unit = "bytes";
  bytes.role = "value";
  PayloadField op;
  op.name = "op";
  op.kind = FieldKind::Enum;
  op.bit_offset = 64;
  op.bit_size = 32;
  op.enumerators = {{0, "READ"}, {-1, "NONE"}};
  PayloadField comm;
  comm.name = "comm";
  comm.kind = FieldKind::Text;
  comm.bit_offset = 96;
  comm.bit_size = 8;
  comm.count = 12;
  comm.is_array = true;
  schema.fields = {bytes, op, comm};
  return schema;
}

TEST(PayloadSchema, ComesBackAsItWasWritten) {
  ByteWriter out;
  write_payload_schemas(out, {example_schema(), {"other", "t", 0, {}}});
  const auto back = parse_payload_schemas(Cursor(out.view()));
  ASSERT_TRUE(back) << back.error().what;
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0], example_schema());
  EXPECT_EQ((*back)[1].event, "other");
}

TEST(PayloadSchema, AnyCutIsAnError) {
  ByteWriter out;
  write_payload_schemas(out, {example_schema()});
  // The section ends with up to 7 bytes of padding, which may go without harm.
  for (std::size_t size = 0; size + 8 <= out.size(); ++size)
    EXPECT_FALSE(parse_payload_schemas(Cursor(out.view().first(size)))) << size;
}

TEST(PayloadSchema, AFieldOutsideItsPayloadIsRefused) {
  PayloadSchema schema = example_schema();
  schema.fields[0].bit_offset = 24 * 8 - 8;
  ByteWriter out;
  write_payload_schemas(out, {schema});
  const auto back = parse_payload_schemas(Cursor(out.view()));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().what, "bigread: field 'bytes' is not inside its payload");
}

TEST(PayloadSchema, AFieldWithMoreElementsThanItsPayloadHoldsIsRefused) {
  for (const std::uint32_t count : {13u, 0xffffffffu}) {
    PayloadSchema schema = example_schema();
    schema.fields[2].count = count;  // 12 have room
    ByteWriter out;
    write_payload_schemas(out, {schema});
    const auto back = parse_payload_schemas(Cursor(out.view()));
    ASSERT_FALSE(back) << count;
    EXPECT_EQ(back.error().what, "bigread: field 'comm' is not inside its payload");
  }
}

TEST(PayloadSchema, APayloadLargerThanARecordIsRefused) {
  PayloadSchema schema = example_schema();
  schema.size = 0xffffffff;
  schema.fields[2].count = 0x10000000;
  ByteWriter out;
  write_payload_schemas(out, {schema});
  const auto back = parse_payload_schemas(Cursor(out.view()));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().what, "bigread: its payload of 4294967295 bytes is more than a record holds");
}

TEST(PayloadSchema, AFieldOfNoBitsIsRefused) {
  PayloadSchema schema = example_schema();
  schema.fields[0].bit_size = 0;
  ByteWriter out;
  write_payload_schemas(out, {schema});
  EXPECT_FALSE(parse_payload_schemas(Cursor(out.view())));
}

TEST(PayloadSchema, AnotherVersionIsSaid) {
  ByteWriter out;
  write_payload_schemas(out, {example_schema()});
  out.patch<std::uint32_t>(0, 9);
  const auto back = parse_payload_schemas(Cursor(out.view()));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().what, "version 9 is not known, 1 is");
}

}  // namespace
}  // namespace tacho::format
