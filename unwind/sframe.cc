#include "unwind/sframe.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

namespace tacho::unwind {
namespace {

constexpr std::uint16_t kMagic = 0xdee2;
constexpr std::uint8_t kFirstVersion = 1, kLastVersion = 2;
constexpr std::uint8_t kFromField =
    4;  // a flag: function starts are relative to their own field, not to the section
constexpr std::uint8_t kAmd64 = 3;
constexpr std::int8_t kReturnBelowCfa = -8;
constexpr int kFrameWord = 8;
constexpr std::uint8_t kPltEntry = 16;  // bytes of a PLT entry

struct Header {
  std::uint8_t version = 0, flags = 0;
  std::uint32_t functions = 0;
  std::uint64_t function_offset = 0, row_offset = 0;  // in the section
};

std::optional<Header> read_header(format::Cursor in) {
  Header header;
  const std::size_t size = in.left();
  if (in.u16() != kMagic) return std::nullopt;
  header.version = in.u8();
  header.flags = in.u8();
  const std::uint8_t machine = in.u8();
  in.u8();  // the fixed offset of the frame pointer, on machines that have one
  const auto return_place = static_cast<std::int8_t>(in.u8());
  const std::uint8_t auxiliary = in.u8();
  header.functions = in.u32();
  in.u32();  // number of rows
  in.u32();  // bytes of all rows
  const std::uint32_t function_offset = in.u32(), row_offset = in.u32();
  const std::uint64_t end = size - in.left() + auxiliary;
  header.function_offset = end + function_offset;
  header.row_offset = end + row_offset;
  if (in.failed() || header.version < kFirstVersion || header.version > kLastVersion || machine != kAmd64 ||
      return_place != kReturnBelowCfa)
    return std::nullopt;
  return header;
}

struct Description {
  std::uint64_t start = 0;
  std::uint32_t size = 0, row_offset = 0, rows = 0;
  std::uint8_t info = 0;
  std::uint8_t repeats = kPltEntry;  // size of each block, of code in repeated blocks

  unsigned address_bytes() const { return 1U << (info & 3); }
  bool is_in_pieces() const { return (info >> 4 & 1) != 0; }
};

bool is_stopped(const SframeLimits& limits) { return limits.stop && limits.stop(); }

// Nothing: there are too many.
std::optional<std::vector<Description>> read_descriptions(const Header& header, format::Bytes section,
                                                          std::uint64_t address, const SframeLimits& limits) {
  const std::size_t size = header.version > kFirstVersion ? 20 : 17;
  format::Cursor in(section, std::endian::little);
  in.skip(header.function_offset);
  const std::size_t count = std::min<std::size_t>(header.functions, in.left() / size);
  if (count > limits.most) return std::nullopt;
  std::vector<Description> found;
  found.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_stopped(limits)) return std::vector<Description>();
    const std::uint64_t base = (header.flags & kFromField) != 0 ? section.size() - in.left() : 0;
    Description each;
    const auto distance = static_cast<std::int32_t>(in.u32());
    each.start = address + base + static_cast<std::uint64_t>(std::int64_t{distance});
    each.size = in.u32();
    each.row_offset = in.u32();
    each.rows = in.u32();
    each.info = in.u8();
    if (header.version > kFirstVersion) {
      each.repeats = in.u8();
      in.u16();
    }
    if (in.failed()) break;
    found.push_back(each);
  }
  std::ranges::stable_sort(found, {}, &Description::start);
  return found;
}

std::uint32_t read_address(format::Cursor& in, unsigned bytes) {
  return bytes == 1 ? in.u8() : bytes == 2 ? in.u16() : in.u32();
}
std::int32_t read_offset(format::Cursor& in, unsigned bytes) {
  if (bytes == 1) return static_cast<std::int8_t>(in.u8());
  return bytes == 2 ? static_cast<std::int16_t>(in.u16()) : static_cast<std::int32_t>(in.u32());
}

// Converts a frame row entry: offsets of the CFA and, if it was saved, of the frame pointer.
tacho_unwind_row row_of(std::uint32_t pc, bool is_from_sp, unsigned count, std::int32_t cfa,
                        std::int32_t fp) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int16_t>::max() * kFrameWord;
  constexpr std::int32_t kFarthest = std::numeric_limits<std::int8_t>::min() * kFrameWord;
  tacho_unwind_row row{pc, 0, TACHO_UNWIND_RBP_SAME, TACHO_UNWIND_OTHER};
  if (count == 0) {
    row.kind = TACHO_UNWIND_END;  // there is no return address
    return row;
  }
  if (cfa % kFrameWord != 0 || cfa < -kMost || cfa > kMost || count > 2) return row;
  if (count == 2) row.rbp = TACHO_UNWIND_RBP_LOST;
  if (count == 2 && fp % kFrameWord == 0 && fp < 0 && fp >= kFarthest)
    row.rbp = static_cast<std::int8_t>(fp / kFrameWord);
  row.cfa = static_cast<std::int16_t>(cfa / kFrameWord);
  row.kind = is_from_sp ? TACHO_UNWIND_RSP : TACHO_UNWIND_RBP;
  return row;
}

// The PLT has one description for all of its entries of 16 bytes, each of which pushes a word.
void join_pieces(SframeFunction& function, std::uint64_t size_of_piece) {
  auto& rows = function.rows;
  const bool is_plt = size_of_piece == kPltEntry && rows.size() == 2 && rows[0].kind == TACHO_UNWIND_RSP &&
                      rows[1].kind == TACHO_UNWIND_RSP && rows[0].pc == 0 && rows[1].cfa == rows[0].cfa + 1 &&
                      rows[1].pc < kPltEntry;
  const bool is_even = rows.size() == 1 && rows[0].pc == 0;
  if (is_even) return;
  const tacho_unwind_row joined =
      is_plt ? tacho_unwind_row{0, rows[0].cfa, static_cast<__s8>(rows[1].pc), TACHO_UNWIND_PLT}
             : tacho_unwind_row{0, 0, 0, TACHO_UNWIND_OTHER};
  rows.assign(1, joined);
}

// `budget`: rows that may still be read, since a hostile section can refer to its rows many times. Returns
// one row more than `limits` allow if there are too many.
SframeFunction read_function(const Description& from, const Header& header, format::Bytes section,
                             const SframeLimits& limits, std::size_t& budget) {
  constexpr std::uint32_t kRowsBetween = 1024;  // calls of stop()
  SframeFunction function{from.start, from.start + from.size, {}};
  format::Cursor in(section, std::endian::little);
  in.skip(header.row_offset + from.row_offset);
  for (std::uint32_t i = 0; i < from.rows; ++i) {
    const std::uint32_t pc = read_address(in, from.address_bytes());
    const std::uint8_t info = in.u8();
    const unsigned count = info >> 1 & 15, bytes = 1U << (info >> 5 & 3);
    std::int32_t cfa = 0, fp = 0;
    for (unsigned offset = 0; offset < count; ++offset) {
      const std::int32_t value = read_offset(in, bytes);
      if (offset == 0) cfa = value;
      if (offset == 1) fp = value;
    }
    const bool ascends = function.rows.empty() || pc > function.rows.back().pc;
    const bool gives_up = i % kRowsBetween == kRowsBetween - 1 && is_stopped(limits);
    if (gives_up || in.failed() || !ascends || budget == 0 || bytes > 4 || from.address_bytes() > 4) {
      function.rows.clear();
      return function;
    }
    --budget;
    if (pc >= from.size) break;
    function.rows.push_back(row_of(pc, (info & 1) != 0, count, cfa, fp));
    if (function.rows.size() > limits.most) return function;
  }
  if (from.is_in_pieces()) join_pieces(function, from.repeats);
  return function;
}

}  // namespace

SframeRead read_sframe(format::Bytes section, std::uint64_t address, const SframeLimits& limits,
                       const std::function<bool(const SframeFunction&)>& sink) {
  constexpr std::size_t kLeastRow = 2;  // bytes
  const auto header = read_header(format::Cursor(section, std::endian::little));
  if (!header) return SframeRead::Foreign;
  const auto descriptions = read_descriptions(*header, section, address, limits);
  if (!descriptions) return SframeRead::TooLarge;
  std::size_t budget = section.size() / kLeastRow;
  for (const Description& each : *descriptions) {
    const SframeFunction function = read_function(each, *header, section, limits, budget);
    if (function.rows.size() > limits.most) return SframeRead::TooLarge;
    if (!sink(function)) break;
  }
  return SframeRead::Done;
}

}  // namespace tacho::unwind
