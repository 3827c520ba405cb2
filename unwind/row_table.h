// Compiles a module's call frame information into a compact table for the BPF program that walks stacks: 8
// bytes for each change of rules, sorted by address; equal neighbours are merged. x86-64 only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "format/base/result.h"
#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/unwind_row.h"

namespace tacho::unwind {

using Row = tacho_unwind_row;

// The code at a program's entry point, up to the first call that does not return: without an FDE it counts as
// the outermost frame.
inline constexpr std::uint64_t kEntryBytes = 64;

// Limits against hostile call frame information.
struct RowLimits {
  std::size_t most_rows = std::size_t{1} << 22;  // libclang-cpp, 59 MB, has 1.0 million
  std::function<bool()> stop = {};               // asked between functions: true gives up
};

struct RowTable {
  std::uint64_t base = 0;  // ELF address from which rows count
  std::vector<Row> rows;   // the last one is of kind NOTHING; empty: no function is described
  std::size_t functions = 0;
  std::size_t others = 0;  // rows of kind OTHER

  // The row of an ELF address; null before the first one.
  const Row* find(std::uint64_t pc) const;
};

// Errors: too many rows; stopped by `stop`.
Result<RowTable> build_row_table(const CfiSection& section, const RowLimits& limits = {});
// The same of a section .sframe (sframe.h) that is mapped at `address`.
Result<RowTable> build_row_table(format::Bytes sframe, std::uint64_t address, const RowLimits& limits = {});
// From .eh_frame; where the file has none from .debug_frame, unpacked, or .sframe. An empty table when it has
// none.
Result<RowTable> row_table_of(const ElfImage& image, const RowLimits& limits = {});

// What a row can say of one row of rules: kind, cfa and rbp of `pc` 0.
Row compact_row(const CfiRow& rules);
// Where a register of the caller is, in the words of a row's `rbp`.
std::int8_t compact_place(const Rule& rule);

}  // namespace tacho::unwind
