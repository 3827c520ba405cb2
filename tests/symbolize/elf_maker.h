// ELF files with DWARF that no compiler would write, made in view of the test: 64-bit, little-endian, x86-64.
#pragma once

#include <dwarf.h>
#include <elf.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::symbolize::test {

struct ElfSection {
  std::string name;
  std::uint32_t type = SHT_PROGBITS;
  std::uint64_t flags = 0;
  std::string bytes;
  std::uint64_t address = 0;
  std::uint32_t link = 0;
  std::uint64_t entry_size = 0;
};

// `value` in `bytes` bytes, lowest first; zeros where there are more of them than a value has.
inline std::string number(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
  return text;
}

inline std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

// One loaded segment of a mebibyte, from the first byte of the file on.
inline std::string elf_file(std::vector<ElfSection> sections) {
  sections.insert(sections.begin(), ElfSection{.name = "", .type = SHT_NULL, .bytes = ""});
  sections.push_back({.name = ".shstrtab", .type = SHT_STRTAB, .bytes = ""});
  std::string& names = sections.back().bytes;
  std::vector<std::uint64_t> name_at;
  for (const ElfSection& one : sections) {
    name_at.push_back(names.size());
    names += one.name + '\0';
  }
  const std::uint64_t first = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  std::string body, rows;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const ElfSection& one = sections[i];
    rows += number(name_at[i], 4) + number(one.type, 4) + number(one.flags, 8) + number(one.address, 8);
    rows += number(first + body.size(), 8) + number(one.bytes.size(), 8) + number(one.link, 4) + number(0, 4);
    rows += number(1, 8) + number(one.entry_size, 8);
    body += one.bytes;
  }
  std::string head(
      "\x7f"
      "ELF\2\1\1");
  head.resize(EI_NIDENT);
  head += number(ET_DYN, 2) + number(EM_X86_64, 2) + number(1, 4) + number(0, 8);
  head += number(sizeof(Elf64_Ehdr), 8) + number(first + body.size(), 8) + number(0, 4);
  head += number(sizeof(Elf64_Ehdr), 2) + number(sizeof(Elf64_Phdr), 2) + number(1, 2);
  head += number(sizeof(Elf64_Shdr), 2) + number(sections.size(), 2) + number(sections.size() - 1, 2);
  head +=
      number(PT_LOAD, 4) + number(PF_R | PF_X, 4) + number(0, 24) + number(1 << 20, 8) + number(1 << 20, 8);
  head += number(0x1000, 8);
  return head + body + rows;
}

// DWARF 4, with addresses of 8 bytes and numbers below 128 alone, where those are of variable length.
inline std::string abbreviation(unsigned code, unsigned tag, bool has_children,
                                std::initializer_list<std::pair<unsigned, unsigned>> attributes) {
  std::string text = number(code, 1) + number(tag, 1) + number(has_children ? 1 : 0, 1);
  for (const auto& [name, form] : attributes) text += number(name, 1) + number(form, 1);
  return text + number(0, 2);
}

inline constexpr std::uint64_t kUnitStart = 0x1000, kUnitSize = 0x10000;
inline constexpr std::uint64_t kFirstEntry = 11 + 1 + 4 + 20;  // where the entries of unit() begin

// A compilation unit "a.c" around `entries`. Its abbreviation is the first one; `abbreviations` are those
// from 2 on.
inline std::vector<ElfSection> dwarf(const std::string& abbreviations, const std::string& entries,
                                     const std::string& ranges = "", const std::string& line_program = "") {
  const std::string unit = number(1, 1) + std::string("a.c") + '\0' + number(kUnitStart, 8) +
                           number(kUnitSize, 8) + number(0, 4) + entries + number(0, 1);
  const std::string head = number(4, 2) + number(0, 4) + number(8, 1);
  const std::string table = abbreviation(1, DW_TAG_compile_unit, true,
                                         {{DW_AT_name, DW_FORM_string},
                                          {DW_AT_low_pc, DW_FORM_addr},
                                          {DW_AT_high_pc, DW_FORM_data8},
                                          {DW_AT_stmt_list, DW_FORM_sec_offset}});
  // minimum_instruction_length 1, one operation each, is_stmt, lines from -5 on, 14 of them, 13 opcodes
  const std::string line_head = number(1, 1) + number(1, 1) + number(1, 1) + number(0xfb, 1) + number(14, 1) +
                                number(13, 1) + std::string("\0\1\1\1\1\0\0\0\1\0\0\1", 12) + number(0, 1) +
                                std::string("a.c\0\0\0\0", 7) + number(0, 1);
  const std::string lines = number(4, 2) + number(line_head.size(), 4) + line_head + line_program;
  return {{.name = ".debug_abbrev", .bytes = table + abbreviations + number(0, 1)},
          {.name = ".debug_info", .bytes = number(head.size() + unit.size(), 4) + head + unit},
          {.name = ".debug_line", .bytes = number(lines.size(), 4) + lines},
          {.name = ".debug_ranges", .bytes = ranges}};
}

// A line program: from the unit's start on, a row for each byte of `rows`, then the end.
inline std::string line_program(const std::string& rows) {
  return std::string("\0\x09\x02", 3) + number(kUnitStart, 8) + rows + std::string("\0\1\1", 3);
}

}  // namespace tacho::symbolize::test
