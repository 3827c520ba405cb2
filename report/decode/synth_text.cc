#include "report/decode/synth_text.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tacho::report {
namespace {

using format::Cursor;

std::string alternate_hex(std::uint64_t value) {  // %#x: zero has no 0x
  return value == 0 ? "0" : fmt::format("{:#x}", value);
}

std::string ptwrite(Cursor& in) {
  const std::uint32_t flags = in.u32();
  const std::uint64_t payload = in.u64();
  std::string text;
  bool is_text = true;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    const auto letter = static_cast<char>(payload >> shift & 0xff);
    if (letter == 0) {
      is_text = is_text && payload >> shift == 0;
      break;
    }
    is_text = is_text && letter >= ' ' && letter < 0x7f;
    text += letter;
  }
  return fmt::format(" IP: {} payload: {} {} ", flags & 1, alternate_hex(payload), is_text ? text : "");
}

std::string mwait(Cursor& in) {
  in.u32();
  const std::uint32_t hints = in.u32(), extensions = in.u32();
  return fmt::format(" hints: {} extensions: {} ", alternate_hex(hints & 0xff),
                     alternate_hex(extensions & 3));
}

std::string power_entry(Cursor& in) {
  in.u32();
  const std::uint64_t bits = in.u64();
  return fmt::format(" hw: {} cstate: {} sub-cstate: {} ", bits >> 7 & 1, bits >> 12 & 15, bits >> 8 & 15);
}

std::string execution_stop(Cursor& in) { return fmt::format(" IP: {} ", in.u32() & 1); }

std::string power_exit(Cursor& in) {
  in.u32();
  const std::uint64_t bits = in.u64();
  return fmt::format(" deepest cstate: {} last cstate: {} wake reason: {} ", bits & 15, bits >> 4 & 15,
                     alternate_hex(bits >> 8 & 15));
}

std::string bus_ratio(Cursor& in) {
  const std::uint32_t bits = in.u32(), frequency = in.u32();
  in.u32();
  const std::uint32_t ratio = bits & 0xff, most = bits >> 16 & 0xff;
  std::string text = fmt::format(" cbr: {:2} freq: {:4} MHz ", ratio, (frequency + 500) / 1000);
  if (most != 0) text += fmt::format("({:3}%) ", (5 + 1000 * ratio / most) / 10);
  return text;
}

std::string stream_boundary(Cursor& in) {
  in.u32();
  return " psb offs: " + alternate_hex(in.u64());
}

std::string trace_event(Cursor& in) {
  static constexpr std::string_view kKinds[] = {"",         "INTR", "IRET",    "SMI",    "RSM",
                                                "SIPI",     "INIT", "VMENTRY", "VMEXIT", "VMEXIT_INTR",
                                                "SHUTDOWN", "",     "UINTR",   "UIRET"};
  static constexpr std::string_view kData[] = {"PFA", "VMXQ", "VMXR"};
  const std::uint32_t bits = in.u32(), kind = bits & 31;
  const bool has_name = kind < std::size(kKinds) && !kKinds[kind].empty();
  std::string text =
      fmt::format(" cfe: {} IP: {} vector: {}", has_name ? std::string(kKinds[kind]) : std::to_string(kind),
                  bits >> 7 & 1, bits >> 8 & 0xff);
  for (std::uint32_t left = bits >> 16; left > 0 && !in.failed(); --left) {
    const std::uint64_t type = in.u64() & 63, payload = in.u64();
    if (in.failed()) break;
    text += fmt::format(" {}: {}",
                        type < std::size(kData) ? std::string(kData[type]) : fmt::format("EVD_{}", type),
                        alternate_hex(payload));
  }
  return text;
}

std::string interrupt_flag(Cursor& in) {
  const std::uint32_t bits = in.u32();
  return fmt::format(" IFLAG: {}->{} {} branch", (bits & 1) != 0 ? 0 : 1, bits & 1,
                     (bits & 2) != 0 ? "via" : "non");
}

struct Row {
  std::string (*text)(Cursor&);
  std::size_t size;  // bytes that must be there
};
// By the event's config (perf's enum perf_synth_id).
constexpr Row kRows[] = {{ptwrite, 12},         {mwait, 12},      {power_entry, 12},
                         {execution_stop, 4},   {power_exit, 12}, {bus_ratio, 12},
                         {stream_boundary, 12}, {trace_event, 4}, {interrupt_flag, 12}};

}  // namespace

void write_synth(TextBuffer& out, std::uint64_t config, format::Bytes raw, std::endian order) {
  constexpr std::size_t kWidth = 34;
  if (config >= std::size(kRows) || raw.size() < kRows[config].size) return;
  Cursor in(raw, order);
  out.left(kRows[config].text(in), kWidth);
}

}  // namespace tacho::report
