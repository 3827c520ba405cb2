// Headers, sections and symbols of ELF files, of 32 or 64 bits and either byte order. Sizes are untrusted:
// parts outside of the file are empty.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::format {

struct ElfSegment {
  std::uint32_t type = 0, flags = 0;
  std::uint64_t offset = 0, address = 0, file_size = 0;
};

struct ElfSection {
  std::uint32_t name = 0, type = 0, link = 0;
  std::uint64_t flags = 0, address = 0, offset = 0, size = 0;
};

struct ElfSymbol {
  std::string_view name;
  std::uint8_t info = 0;
  std::uint16_t section = 0;
  std::uint64_t value = 0;

  std::uint8_t type() const { return info & 15; }
};

// The file header.
struct ElfHeader {
  static constexpr std::size_t kLongest = 64;  // bytes
  bool is_64 = true;
  std::endian order = std::endian::native;
  std::uint16_t type = 0, machine = 0;
  std::uint64_t entry = 0;
  std::uint64_t segments_at = 0, sections_at = 0;  // file offsets of the tables
  std::uint16_t segment_size = 0, section_size = 0;
  std::uint32_t segment_count = 0, section_count = 0;
  std::uint32_t names = 0;  // the section with the names of sections

  // Parses the first kLongest bytes of a file; nullopt: not an ELF header, or truncated.
  static std::optional<ElfHeader> parse(Bytes start);
  // Takes the numbers that do not fit into the header (of 65,280 sections or 65,535 segments, or more) from
  // the first section header. `table`: the table of sections, or its first entry.
  void take_large_counts(Bytes table);
  std::uint64_t segments_size() const { return std::uint64_t{segment_count} * segment_size; }
  std::uint64_t sections_size() const { return std::uint64_t{section_count} * section_size; }
  // Parse the tables, up to the end of `table`.
  std::vector<ElfSegment> segments(Bytes table) const;
  std::vector<ElfSection> sections(Bytes table) const;
  // An address or offset of the file's width.
  std::uint64_t word(Cursor& in) const { return is_64 ? in.u64() : in.u32(); }
};

// An ELF file in memory, or the start of one.
class ElfView {
 public:
  static std::optional<ElfView> parse(Bytes file);

  const ElfHeader& header() const { return header_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  // Empty for SHT_NOBITS, or if it is not completely in the file.
  Bytes content(const ElfSection& section) const;
  Bytes content(const ElfSegment& segment) const { return part(segment.offset, segment.file_size); }
  std::string_view name(const ElfSection& section) const { return text(names_, section.name); }
  // The file offset of a loaded address; nullopt if it is not in the file.
  std::optional<std::uint64_t> offset_of(std::uint64_t address) const;
  // Calls `seen` with each symbol of a symbol table, in order, until it returns true.
  template <class Seen>
  void each_symbol(const ElfSection& table, Seen&& seen) const {
    if (table.link >= sections_.size()) return;
    const Bytes names = content(sections_[table.link]);
    const std::size_t size = header_.is_64 ? 24 : 16;
    for (Cursor in(content(table), header_.order); in.left() >= size;)
      if (seen(symbol(in, names))) return;
  }

  // The string at an offset of a string table.
  static std::string_view text(Bytes table, std::uint32_t offset) {
    return offset < table.size() ? text_of(table.subspan(offset)) : std::string_view();
  }

 private:
  Bytes part(std::uint64_t offset, std::uint64_t size) const;
  ElfSymbol symbol(Cursor& in, Bytes names) const;

  Bytes file_, names_;
  ElfHeader header_;
  std::vector<ElfSegment> segments_;
  std::vector<ElfSection> sections_;
};

}  // namespace tacho::format
