#include "symbolize/elf/line_program.h"

#include <dwarf.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "symbolize/files/packed_section.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint32_t kLongUnit = 0xffffffff;  // the size follows in 64 bits
constexpr std::uint8_t kMore = 0x80;             // of a LEB128 byte: another one follows

struct Program {
  format::Bytes opcodes;
  std::uint64_t names = 0;                       // files and folders
  std::uint8_t first_special = 1;                // opcodes from here on make a row each
  std::array<std::uint8_t, 256> arguments = {};  // LEB128 numbers behind each opcode below
};

std::uint64_t read_leb(format::Cursor& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = in.u8();
    if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & kMore) == 0) return value;
  }
}

// Passes the next text; false when it is empty.
bool skip_text(format::Cursor& in) {
  std::uint64_t size = 0;
  while (in.u8() != 0) ++size;
  return size != 0;
}

// DWARF 2 to 4: folders up to an empty one, and files, each with three numbers.
std::uint64_t count_names(format::Cursor in) {
  std::uint64_t names = 0;
  while (skip_text(in)) ++names;
  for (; skip_text(in); ++names)
    for (int i = 0; i < 3; ++i) read_leb(in);
  return names;
}

void skip_form(format::Cursor& in, std::uint64_t form, bool is_long) {
  switch (form) {
    case DW_FORM_string:
      skip_text(in);
      return;
    case DW_FORM_udata:
      read_leb(in);
      return;
    case DW_FORM_block:
      return in.skip(read_leb(in));
    case DW_FORM_data1:
      return in.skip(1);
    case DW_FORM_data2:
      return in.skip(2);
    case DW_FORM_data4:
      return in.skip(4);
    case DW_FORM_data8:
      return in.skip(8);
    case DW_FORM_data16:
      return in.skip(16);
    default:  // an offset into a section of texts
      return in.skip(is_long ? 8 : 4);
  }
}

// DWARF 5: a list of folders and one of files, each behind a description of its entries.
std::uint64_t count_described_names(format::Cursor in, bool is_long) {
  std::uint64_t names = 0;
  for (int list = 0; list < 2; ++list) {
    std::vector<std::uint64_t> forms(in.u8());
    for (std::uint64_t& form : forms) {
      read_leb(in);  // its operand
      form = read_leb(in);
    }
    const std::uint64_t count = read_leb(in);
    if (forms.empty()) continue;  // nothing is read
    for (std::uint64_t i = 0; i < count && in.left() > 0; ++i, ++names)
      for (const std::uint64_t form : forms) skip_form(in, form, is_long);
  }
  return names;
}

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
  program.names = version >= 5 ? count_described_names(header, is_long) : count_names(header);
  return program;
}

}  // namespace

std::uint64_t count_line_rows(format::Bytes section, std::uint64_t offset, std::endian order) {
  const auto program = read_header(section, offset, order);
  if (!program) return 0;
  std::uint64_t rows = program->names;
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
