#include "unwind/elf_image.h"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace tacho::unwind {
namespace {

constexpr std::uint64_t kLargestSection = std::uint64_t{1} << 29;  // bytes; browsers have 20 MB of .eh_frame

constexpr std::uint64_t kLargestNotes = std::uint64_t{1} << 16;  // bytes

}  // namespace

Result<ElfImage> ElfImage::open(format::Fd file, Width width) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error{"is not a regular file", EINVAL};
  const auto read = [file = std::make_shared<format::Fd>(std::move(file))](std::uint64_t offset,
                                                                           std::size_t size) {
    auto bytes = format::read_at(file->get(), offset, size);
    return bytes ? std::optional(std::move(*bytes)) : std::nullopt;
  };
  return open(read, static_cast<std::uint64_t>(status.st_size), width);
}

Result<ElfImage> ElfImage::open(ReadAt read, std::uint64_t file_size, Width width) {
  ElfImage image;
  image.read_ = std::move(read);
  image.size_ = file_size;
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

std::optional<std::vector<std::byte>> ElfImage::read_bytes(std::uint64_t offset, std::uint64_t size) const {
  if (offset > size_ || size > size_ - offset || size > kLargestSection) return std::nullopt;
  if (!read_) {
    const auto part =
        format::Bytes(memory_).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    return std::vector<std::byte>(part.begin(), part.end());
  }
  auto bytes = read_(offset, static_cast<std::size_t>(size));
  if (!bytes || bytes->size() != size) return std::nullopt;
  return std::move(*bytes);
}

Result<> ElfImage::parse(Width width) {
  const auto start = read_bytes(0, std::min<std::uint64_t>(size_, format::ElfHeader::kLongest));
  const auto header = start ? format::ElfHeader::parse(*start) : std::nullopt;
  if (!header) return Error{"is not an ELF file"};
  if (!header->is_64 && width == Width::Only64) return Error{"is not a 64-bit ELF file"};
  header_ = *header;
  if (const auto first = read_bytes(header_.sections_at, header_.section_size))
    header_.take_large_counts(*first);
  if (const auto table = read_bytes(header_.segments_at, header_.segments_size()))
    segments_ = header_.segments(*table);
  if (const auto table = read_bytes(header_.sections_at, header_.sections_size()))
    sections_ = header_.sections(*table);
  if (header_.names < sections_.size() && sections_[header_.names].type != SHT_NOBITS)
    section_names_ = read_bytes(sections_[header_.names].offset, sections_[header_.names].size)
                         .value_or(std::vector<std::byte>{});
  return Done{};
}

const format::ElfSection* ElfImage::find_section(std::string_view name) const {
  for (const format::ElfSection& header : sections_) {
    // Compares only the name's length: a string table without NULs must not be scanned for each section.
    if (header.name >= section_names_.size() || section_names_.size() - header.name <= name.size()) continue;
    const std::byte* const at = section_names_.data() + header.name;
    if (std::memcmp(at, name.data(), name.size()) != 0 || at[name.size()] != std::byte{0}) continue;
    return header.type == SHT_NOBITS ? nullptr : &header;
  }
  return nullptr;
}

std::optional<ElfImage::Place> ElfImage::section_place(std::string_view name) const {
  const format::ElfSection* const found = find_section(name);
  return found != nullptr ? std::optional(Place{found->address, found->size}) : std::nullopt;
}

std::optional<ElfImage::Section> ElfImage::section(std::string_view name) const {
  const format::ElfSection* const found = find_section(name);
  if (found == nullptr) return std::nullopt;
  auto bytes = read_bytes(found->offset, found->size);
  if (!bytes) return std::nullopt;
  return Section{found->address, std::move(*bytes), (found->flags & SHF_COMPRESSED) != 0};
}

std::optional<ElfImage::Section> ElfImage::eh_frame_header_segment() const {
  const auto found = std::ranges::find(segments_, std::uint32_t{PT_GNU_EH_FRAME}, &format::ElfSegment::type);
  if (found == segments_.end()) return std::nullopt;
  auto bytes = read_bytes(found->offset, found->file_size);
  if (!bytes) return std::nullopt;
  return Section{found->address, std::move(*bytes), false};
}

format::BuildId ElfImage::build_id() const {
  const auto in_notes = [this](std::uint64_t offset, std::uint64_t size) {
    const auto notes = size <= kLargestNotes ? read_bytes(offset, size) : std::nullopt;
    return notes ? format::build_id_in_notes(*notes, header_.order) : std::nullopt;
  };
  for (const format::ElfSegment& segment : segments_)
    if (segment.type == PT_NOTE)
      if (const auto id = in_notes(segment.offset, segment.file_size)) return *id;
  for (const format::ElfSection& section : sections_)
    if (section.type == SHT_NOTE)
      if (const auto id = in_notes(section.offset, section.size)) return *id;
  return {};
}

std::string ElfImage::debuglink() const {
  const auto link = section(".gnu_debuglink");
  if (!link) return {};
  std::string name(format::text_of(link->bytes));
  return name.find('/') == std::string::npos ? name : std::string();
}

std::optional<ElfImage::Section> ElfImage::loaded_from(std::uint64_t address) const {
  for (const format::ElfSegment& segment : segments_) {
    if (segment.type != PT_LOAD || address < segment.address) continue;
    const std::uint64_t inside = address - segment.address;
    if (inside >= segment.file_size) continue;
    auto bytes = read_bytes(segment.offset + inside, segment.file_size - inside);
    if (!bytes) return std::nullopt;
    return Section{address, std::move(*bytes), false};
  }
  return std::nullopt;
}

// Segments are mapped in whole pages, so pages may contain bytes of several segments, and two mappings may
// have the same page: only the offset determines the segment. Executable segments come first.
std::optional<std::uint64_t> ElfImage::code_address(std::uint64_t offset) const {
  const format::ElfSegment* found = nullptr;
  for (const format::ElfSegment& segment : segments_) {
    if (segment.type != PT_LOAD || offset < segment.offset || offset - segment.offset >= segment.file_size)
      continue;
    if (!found || (segment.flags & PF_X) > (found->flags & PF_X)) found = &segment;
  }
  return found ? std::optional(offset - found->offset + found->address) : std::nullopt;
}

std::vector<ElfImage::Code> ElfImage::code_segments() const {
  std::vector<Code> found;
  for (const format::ElfSegment& segment : segments_) {
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0)
      found.push_back({segment.address, segment.offset, segment.file_size});
  }
  return found;
}

std::optional<std::uint64_t> ElfImage::word(std::uint64_t offset, std::uint8_t size) const {
  const auto bytes = read_bytes(offset, size);
  if (!bytes) return std::nullopt;
  format::Cursor in(*bytes, header_.order);
  return size == 4 ? in.u32() : in.u64();
}

}  // namespace tacho::unwind
