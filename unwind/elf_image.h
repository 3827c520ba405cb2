// Reads the parts of an ELF file that unwinding needs: loaded segments, a few sections, single words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/elf.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"

namespace tacho::unwind {

class ElfImage {
 public:
  enum class Width : std::uint8_t { Only64, Any };  // Only64: 32-bit files are an error
  // The errors do not name the file.
  static Result<ElfImage> open(format::Fd file, Width width = Width::Only64);
  // Reads `size` bytes at an offset; fewer: there are no more. Nothing: they cannot be read.
  using ReadAt = std::function<std::optional<std::vector<std::byte>>(std::uint64_t offset, std::size_t size)>;
  static Result<ElfImage> open(ReadAt read, std::uint64_t file_size, Width width = Width::Only64);
  static Result<ElfImage> in_memory(std::vector<std::byte> bytes, Width width = Width::Only64);

  struct Section {
    std::uint64_t address = 0;
    std::vector<std::byte> bytes;
    bool is_packed = false;  // SHF_COMPRESSED: the bytes start with an Elf64_Chdr
  };
  // Where a section is loaded, in ELF addresses, and its size in the file. Nothing: there is none of that
  // name.
  struct Place {
    std::uint64_t address = 0, size = 0;
  };
  std::optional<Place> section_place(std::string_view name) const;
  bool has_sections() const { return !sections_.empty(); }
  const std::vector<format::ElfSegment>& segments() const { return segments_; }
  // Nothing: there is none of that name, or it cannot be read.
  std::optional<Section> section(std::string_view name) const;
  // The segment PT_GNU_EH_FRAME, for files without section headers.
  std::optional<Section> eh_frame_header_segment() const;
  // The loaded bytes from an address to the end of its segment.
  std::optional<Section> loaded_from(std::uint64_t address) const;

  // Empty: it has none.
  format::BuildId build_id() const;
  // The file name in .gnu_debuglink; empty: there is none, or it is a path.
  std::string debuglink() const;

  // The ELF address of the code at `offset` of the file.
  std::optional<std::uint64_t> code_address(std::uint64_t offset) const;
  // The file's code: ELF address, offset in the file, bytes.
  struct Code {
    std::uint64_t address = 0, offset = 0, size = 0;
  };
  std::vector<Code> code_segments() const;
  // The `size` bytes at an offset, 4 or 8; nothing past the end of the file.
  std::optional<std::uint64_t> word(std::uint64_t offset, std::uint8_t size = 8) const;
  std::uint8_t address_size() const { return header_.is_64 ? 8 : 4; }
  std::endian order() const { return header_.order; }
  std::uint16_t machine() const { return header_.machine; }  // EM_X86_64
  std::uint64_t file_size() const { return size_; }
  // The ELF address of the entry point; 0: none.
  std::uint64_t entry() const { return header_.entry; }

 private:
  Result<> parse(Width width);
  const format::ElfSection* find_section(std::string_view name) const;
  // All of `size` bytes, or nothing.
  std::optional<std::vector<std::byte>> read_bytes(std::uint64_t offset, std::uint64_t size) const;

  ReadAt read_;
  std::vector<std::byte> memory_;  // for in_memory()
  std::uint64_t size_ = 0;
  format::ElfHeader header_;
  std::vector<format::ElfSegment> segments_;
  std::vector<format::ElfSection> sections_;
  std::vector<std::byte> section_names_;
};

}  // namespace tacho::unwind
