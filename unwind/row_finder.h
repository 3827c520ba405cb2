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
  // The error says why the file has no rows. `stop` is polled while a file without index, or with .sframe
  // only, is read; true ends it.
  static Result<RowFinder> create(const ElfImage& image, const std::function<bool()>& stop = {});

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
  RowFinder(ElfImage::Section frames, CfiForm form) : frames_(std::move(frames)), form_(form) {}
  explicit RowFinder(RowTable table) : table_(std::move(table)) {}
  static Result<RowFinder> from_sframe(const ElfImage& image, const std::function<bool()>& stop);
  CfiSection section() const { return {frames_.bytes, frames_.address, form_, std::endian::little}; }
  std::optional<std::uint64_t> fde_offset(std::uint64_t address);
  Found evaluate(std::uint64_t address);

  ElfImage::Section frames_;
  CfiForm form_ = CfiForm::EhFrame;
  std::optional<RowTable> table_;  // of .sframe, which is read completely
  std::optional<FdeIndex> index_;
  std::optional<std::vector<FdeRange>> ranges_;  // if there is no index
  std::vector<ElfImage::Code> code_;
  std::uint64_t entry_ = 0;                         // the entry point, if it has no FDE; else 0
  std::unordered_map<std::uint64_t, Found> known_;  // by address
};

}  // namespace tacho::unwind
