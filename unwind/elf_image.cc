#include "unwind/elf_image.h"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tacho::unwind {
namespace {

constexpr std::uint64_t kLargestSection = std::uint64_t{1} << 29;  // bytes; browsers have 20 MB of .eh_frame
constexpr std::size_t kMagicSize = 4;
constexpr std::array<std::byte, kMagicSize> kMagic{std::byte{0x7f}, std::byte{'E'}, std::byte{'L'},
                                                   std::byte{'F'}};

}  // namespace

Result<ElfImage> ElfImage::open(format::Fd file, Width width) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error{"is not a regular file", EINVAL};
  ElfImage image;
  image.file_ = std::move(file);
  image.size_ = static_cast<std::uint64_t>(status.st_size);
  if (auto parsed = image.parse(width); !parsed) return std::move(parsed.error());
  return image;
}

Result<ElfImage> ElfImage::in_memory(std::vector<std::byte> bytes, Width width) {
  ElfImage image;
  image.size_ = bytes.size();
  image.memory_ = std::move(bytes);
  if (auto parsed = image.parse(width); !parsed) return std::move(parsed.error());
  return image;
}

std::optional<std::vector<std::byte>> ElfImage::read(std::uint64_t offset, std::uint64_t size) const {
  if (offset > size_ || size > size_ - offset || size > kLargestSection) return std::nullopt;
  if (!file_) {
    const auto part =
        format::Bytes(memory_).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    return std::vector<std::byte>(part.begin(), part.end());
  }
  auto bytes = format::read_at(file_.get(), offset, static_cast<std::size_t>(size));
  if (!bytes || bytes->size() != size) return std::nullopt;
  return std::move(*bytes);
}

Result<> ElfImage::parse(Width width) {
  const auto ident = read(0, EI_NIDENT);
  if (!ident || !std::ranges::equal(format::Bytes(*ident).first(kMagicSize), kMagic))
    return Error{"is not an ELF file"};
  const bool is_32_bit = (*ident)[EI_CLASS] == std::byte{ELFCLASS32};
  if (!is_32_bit && (*ident)[EI_CLASS] != std::byte{ELFCLASS64}) return Error{"is not an ELF file"};
  if (is_32_bit && width == Width::Only64) return Error{"is not a 64-bit ELF file"};
  if (is_32_bit) address_size_ = 4;
  const auto head = read(0, is_32_bit ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr));
  if (!head) return Error{"is not an ELF file"};
  order_ = (*head)[EI_DATA] == std::byte{ELFDATA2MSB} ? std::endian::big : std::endian::little;
  format::Cursor in(*head, order_);
  in.skip(EI_NIDENT);
  in.skip(sizeof(std::uint16_t) * 2 + sizeof(std::uint32_t));  // type, machine, version
  entry_ = read_address(in);
  const std::uint64_t segments = read_address(in), sections = read_address(in);
  in.u32();  // flags
  in.u16();  // size of this header
  const std::uint16_t segment_size = in.u16(), segment_count = in.u16();
  const std::uint16_t section_size = in.u16(), section_count = in.u16(), names = in.u16();
  if (segment_size == (is_32_bit ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr)))
    parse_segments(segments, std::uint64_t{segment_count} * segment_size);
  if (section_size == (is_32_bit ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr)))
    parse_sections(sections, std::uint64_t{section_count} * section_size, names);
  return Done{};
}

std::uint64_t ElfImage::read_address(format::Cursor& in) const {
  return address_size_ == 4 ? in.u32() : in.u64();
}

void ElfImage::parse_segments(std::uint64_t offset, std::uint64_t size) {
  const auto table = read(offset, size);
  if (!table) return;
  format::Cursor in(*table, order_);
  while (in.left() > 0) {
    Segment& segment = segments_.emplace_back();
    segment.type = in.u32();
    if (address_size_ == 8) segment.flags = in.u32();
    segment.offset = read_address(in);
    segment.address = read_address(in);
    read_address(in);  // physical address
    segment.file_size = read_address(in);
    read_address(in);  // size in memory
    if (address_size_ == 4) segment.flags = in.u32();
    read_address(in);  // alignment
  }
}

void ElfImage::parse_sections(std::uint64_t offset, std::uint64_t size, std::uint16_t names) {
  const auto table = read(offset, size);
  if (!table) return;
  format::Cursor in(*table, order_);
  while (in.left() > 0) {
    SectionHeader& section = sections_.emplace_back();
    section.name = in.u32();
    section.type = in.u32();
    section.flags = read_address(in);
    section.address = read_address(in);
    section.offset = read_address(in);
    section.size = read_address(in);
    in.u64();          // link, info
    read_address(in);  // alignment
    read_address(in);  // size of an entry
  }
  if (names >= sections_.size() || sections_[names].type == SHT_NOBITS) return;
  section_names_ = read(sections_[names].offset, sections_[names].size).value_or(std::vector<std::byte>{});
}

std::optional<ElfImage::Section> ElfImage::section(std::string_view name) const {
  for (const SectionHeader& header : sections_) {
    // No further than the name is long: a table without ends must not be walked through for each section.
    if (header.name >= section_names_.size() || section_names_.size() - header.name <= name.size()) continue;
    const std::byte* const at = section_names_.data() + header.name;
    if (std::memcmp(at, name.data(), name.size()) != 0 || at[name.size()] != std::byte{0}) continue;
    if (header.type == SHT_NOBITS) return std::nullopt;
    auto bytes = read(header.offset, header.size);
    if (!bytes) return std::nullopt;
    return Section{header.address, std::move(*bytes), (header.flags & SHF_COMPRESSED) != 0};
  }
  return std::nullopt;
}

std::optional<ElfImage::Section> ElfImage::eh_frame_header_segment() const {
  const auto found = std::ranges::find(segments_, std::uint32_t{PT_GNU_EH_FRAME}, &Segment::type);
  if (found == segments_.end()) return std::nullopt;
  auto bytes = read(found->offset, found->file_size);
  if (!bytes) return std::nullopt;
  return Section{found->address, std::move(*bytes), false};
}

std::optional<ElfImage::Section> ElfImage::loaded_from(std::uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (segment.type != PT_LOAD || address < segment.address) continue;
    const std::uint64_t inside = address - segment.address;
    if (inside >= segment.file_size) continue;
    auto bytes = read(segment.offset + inside, segment.file_size - inside);
    if (!bytes) return std::nullopt;
    return Section{address, std::move(*bytes), false};
  }
  return std::nullopt;
}

// A segment is mapped in whole pages, so a mapping's pages may hold bytes of several segments, and two
// mappings may show the same page: only the offset decides which segment is meant. Executable segments come
// first.
std::optional<std::uint64_t> ElfImage::code_address(std::uint64_t offset) const {
  const Segment* found = nullptr;
  for (const Segment& segment : segments_) {
    if (segment.type != PT_LOAD || offset < segment.offset || offset - segment.offset >= segment.file_size)
      continue;
    if (!found || (segment.flags & PF_X) > (found->flags & PF_X)) found = &segment;
  }
  return found ? std::optional(offset - found->offset + found->address) : std::nullopt;
}

std::vector<ElfImage::Code> ElfImage::code_segments() const {
  std::vector<Code> found;
  for (const Segment& segment : segments_) {
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0)
      found.push_back({segment.address, segment.offset, segment.file_size});
  }
  return found;
}

std::optional<std::uint64_t> ElfImage::word(std::uint64_t offset, std::uint8_t size) const {
  const auto bytes = read(offset, size);
  if (!bytes) return std::nullopt;
  format::Cursor in(*bytes, order_);
  return size == 4 ? in.u32() : in.u64();
}

}  // namespace tacho::unwind
