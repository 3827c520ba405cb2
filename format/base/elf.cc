#include "format/base/elf.h"

#include <elf.h>

#include <algorithm>

#include "format/base/file.h"

namespace tacho::format {

std::optional<ElfHeader> ElfHeader::parse(Bytes start) {
  Cursor identity(start);
  const Bytes ident = identity.take_bytes(EI_NIDENT);
  if (identity.failed() || as_text(ident.first(SELFMAG)) != std::string_view(ELFMAG, SELFMAG))
    return std::nullopt;
  const auto width = std::to_integer<unsigned>(ident[EI_CLASS]);
  if (width != ELFCLASS32 && width != ELFCLASS64) return std::nullopt;
  ElfHeader header;
  header.is_64 = width == ELFCLASS64;
  header.order = ident[EI_DATA] == std::byte{ELFDATA2MSB} ? std::endian::big : std::endian::little;
  Cursor in(identity.rest(), header.order);
  header.type = in.u16();
  header.machine = in.u16();
  in.u32();  // version
  header.entry = header.word(in);
  header.segments_at = header.word(in);
  header.sections_at = header.word(in);
  in.skip(6);  // flags, size of this header
  header.segment_size = in.u16();
  header.segment_count = in.u16();
  header.section_size = in.u16();
  header.section_count = in.u16();
  header.names = in.u16();
  return in.failed() ? std::nullopt : std::optional(header);
}

void ElfHeader::take_large_counts(Bytes table) {
  Cursor in(table.first(std::min<std::size_t>(table.size(), section_size)), order);
  in.skip(4);  // name
  const bool is_null = in.u32() == SHT_NULL;
  for (int i = 0; i < 3; ++i) word(in);  // flags, address, offset
  const std::uint64_t size = word(in);
  const std::uint32_t link = in.u32(), info = in.u32();
  if (in.failed() || !is_null || sections_at == 0) return;
  if (section_count == 0) section_count = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, ~0U));
  if (segment_count == PN_XNUM) segment_count = info;
  if (names == SHN_XINDEX) names = link;
}

std::vector<ElfSegment> ElfHeader::segments(Bytes table) const {
  std::vector<ElfSegment> found;
  for (Cursor all(table); segment_size > 0 && found.size() < segment_count && all.left() >= segment_size;) {
    Cursor in(all.take_bytes(segment_size), order);
    ElfSegment segment;
    segment.type = in.u32();
    if (is_64) segment.flags = in.u32();
    segment.offset = word(in);
    segment.address = word(in);
    word(in);  // physical address
    segment.file_size = word(in);
    word(in);  // size in memory
    if (!is_64) segment.flags = in.u32();
    if (in.failed()) break;
    found.push_back(segment);
  }
  return found;
}

std::vector<ElfSection> ElfHeader::sections(Bytes table) const {
  std::vector<ElfSection> found;
  for (Cursor all(table); section_size > 0 && found.size() < section_count && all.left() >= section_size;) {
    Cursor in(all.take_bytes(section_size), order);
    ElfSection section;
    section.name = in.u32();
    section.type = in.u32();
    section.flags = word(in);
    section.address = word(in);
    section.offset = word(in);
    section.size = word(in);
    section.link = in.u32();
    if (in.failed()) break;
    found.push_back(section);
  }
  return found;
}

std::optional<ElfView> ElfView::parse(Bytes file) {
  auto header = ElfHeader::parse(file.first(std::min(file.size(), ElfHeader::kLongest)));
  if (!header) return std::nullopt;
  ElfView view;
  view.file_ = file;
  const auto from = [file](std::uint64_t offset) {
    return offset < file.size() ? file.subspan(static_cast<std::size_t>(offset)) : Bytes();
  };
  header->take_large_counts(from(header->sections_at));
  view.header_ = *header;
  view.segments_ = header->segments(from(header->segments_at));
  view.sections_ = header->sections(from(header->sections_at));
  if (header->names < view.sections_.size()) view.names_ = view.content(view.sections_[header->names]);
  return view;
}

Bytes ElfView::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > file_.size() || size > file_.size() - offset) return {};
  return file_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

Bytes ElfView::content(const ElfSection& section) const {
  return section.type == SHT_NOBITS || section.type == SHT_NULL ? Bytes()
                                                                : part(section.offset, section.size);
}

std::optional<std::uint64_t> ElfView::offset_of(std::uint64_t address) const {
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_LOAD || address < segment.address ||
        address - segment.address >= segment.file_size)
      continue;
    const std::uint64_t offset = segment.offset + (address - segment.address);
    return offset < file_.size() ? std::optional(offset) : std::nullopt;
  }
  return std::nullopt;
}

ElfSymbol ElfView::symbol(Cursor& in, Bytes names) const {
  ElfSymbol symbol;
  symbol.name = text(names, in.u32());
  if (!header_.is_64) {
    symbol.value = in.u32();
    in.u32();  // size
  }
  symbol.info = in.u8();
  in.u8();  // visibility
  symbol.section = in.u16();
  if (header_.is_64) {
    symbol.value = in.u64();
    in.u64();
  }
  return symbol;
}

}  // namespace tacho::format
