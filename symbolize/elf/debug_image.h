// The debugging sections of an ELF file in memory, unpacked, at the places that the file gives them, with
// zeroes behind. libdw 0.188 reads strings to their end without asking where their section ends: here that
// costs nothing.
#pragma once

#include <memory>

#include "format/file.h"
#include "format/result.h"

struct Elf;

namespace tacho::symbolize {

class DebugImage {
 public:
  // Other sections are not read: they look as if they held zeroes. The error does not name the file.
  static Result<DebugImage> read(const format::Fd& file);

  // As long as this lives.
  Elf* elf() const { return elf_.get(); }

 private:
  struct Free {
    void operator()(char* bytes) const noexcept;
  };
  struct End {
    void operator()(Elf* elf) const noexcept;
  };

  std::unique_ptr<char, Free> bytes_;
  std::unique_ptr<Elf, End> elf_;
};

}  // namespace tacho::symbolize
