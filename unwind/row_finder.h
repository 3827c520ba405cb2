// Makes single unwind rows of a module on demand, when making the whole table (row_table.h) would take too
// long. They equal the rows of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/fde_index.h"
#include "unwind/row_table.h"
#include "unwind/unwind_row.h"

namespace tacho::unwind {

class RowFinder {
 public:
  // The error says why the file has no rows. `stop` is polled while a section without index, or with .sframe
  // only, is read; true ends it. `debug`: the separate debug file, for its .debug_frame; null: none.
  static Result<RowFinder> create(const ElfImage& image, const std::function<bool()>& stop = {},
                                  const ElfImage* debug = nullptr);

  // A row, and where the caller's rbx is saved, which is not in rows: code of the dynamic linker addresses
  // its frame by rbx.
  struct Found {
    tacho_unwind_row row{};
    std::int8_t rbx = TACHO_UNWIND_RBP_SAME;  // as `rbp` of rows
  };
  // The row for a file offset; its `pc` is 0. Of kind NOTHING: no function has rules there; OTHER: they are
  // damaged.
  Found row_at_offset(std::uint64_t offset);
  // The same for an ELF address.
  Found row_at(std::uint64_t address);
  std::size_t bytes() const;  // memory in use, by sections and rows

 private:
  static constexpr std::size_t kMostKnown = 1U << 12;  // rows
  // .eh_frame or .debug_frame.
  struct Frames {
    ElfImage::Section section;
    CfiForm form = CfiForm::EhFrame;
    std::optional<FdeIndex> index = {};
    CfiMachine machine = CfiMachine::X86_64;
    std::vector<FdeRange> ranges = {};  // if there is no index

    CfiSection view() const {
      return {section.bytes, section.address, form, std::endian::little, 8, machine};
    }
    // The last function that begins at or before the address.
    std::optional<Fde> fde_at(std::uint64_t address) const;
    std::size_t bytes() const;
  };
  RowFinder() = default;
  static Result<RowFinder> from_sframe(const ElfImage& image, const std::function<bool()>& stop);
  Result<> add_frames(Frames frames, const std::function<bool()>& stop);
  Found evaluate(std::uint64_t address);

  std::vector<Frames> frames_;     // the first one with rules for an address is used
  std::optional<RowTable> table_;  // of .sframe, which is read completely
  std::vector<ElfImage::Code> code_;
  std::uint64_t entry_ = 0;                         // the entry point, if it has no FDE; else 0
  std::unordered_map<std::uint64_t, Found> known_;  // by address
};

}  // namespace tacho::unwind
