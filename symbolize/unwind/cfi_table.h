// Looks up call frame rules of a module by address, and caches functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/fde_index.h"

namespace tacho::symbolize {

using unwind::CfaRule;
using unwind::CfiForm;
using unwind::CfiSection;
using unwind::ElfImage;
using unwind::FdeRange;
using unwind::Rule;
using unwind::RuleKind;
using unwind::UnwindRow;

class CfiTable {
 public:
  // From .eh_frame, through the sorted table in .eh_frame_hdr when that is there; or from .debug_frame.
  // Nothing when the file has no such section.
  static std::optional<CfiTable> from_eh_frame(const ElfImage& image);
  static std::optional<CfiTable> from_debug_frame(const ElfImage& image);

  // The rules at an ELF address; null when no function covers it or its program is damaged. They are
  // evaluated anew at each call, and live as long as the table.
  struct Found {
    const UnwindRow* row = nullptr;
    bool is_damaged = false;  // a function covers the address, but its rules cannot be read
  };
  Found find(std::uint64_t pc);

 private:
  CfiTable(ElfImage::Section section, CfiForm form, const ElfImage& image);
  CfiSection view() const { return {section_.bytes, section_.address, form_, order_, address_size_}; }
  std::optional<std::uint64_t> fde_offset(std::uint64_t pc);

  ElfImage::Section section_;
  CfiForm form_;
  std::endian order_;
  std::uint8_t address_size_;
  std::optional<unwind::FdeIndex> index_by_address_;
  std::optional<std::vector<FdeRange>> index_;  // when there is none of the file: made at the first question
  std::vector<std::unique_ptr<UnwindRow>> rows_;
};

}  // namespace tacho::symbolize
