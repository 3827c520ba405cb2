// Finds the FDE that covers an address by binary search in .eh_frame_hdr, without reading all of .eh_frame.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "unwind/elf_image.h"

namespace tacho::unwind {

// .eh_frame by its name or, in a file without section headers, by the pointer in PT_GNU_EH_FRAME. Nothing:
// there is none, or it is compressed.
std::optional<ElfImage::Section> eh_frame_of(const ElfImage& image);

class FdeIndex {
 public:
  // From .eh_frame_hdr or PT_GNU_EH_FRAME; nothing: it has no sorted table.
  static std::optional<FdeIndex> of(const ElfImage& image);

  // The last entry whose function starts at or before `pc`. The caller checks that the FDE exists and covers
  // `pc`.
  struct Entry {
    std::uint32_t number = 0;       // below size()
    std::uint64_t fde_address = 0;  // in ELF
  };
  std::optional<Entry> find_entry(std::uint64_t pc) const;
  // By number; entries are ascending by function.
  std::uint64_t fde_address(std::size_t number) const;
  std::size_t size() const { return static_cast<std::size_t>(count_); }
  std::size_t bytes() const { return section_.bytes.size(); }  // memory in use

 private:
  FdeIndex(ElfImage::Section section, std::endian order) : section_(std::move(section)), order_(order) {}
  std::int64_t number(std::uint64_t at) const;

  ElfImage::Section section_;
  std::endian order_;
  std::uint64_t first_ = 0, count_ = 0;  // of the entries: where in the section they begin, how many
};

}  // namespace tacho::unwind
