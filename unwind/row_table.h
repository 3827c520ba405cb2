// Compiles a module's call frame information to a compact table for the unwinder: 8 bytes for each change of
// rules, sorted by address; equal neighbours are merged. Of x86-64 and arm64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "format/base/result.h"
#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/fde_index.h"
#include "unwind/unwind_row.h"

namespace tacho::unwind {

using Row = tacho_unwind_row;

// The size of the code at the entry point, up to its call: without an FDE it is treated as the outermost
// frame.
inline constexpr std::uint64_t kEntryBytes = 64;

// Limits against hostile call frame information.
struct RowLimits {
  std::size_t most_rows = std::size_t{1} << 22;  // libclang-cpp, 59 MB, has 1.0 million
  std::function<bool()> stop = {};               // polled; true ends it
};

struct RowTable {
  std::uint64_t base = 0;  // ELF address to which rows are relative
  std::vector<Row> rows;   // the last one is of kind NOTHING; empty: no function has rules
  std::size_t functions = 0;
  std::size_t others = 0;  // rows of kind OTHER

  // The row for an ELF address; null before the first row.
  const Row* find_row(std::uint64_t pc) const;
};

// Errors: too many rows; stopped by `stop`. `index`: of the section; without one, or where it is damaged, the
// FDEs are listed and sorted.
Result<RowTable> build_row_table(const CfiSection& section, const RowLimits& limits = {},
                                 const FdeIndex* index = nullptr);
// The same for a section .sframe (sframe.h) with the address `address`.
Result<RowTable> build_row_table(format::Bytes sframe, std::uint64_t address, const RowLimits& limits = {});
// From .eh_frame and, where that has no rules, from .debug_frame of the file and of its separate debug file
// `debug` (null: none); or else from .sframe. Empty: no function has rules.
Result<RowTable> row_table_of(const ElfImage& image, const RowLimits& limits = {},
                              const ElfImage* debug = nullptr);

// Nothing: rows cannot hold the rules of the image's machine.
std::optional<CfiMachine> machine_of(const ElfImage& image);
// Converts rules to a row (kind, cfa and rbp) with `pc` 0.
Row compact_row(const CfiRow& rules, CfiMachine machine);
// Converts the rule of a register to the form of a row's `rbp`.
std::int8_t compact_place(const Rule& rule);

}  // namespace tacho::unwind
