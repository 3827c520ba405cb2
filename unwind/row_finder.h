// Makes single rows of a module's unwind table on demand, for the first frames of a module, whose whole table
// takes too long to make. The rows are equal to those of row_table.h.
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
  // The error says why the file has no rows. `stop` is asked while a file without index is read, or one that
  // has .sframe alone: true gives it up.
  static Result<RowFinder> create(const ElfImage& image, const std::function<bool()>& stop = {});
  RowFinder(RowFinder&&) = default;
  RowFinder& operator=(RowFinder&&) = default;

  // A row, and where the caller's rbx is saved, which rows have no room for: the dynamic linker's code finds
  // its frame by rbx.
  struct Found {
    tacho_unwind_row row{};
    std::int8_t rbx = TACHO_UNWIND_RBP_SAME;  // as `rbp` of rows
  };
  // The row of an offset in the file, as mappings know code; its `pc` is 0. Of kind NOTHING where no function
  // is described, OTHER where its description is damaged.
  Found row_at_offset(std::uint64_t offset);
  // The same of an ELF address.
  Found row_at(std::uint64_t address);
  std::size_t bytes() const;  // memory in use: sections of the file and rows made of them

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
  std::optional<RowTable> table_;  // of .sframe: reading all of it takes less than finding something in it
  std::optional<FdeIndex> index_;
  std::optional<std::vector<FdeRange>> ranges_;  // where there is no index
  std::vector<ElfImage::Code> code_;
  std::uint64_t entry_ = 0;                         // 0: it is described like all other code
  std::unordered_map<std::uint64_t, Found> known_;  // by address
};

}  // namespace tacho::unwind
