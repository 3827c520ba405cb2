// Call frame information and its expressions: bytes as a section of either kind, and as a whole ELF file.
#include <cstdlib>
#include <span>
#include <vector>

#include "symbolize/unwind/dwarf_expression.h"
#include "symbolize/unwind/unwind_module.h"

using namespace tacho::symbolize;
using namespace tacho::unwind;

namespace {

class FrameRegisters final : public ExpressionContext {
 public:
  std::optional<std::uint64_t> register_value(std::uint64_t number) const override { return number * 4096; }
  std::optional<std::uint64_t> memory(std::uint64_t address) const override {
    return address % 3 == 0 ? std::nullopt : std::optional(address);
  }
};

void walk_section(tacho::format::Bytes bytes, CfiForm form) {
  const CfiSection section{bytes, 0x1000, form, std::endian::little};
  for (const FdeRange& range : list_fdes(section)) {
    const auto fde = parse_fde(section, range.offset);
    if (!fde || fde->start != range.start || fde->end != range.end) std::abort();
    for (const std::uint64_t pc : {range.start, range.start + 1, range.end - 1}) {
      const auto row = evaluate_cfi(section, *fde, pc);
      if (!row) continue;
      (void)evaluate_expression(row->cfa.expression, 0, FrameRegisters());
      for (const SavedRegister& saved : row->saved) {
        if (saved.number >= kRegisterCount) std::abort();
        (void)evaluate_expression(saved.rule.expression, 8, FrameRegisters());
      }
    }
  }
}

void walk_file(tacho::format::Bytes bytes) {
  auto image = ElfImage::in_memory({bytes.begin(), bytes.end()}, ElfImage::Width::Any);
  if (!image) return;
  for (auto make : {CfiTable::from_eh_frame, CfiTable::from_debug_frame}) {
    auto table = make(*image);
    for (std::uint64_t offset = 0; table && offset < bytes.size(); offset += 16) {
      if (const auto address = image->code_address(offset)) (void)table->find_rules(*address);
      (void)table->find_rules(offset);
      (void)image->word(offset);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)evaluate_expression(bytes, 1, FrameRegisters());
  walk_section(bytes, CfiForm::EhFrame);
  walk_section(bytes, CfiForm::DebugFrame);
  walk_file(bytes);
  return 0;
}
