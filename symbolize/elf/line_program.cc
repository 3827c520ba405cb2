#include "symbolize/elf/line_program.h"

#include <dwarf.h>

#include <array>
#include <optional>
#include <utility>

#include "symbolize/files/packed_section.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint32_t kLongUnit = 0xffffffff;  // the size follows in 64 bits
constexpr std::uint8_t kMore = 0x80;             // of a LEB128 byte: another one follows

struct Program {
  format::Bytes opcodes;
  std::uint8_t first_special = 1;                // opcodes from here on make a row each
  std::array<std::uint8_t, 256> arguments = {};  // LEB128 numbers behind each opcode below
};

std::optional<Program> read_header(format::Bytes section, std::uint64_t offset, std::endian order) {
  if (offset > section.size()) return std::nullopt;
  format::Cursor in(section.subspan(offset), order);
  std::uint64_t size = in.u32();
  const bool is_long = size == kLongUnit;
  if (is_long) size = in.u64();
  if (in.failed() || size > in.left()) return std::nullopt;
  format::Cursor unit(in.take(size), order);
  const std::uint16_t version = unit.u16();
  if (version >= 5) unit.skip(2);  // sizes of an address and of a segment
  const std::uint64_t header_size = is_long ? unit.u64() : unit.u32();
  if (unit.failed() || header_size > unit.left()) return std::nullopt;
  format::Cursor header(unit.take(header_size), order);
  Program program;
  program.opcodes = unit.take(unit.left());
  header.skip(version >= 4 ? 5 : 4);  // instruction lengths, is_stmt, the range of lines
  program.first_special = header.u8();
  for (unsigned i = 1; i < program.first_special; ++i) program.arguments[i] = header.u8();
  if (header.failed() || program.first_special == 0) return std::nullopt;
  return program;
}

std::uint64_t read_leb(format::Cursor& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = in.u8();
    if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & kMore) == 0) return value;
  }
}

}  // namespace

std::uint64_t count_line_rows(format::Bytes section, std::uint64_t offset, std::endian order) {
  const auto program = read_header(section, offset, order);
  if (!program) return 0;
  std::uint64_t rows = 0;
  format::Cursor in(program->opcodes, order);
  while (in.left() > 0) {
    const std::uint8_t opcode = in.u8();
    if (opcode >= program->first_special) {
      ++rows;
    } else if (opcode == 0) {  // an extended one: its size, then its number
      const std::uint64_t size = read_leb(in);
      if (size == 0 || size > in.left()) return rows;
      rows += in.u8() == DW_LNE_end_sequence ? 1 : 0;
      in.skip(size - 1);
    } else if (opcode == DW_LNS_fixed_advance_pc) {
      in.skip(2);
    } else {
      rows += opcode == DW_LNS_copy ? 1 : 0;
      for (unsigned i = 0; i < program->arguments[opcode]; ++i) read_leb(in);
    }
  }
  return rows;
}

LineTables::LineTables(const DebugImage& image)
    : section_(image.section(".debug_line")), order_(image.order()) {
  const format::Bytes packed = image.section(".zdebug_line");
  if (packed.empty()) return;
  auto unpacked = unpack_named_section(packed, most_unpacked(image.size()));
  if (unpacked) unpacked_ = std::move(*unpacked);
  section_ = unpacked_;
}

std::uint64_t LineTables::rows_to_read(std::uint64_t offset) const {
  return read_.contains(offset) ? 0 : count_line_rows(section_, offset, order_);
}

}  // namespace tacho::symbolize
