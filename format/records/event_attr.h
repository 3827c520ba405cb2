// perf_event_attr in a capture: of any size, either byte order, with unknown fields kept.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/records/perf_abi.h"

namespace tacho::format {

struct EventAttr {
  std::uint32_t type = 0;
  std::uint32_t size = 0;  // in the capture; 0 means 64
  std::uint64_t config = 0;
  std::uint64_t sample_period = 0;  // or the frequency in Hz, with kFreq
  std::uint64_t sample_type = 0;    // abi::SampleType
  std::uint64_t read_format = 0;    // abi::ReadFormat
  std::uint64_t flags = 0;          // abi::AttrFlag
  std::uint32_t wakeup = 0;         // events, or bytes, with kWatermark
  std::uint32_t bp_type = 0;
  std::uint64_t config1 = 0;
  std::uint64_t config2 = 0;
  std::uint64_t branch_sample_type = 0;
  std::uint64_t sample_regs_user = 0;
  std::uint32_t sample_stack_user = 0;  // bytes
  std::int32_t clockid = 0;
  std::uint64_t sample_regs_intr = 0;
  std::uint32_t aux_watermark = 0;
  std::uint16_t sample_max_stack = 0;
  std::uint32_t aux_sample_size = 0;
  std::uint32_t aux_action = 0;
  std::uint64_t sig_data = 0;
  std::uint64_t config3 = 0;
  std::uint64_t config4 = 0;
  std::vector<std::byte> tail;  // bytes after the fields above

  bool has(abi::AttrFlag flag) const { return (flags & flag) != 0; }
  bool samples(abi::SampleType bit) const { return (sample_type & bit) != 0; }
  bool is_dummy() const { return type == abi::kSoftware && config == abi::kDummy; }
  bool is_bpf_output() const { return type == abi::kSoftware && config == abi::kBpfOutput; }
  bool operator==(const EventAttr&) const = default;
};

// The size in perf 6.1, which refuses larger attrs: used unless a later field is set.
inline constexpr std::uint32_t kCompatibleAttrSize = 128;

// The byte with its bits in reverse order: machines of the other byte order number the bit fields of the flag
// word from the other end of each byte.
std::uint8_t mirrored(std::byte byte);

// Reads one attr of `bytes.left()` bytes, of which attr.size are valid.
Result<EventAttr> parse_event_attr(Cursor bytes);
// The smallest size (at least kCompatibleAttrSize) that holds every non-zero field.
std::uint32_t size_to_write(const EventAttr& attr);
// Appends exactly `size` bytes, with attr.size = size.
void write_event_attr(ByteWriter& out, const EventAttr& attr, std::uint32_t size);

}  // namespace tacho::format
