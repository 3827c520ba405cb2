#include "symbolize/elf/kernel_core.h"

#include <algorithm>
#include <charconv>

namespace tacho::symbolize {
namespace {

constexpr std::size_t kCoreHeaderBytes = 64, kProgramHeaderBytes = 56;  // of 64-bit ELF files
constexpr std::uint64_t kMostNotes = std::uint64_t{1} << 20;            // bytes
constexpr std::size_t kMostSegments = 1024;
constexpr std::uint16_t kTypeCore = 4;
constexpr std::uint32_t kLoadSegment = 1, kNoteSegment = 4;
constexpr std::uint32_t kElfMagic = 0x464c457f;  // "\x7f" "ELF"
constexpr std::uint8_t kElfClass64 = 2;          // EI_CLASS
constexpr std::uint8_t kThisOrder = std::endian::native == std::endian::little ? 1 : 2;

// The value of a line "NAME=value"; empty: there is no such line.
std::string_view value_of(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == '=')
      return line.substr(name.size() + 1);
    at += line.size() + 1;
  }
  return {};
}

}  // namespace

Result<KernelCore> KernelCore::open(int file) {
  const Error wrong{"is no ELF core file of a 64-bit kernel"};
  const auto head = format::read_at(file, 0, kCoreHeaderBytes);
  if (!head) return head.error();
  format::Cursor in(*head);
  const bool is_elf = in.u32() == kElfMagic && in.u8() == kElfClass64 && in.u8() == kThisOrder;
  in.skip(10);
  const bool is_core = in.u16() == kTypeCore;
  in.skip(2 + 4 + 8);  // machine, version, entry
  const std::uint64_t headers = in.u64();
  in.skip(8 + 4 + 2);  // section headers, flags, size of this header
  const std::uint16_t size = in.u16(), count = in.u16();
  if (in.failed() || !is_elf || !is_core || size != kProgramHeaderBytes || count > kMostSegments)
    return wrong;
  const auto table = format::read_at(file, headers, std::size_t{size} * count);
  if (!table || table->size() != std::size_t{size} * count) return wrong;
  KernelCore core(file);
  format::Cursor rows(*table);
  for (std::uint16_t i = 0; i < count; ++i) {
    const std::uint32_t type = rows.u32();
    rows.skip(4);  // flags
    Segment one;
    one.offset = rows.u64();
    one.address = rows.u64();
    rows.skip(8);  // physical address
    one.size = rows.u64();
    rows.skip(8 + 8);  // size in memory, alignment
    if (type == kLoadSegment && one.size <= ~std::uint64_t{0} - one.address) core.segments_.push_back(one);
    if (type != kNoteSegment) continue;
    const auto notes =
        format::read_at(file, one.offset, static_cast<std::size_t>(std::min(one.size, kMostNotes)));
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
    const format::Bytes text = notes.take(padded(size));
    if (notes.failed()) return;
    if (name == "VMCOREINFO")
      read_kernel_facts(format::as_text(text.first(std::min<std::size_t>(size, text.size()))));
  }
}

void KernelCore::read_kernel_facts(std::string_view text) {
  if (const auto id = format::BuildId::from_hex(value_of(text, "BUILD-ID"))) build_id_ = *id;
  const std::string_view start = value_of(text, "SYMBOL(_stext)");
  std::uint64_t address = 0;
  const auto [end, failed] = std::from_chars(start.data(), start.data() + start.size(), address, 16);
  if (!start.empty() && failed == std::errc{} && end == start.data() + start.size()) text_start_ = address;
}

format::Bytes KernelCore::read(std::uint64_t address, std::size_t size) {
  const auto segment = std::ranges::find_if(segments_, [address](const Segment& one) {
    return address >= one.address && address - one.address < one.size;
  });
  if (segment == segments_.end()) return {};
  const std::uint64_t offset = address - segment->address;
  if (offset > ~std::uint64_t{0} - segment->offset) return {};
  auto bytes =
      format::read_at(file_, segment->offset + offset,
                      static_cast<std::size_t>(std::min<std::uint64_t>(size, segment->size - offset)));
  return bytes ? format::Bytes(read_.emplace_back(std::move(*bytes))) : format::Bytes();
}

}  // namespace tacho::symbolize
