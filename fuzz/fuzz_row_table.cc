// Compact unwind tables: from bytes as a section of each kind, and from a whole ELF file; single rows of it.
#include <cstdlib>
#include <span>

#include "unwind/row_finder.h"
#include "unwind/row_table.h"

using namespace tacho::unwind;

namespace {

void check(const tacho::Result<RowTable>& table, std::size_t most_rows) {
  if (!table) return;
  if (table->rows.size() > most_rows + 1) std::abort();
  for (std::size_t i = 0; i < table->rows.size(); ++i) {
    const Row& row = table->rows[i];
    if (row.kind > TACHO_UNWIND_LAST_APART) std::abort();
    if (i > 0 && table->rows[i - 1].pc >= row.pc) std::abort();
    if (table->find_row(table->base + row.pc) != &row) std::abort();
  }
  if (!table->rows.empty() && table->rows.back().kind != TACHO_UNWIND_NOTHING) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostRows = 4096;
  constexpr std::uint64_t kMostOffsets = 256;
  const auto bytes = std::as_bytes(std::span(data, size));
  const RowLimits limits{.most_rows = kMostRows};
  for (const CfiForm form : {CfiForm::EhFrame, CfiForm::DebugFrame})
    check(build_row_table({bytes, 0x1000, form, std::endian::little}, limits), kMostRows);
  check(build_row_table(bytes, 0x1000, limits), kMostRows);
  const auto image = ElfImage::in_memory({bytes.begin(), bytes.end()});
  if (!image) return 0;
  check(row_table_of(*image, limits), kMostRows);
  auto finder = RowFinder::create(*image);
  if (!finder) return 0;
  for (std::uint64_t offset = 0; offset < size && offset < kMostOffsets; ++offset)
    if (finder->row_at_offset(offset).row.kind > TACHO_UNWIND_LAST_APART) std::abort();
  return 0;
}
