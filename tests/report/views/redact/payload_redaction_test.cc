#include "report/views/redact/payload_redaction.h"

#include <gtest/gtest.h>

#include "format/records/record.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Members of FORMAT("kaddr"), whatever their sign and size, and a pointer; numbers that only look like one
// stay.
TEST(PayloadRedaction, MovesEveryKernelAddress) {
  const auto field = [](std::string name, format::FieldKind kind, std::uint32_t at, std::uint32_t bits,
                        std::string format, std::uint32_t count = 1) {
    return format::PayloadField{.name = std::move(name),
                                .kind = kind,
                                .bit_offset = at,
                                .bit_size = bits,
                                .count = count,
                                .is_array = count != 1,
                                .format = std::move(format)};
  };
  using enum format::FieldKind;
  format::Features features;
  features.schemas.push_back(
      {.event = "ka",
       .type_name = "ka",
       .size = 56,
       .fields = {field("u", Unsigned, 0, 64, "kaddr"), field("s", Signed, 64, 64, "kaddr"),
                  field("plain", Signed, 128, 64, ""), field("p", Unsigned, 192, 64, "hex"),
                  field("low", Unsigned, 256, 32, "kaddr", 2), field("half", Unsigned, 320, 16, "kaddr"),
                  field("bits", Signed, 340, 60, "kaddr"), field("behind", Unsigned, 400, 16, "")}});
  format::EventSet events;
  events.add_event({.attr = test::software_event(abi::kBpfOutput), .name = "ka", .ids = {}});
  Redaction redaction;
  ASSERT_TRUE(redaction.keep("payload"));
  const Aliases aliases = Aliases::of_key("key");
  KaslrRemap kernel;
  kernel.see_text(0xffffffff9a000000);
  format::ByteWriter raw;
  raw.u64(0xffffffff9a100001).u64(0xffffffff9a100002).u64(0xffffffff9a100003).u64(0xffff888012345005);
  raw.u32(0x9a100008).u32(0).u16(0x9a10).u64(~std::uint64_t{0}).u16(77).u32(0);
  std::vector<std::byte> bytes(raw.view().begin(), raw.view().end());
  PayloadRedaction(events, features, redaction, aliases, kernel).change(0, bytes);
  format::Cursor in(bytes);
  EXPECT_EQ(in.u64(), 0xffffffff81100001);
  EXPECT_EQ(in.u64(), 0xffffffff81100002) << "signed";
  EXPECT_EQ(in.u64(), 0xffffffff9a100003) << "a number below 0";
  EXPECT_NE(in.u64(), 0xffff888012345005) << "memory of the kernel gets an alias";
  EXPECT_EQ(in.u32(), 0x81100008u) << "the lower half";
  EXPECT_EQ(in.u32(), 0u) << "none";
  EXPECT_EQ(in.u16(), 0u) << "a part has no other place";
  EXPECT_EQ(in.u64(), 0xfu) << "of 64 bits those before the field";
  EXPECT_EQ(in.u16(), 77u);
}

}  // namespace
}  // namespace tacho::report
