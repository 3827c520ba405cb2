// The debugging sections of an ELF file, checked and unpacked before libdw reads them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"

struct Elf;

namespace tacho::symbolize {

struct ElfEnd {
  void operator()(Elf* elf) const noexcept;
};
using OwnedElf = std::unique_ptr<Elf, ElfEnd>;

// The link to a supplementary file, which holds debugging information that several files share (dwz):
// .gnu_debugaltlink, or DWARF 5's .debug_sup.
struct SupplementaryFile {
  std::string path;               // as in the link: absolute, or relative to the file
  format::BuildId build_id;       // for .debug_sup: the checksum, which is in both files' sections
  bool is_supplementary = false;  // by .debug_sup: that file has no build id of its own
};

// An ELF file's debugging sections in memory, decompressed, at their offsets in the file and followed by
// zeros. libdw 0.188 reads strings to their NUL without checking the end of the section; the zeros end them.
class DebugImage {
 public:
  // Bytes of other sections are zeros. The error does not name the file.
  static Result<DebugImage> read(const format::Fd& file);

  struct Section {
    std::string name;
    format::Bytes bytes;
  };
  // An image of copies of these sections, for the machine of `like`.
  static Result<DebugImage> from_sections(std::span<const Section> sections, const DebugImage& like);

  // Valid as long as this.
  Elf* elf() const { return elf_.get(); }
  // Bytes of the file and of decompressed sections.
  std::uint64_t size() const { return size_; }
  // The decompressed bytes of the section with that name; empty: there is none.
  format::Bytes section(std::string_view name) const;
  std::endian order() const;

 private:
  std::unique_ptr<char, decltype(&std::free)> bytes_{nullptr, &std::free};
  std::uint64_t size_ = 0;
  OwnedElf elf_;
};

// The number of rows of the line table whose program begins at `offset` of `section` (.debug_line, DWARF 2 to
// 5) plus the files and directories in its header. Counting stops at damage. It limits what libdw decodes:
// each byte of a line number program can be a row, for which libdw takes a hundred bytes, and each byte of
// the header a file, which takes as much.
std::uint64_t count_line_rows(format::Bytes section, std::uint64_t offset, std::endian order);

// The line tables of one file, each counted once: units may share one.
class LineTables {
 public:
  LineTables() = default;
  // `image` must outlive it.
  explicit LineTables(const DebugImage& image);

  // How many rows libdw decodes to read the table at `offset`: none if it was read already.
  std::uint64_t rows_to_read(std::uint64_t offset) const;
  void set_read(std::uint64_t offset) { read_.insert(offset); }

 private:
  format::Bytes section_;
  std::vector<std::byte> unpacked_;  // decompressed .zdebug_line, to which section_ points
  std::endian order_ = std::endian::little;
  std::unordered_set<std::uint64_t> read_;
};

}  // namespace tacho::symbolize
