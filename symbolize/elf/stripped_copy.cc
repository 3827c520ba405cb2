#include "symbolize/elf/stripped_copy.h"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace tacho::symbolize {
namespace {

// Sections that are copied although they are not mapped.
constexpr std::array<std::string_view, 8> kKept = {".symtab",        ".strtab",       ".symtab_shndx",
                                                   ".shstrtab",      ".debug_frame",  ".zdebug_frame",
                                                   ".gnu_debugdata", ".gnu_debuglink"};
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kLongestName =
    32;  // bytes of a section name that are compared; those of kKept are shorter

class Copier {
 public:
  Copier(const format::Fd& file, std::uint64_t size, std::uint64_t most)
      : file_(file), size_(size), most_(most) {}

  Result<std::vector<std::byte>> copy() {
    if (auto done = read_head(); !done) return std::move(done.error());
    if (auto done = copy_segments(); !done) return std::move(done.error());
    if (auto done = copy_sections(); !done) return std::move(done.error());
    std::memcpy(out_.data(), &head_, sizeof head_);
    return std::move(out_);
  }

 private:
  static Error too_large() { return Error{"a copy of it would be too large", EFBIG}; }
  static Error damaged() { return Error{"it is no ELF file that can be copied"}; }

  // All of `size` bytes, or an error.
  Result<std::vector<std::byte>> read(std::uint64_t offset, std::uint64_t size) const {
    if (offset > size_ || size > size_ - offset) return damaged();
    if (size > most_) return too_large();
    auto bytes = format::read_at(file_.get(), offset, static_cast<std::size_t>(size));
    if (bytes && bytes->size() != size) return damaged();
    return bytes;
  }

  template <class Row>
  Result<std::vector<Row>> rows(std::uint64_t offset, std::size_t count) const {
    const auto bytes = read(offset, count * sizeof(Row));
    if (!bytes) return bytes.error();
    std::vector<Row> all(count);
    if (count != 0) std::memcpy(all.data(), bytes->data(), bytes->size());
    return all;
  }

  Result<> read_head() {
    const auto bytes = read(0, sizeof head_);
    if (!bytes) return bytes.error();
    std::memcpy(&head_, bytes->data(), sizeof head_);
    constexpr unsigned char kOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    const bool is_fit = std::memcmp(head_.e_ident, ELFMAG, SELFMAG) == 0 &&
                        head_.e_ident[EI_CLASS] == ELFCLASS64 && head_.e_ident[EI_DATA] == kOrder &&
                        (head_.e_phnum == 0 || head_.e_phentsize == sizeof(Elf64_Phdr));
    return is_fit ? Result<>(Done{}) : Result<>(damaged());
  }

  Result<> copy_segments() {
    const auto segments = rows<Elf64_Phdr>(head_.e_phoff, head_.e_phnum);
    if (!segments) return segments.error();
    std::uint64_t end =
        std::max<std::uint64_t>(sizeof head_, head_.e_phoff + segments->size() * sizeof(Elf64_Phdr));
    for (const Elf64_Phdr& segment : *segments) {
      if (segment.p_type != PT_LOAD && segment.p_type != PT_NOTE && segment.p_type != PT_GNU_EH_FRAME)
        continue;
      if (segment.p_offset > size_ || segment.p_filesz > size_ - segment.p_offset) return damaged();
      end = std::max<std::uint64_t>(end, segment.p_offset + segment.p_filesz);
    }
    if (end > most_) return too_large();
    auto bytes = read(0, end);
    if (!bytes) return std::move(bytes.error());
    out_ = std::move(*bytes);
    mapped_ = end;
    return Done{};
  }

  Result<> append(std::span<const std::byte> bytes, std::uint64_t& offset) {
    out_.resize((out_.size() + kAlignment - 1) / kAlignment * kAlignment);
    if (out_.size() > most_ || bytes.size() > most_ - out_.size()) return too_large();
    offset = out_.size();
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return Done{};
  }

  static std::string_view name_in(const std::vector<std::byte>& names, std::uint32_t at) {
    if (at >= names.size()) return {};
    const char* const begin = reinterpret_cast<const char*>(names.data()) + at;
    return {begin, ::strnlen(begin, std::min(names.size() - at, kLongestName))};
  }

  Result<> copy_sections() {
    const auto without = [this] {
      head_.e_shoff = 0;
      head_.e_shnum = head_.e_shstrndx = 0;
      return Done{};
    };
    if (head_.e_shnum == 0 || head_.e_shentsize != sizeof(Elf64_Shdr) || head_.e_shstrndx >= head_.e_shnum)
      return without();
    auto sections = rows<Elf64_Shdr>(head_.e_shoff, head_.e_shnum);
    if (!sections) return without();
    const Elf64_Shdr& of_names = (*sections)[head_.e_shstrndx];
    const auto names = read(of_names.sh_offset, of_names.sh_size);
    if (!names) return without();
    for (Elf64_Shdr& section : *sections)
      if (auto done = copy_section(*names, section); !done) return done;
    std::uint64_t table_offset = 0;
    if (auto done = append(std::as_bytes(std::span(*sections)), table_offset); !done) return done;
    head_.e_shoff = table_offset;
    return Done{};
  }

  Result<> copy_section(const std::vector<std::byte>& names, Elf64_Shdr& section) {
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) return Done{};
    const bool is_mapped = (section.sh_flags & SHF_ALLOC) != 0 && section.sh_offset <= mapped_ &&
                           section.sh_size <= mapped_ - section.sh_offset;
    if (is_mapped) return Done{};
    const bool is_kept = std::ranges::find(kKept, name_in(names, section.sh_name)) != kKept.end();
    auto bytes =
        is_kept ? read(section.sh_offset, section.sh_size) : Result<std::vector<std::byte>>(damaged());
    if (!bytes && bytes.error().code == EFBIG) return too_large();
    if (bytes) return append(*bytes, section.sh_offset);
    section.sh_type = SHT_NOBITS;
    section.sh_offset = section.sh_size = 0;
    return Done{};
  }

  const format::Fd& file_;
  std::uint64_t size_, most_, mapped_ = 0;
  Elf64_Ehdr head_{};
  std::vector<std::byte> out_;
};

}  // namespace

Result<std::vector<std::byte>> stripped_copy(const format::Fd& file, std::uint64_t most) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("the file", errno);
  return Copier(file, static_cast<std::uint64_t>(status.st_size), most).copy();
}

}  // namespace tacho::symbolize
