#include "format/records/event_attr.h"

namespace tacho::format {

namespace {

constexpr std::uint32_t kFirstAttrSize = 64;  // PERF_ATTR_SIZE_VER0; also the meaning of size 0
constexpr std::uint32_t kKnownAttrSize = 144;
// The flag word is kept as a little-endian machine numbers its bits (abi::AttrFlag); writing on a big-endian
// host would have to mirror it, and no such host is supported yet.
static_assert(std::endian::native == std::endian::little);

std::uint64_t read_flags(Cursor& in) {
  const Bytes bytes = in.fields(sizeof(std::uint64_t), 1, FieldShape::BitBytes);
  const bool is_native = in.order() == std::endian::native;
  std::uint64_t flags = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    flags |= (is_native ? std::to_integer<std::uint64_t>(bytes[i]) : mirrored(bytes[i])) << (8 * i);
  return flags;
}

}  // namespace

std::uint8_t mirrored(std::byte byte) {
  unsigned bits = 0;
  for (int bit = 0; bit < 8; ++bit)
    bits |= std::to_integer<unsigned>(byte >> bit & std::byte{1}) << (7 - bit);
  return static_cast<std::uint8_t>(bits);
}

Result<EventAttr> parse_event_attr(Cursor bytes) {
  EventAttr attr;
  attr.type = bytes.u32();
  attr.size = bytes.u32();
  if (bytes.failed()) return Error{"event attribute is truncated"};
  const std::uint32_t size = attr.size == 0 ? kFirstAttrSize : attr.size;
  const std::size_t there = bytes.left() + 8;
  if (size < kFirstAttrSize || size > there)
    return Error{"event attribute says it has " + std::to_string(size) + " bytes, between " +
                 std::to_string(kFirstAttrSize) + " and " + std::to_string(there) + " were expected"};
  Cursor in = bytes.over(bytes.take_bytes(size - 8));
  // Fields past the attr's size are zero: a failed cursor returns zeros.
  attr.config = in.u64();
  attr.sample_period = in.u64();
  attr.sample_type = in.u64();
  attr.read_format = in.u64();
  attr.flags = read_flags(in);
  attr.wakeup = in.u32();
  attr.bp_type = in.u32();
  attr.config1 = in.u64();
  attr.config2 = in.u64();
  attr.branch_sample_type = in.u64();
  attr.sample_regs_user = in.u64();
  attr.sample_stack_user = in.u32();
  attr.clockid = static_cast<std::int32_t>(in.u32());
  attr.sample_regs_intr = in.u64();
  attr.aux_watermark = in.u32();
  attr.sample_max_stack = in.u16();
  in.u16();  // reserved
  attr.aux_sample_size = in.u32();
  attr.aux_action = in.u32();
  attr.sig_data = in.u64();
  attr.config3 = in.u64();
  attr.config4 = in.u64();
  if (!in.failed()) attr.tail.assign(in.rest().begin(), in.rest().end());
  return attr;
}

std::uint32_t size_to_write(const EventAttr& attr) {
  if (!attr.tail.empty()) return kKnownAttrSize + static_cast<std::uint32_t>((attr.tail.size() + 7) / 8 * 8);
  if (attr.config4 != 0) return 144;
  if (attr.config3 != 0) return 136;
  return kCompatibleAttrSize;
}

void write_event_attr(ByteWriter& out, const EventAttr& attr, std::uint32_t size) {
  ByteWriter whole;
  whole.u32(attr.type).u32(size).u64(attr.config).u64(attr.sample_period).u64(attr.sample_type);
  whole.u64(attr.read_format).u64(attr.flags).u32(attr.wakeup).u32(attr.bp_type).u64(attr.config1);
  whole.u64(attr.config2).u64(attr.branch_sample_type).u64(attr.sample_regs_user);
  whole.u32(attr.sample_stack_user).u32(static_cast<std::uint32_t>(attr.clockid)).u64(attr.sample_regs_intr);
  whole.u32(attr.aux_watermark).u16(attr.sample_max_stack).u16(0).u32(attr.aux_sample_size);
  whole.u32(attr.aux_action).u64(attr.sig_data).u64(attr.config3).u64(attr.config4).bytes(attr.tail);
  if (whole.size() < size) whole.zeros(size - whole.size());
  out.bytes(whole.view().first(size));
}

}  // namespace tacho::format
