#include "symbolize/elf/kernel_core.h"

#include <elf.h>

#include <algorithm>

#include "format/base/parse_text.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kMostNotes = std::uint64_t{1} << 20;  // bytes
constexpr std::size_t kMostSegments = 1024;

// The value of a line "NAME=value"; empty: there is no such line.
std::string_view value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = format::take_until(text, '\n');
    if (format::take_prefix(line, name) && format::take_prefix(line, "=")) return line;
  }
  return {};
}

}  // namespace

Result<KernelCore> KernelCore::open(int file) {
  const Error wrong{"is no ELF core file of a 64-bit kernel"};
  const auto head = format::read_at(file, 0, format::ElfHeader::kLongest);
  if (!head) return head.error();
  const auto header = format::ElfHeader::parse(*head);
  const bool is_core =
      header && header->is_64 && header->order == std::endian::native && header->type == ET_CORE;
  if (!is_core || header->segment_size != sizeof(Elf64_Phdr) || header->segment_count > kMostSegments)
    return wrong;
  const auto table =
      format::read_at(file, header->segments_at, static_cast<std::size_t>(header->segments_size()));
  if (!table || table->size() != header->segments_size()) return wrong;
  KernelCore core(file);
  for (const format::ElfSegment& segment : header->segments(*table)) {
    if (segment.type == PT_LOAD && segment.file_size <= ~segment.address) core.segments_.push_back(segment);
    if (segment.type != PT_NOTE) continue;
    const auto notes = format::read_at(file, segment.offset,
                                       static_cast<std::size_t>(std::min(segment.file_size, kMostNotes)));
    if (notes) core.read_notes(format::Cursor(*notes));
  }
  return core;
}

// {u32 namesz, descsz, type; name; desc}, each padded to 4.
void KernelCore::read_notes(format::Cursor notes) {
  const auto padded = [](std::uint32_t size) { return (std::uint64_t{size} + 3) / 4 * 4; };
  while (notes.left() != 0) {
    const std::uint32_t name_size = notes.u32(), size = notes.u32();
    notes.skip(4);
    const std::string_view name = notes.text(padded(name_size));
    const format::Bytes text = notes.take_bytes(padded(size));
    if (notes.failed()) return;
    if (name != "VMCOREINFO") continue;
    const std::string_view facts = format::as_text(text.first(std::min<std::size_t>(size, text.size())));
    if (const auto id = format::BuildId::from_hex(value_of(facts, "BUILD-ID"))) build_id_ = *id;
    const auto start = format::whole_number<std::uint64_t>(value_of(facts, "SYMBOL(_stext)"), 16);
    if (start) text_start_ = start;
  }
}

format::Bytes KernelCore::read_memory(std::uint64_t address, std::size_t size) {
  const auto segment = std::ranges::find_if(segments_, [address](const format::ElfSegment& one) {
    return address >= one.address && address - one.address < one.file_size;
  });
  if (segment == segments_.end()) return {};
  const std::uint64_t offset = address - segment->address;
  if (offset > ~segment->offset) return {};
  auto bytes =
      format::read_at(file_, segment->offset + offset,
                      static_cast<std::size_t>(std::min<std::uint64_t>(size, segment->file_size - offset)));
  return bytes ? format::Bytes(read_.emplace_back(std::move(*bytes))) : format::Bytes();
}

}  // namespace tacho::symbolize
