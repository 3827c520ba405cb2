// An ELF file's debugging sections in memory, decompressed, at their offsets in the file and followed by
// zeros. libdw 0.188 reads strings to their NUL without checking the end of the section; the zeros end them.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"

struct Elf;

namespace tacho::symbolize {

class DebugImage {
 public:
  // Other sections are not read; their bytes are zeros. The error does not name the file.
  static Result<DebugImage> read(const format::Fd& file);

  struct Section {
    std::string name;
    format::Bytes bytes;
  };
  // A file of copies of these sections, for the machine that `like` is for.
  static Result<DebugImage> made_of(std::span<const Section> sections, const DebugImage& like);

  // As long as this lives.
  Elf* elf() const { return elf_.get(); }
  // Bytes of the file and of what was unpacked.
  std::uint64_t size() const { return size_; }
  // The bytes of the section with that name, as unpacked; empty without one.
  format::Bytes section(std::string_view name) const;
  std::endian order() const;

 private:
  struct Free {
    void operator()(char* bytes) const noexcept;
  };
  struct End {
    void operator()(Elf* elf) const noexcept;
  };

  std::unique_ptr<char, Free> bytes_;
  std::uint64_t size_ = 0;
  std::unique_ptr<Elf, End> elf_;
};

}  // namespace tacho::symbolize
