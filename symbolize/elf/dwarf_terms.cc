#include "symbolize/elf/dwarf_terms.h"

#include <dwarf.h>

#include <algorithm>
#include <array>

namespace tacho::symbolize {

bool names_are_the_linkers(int language) {
  constexpr std::array kPlain = {DW_LANG_C89,     DW_LANG_C,       DW_LANG_C99,           DW_LANG_C11,
                                 DW_LANG_Cobol74, DW_LANG_Cobol85, DW_LANG_Fortran77,     DW_LANG_Pascal83,
                                 DW_LANG_PLI,     DW_LANG_UPC,     DW_LANG_Mips_Assembler};
  return std::ranges::find(kPlain, language) != kPlain.end();
}

bool needs_shared_part(unsigned form) {
  constexpr std::array kForms = {DW_FORM_GNU_ref_alt, DW_FORM_GNU_strp_alt, DW_FORM_ref_sup4,
                                 DW_FORM_ref_sup8, DW_FORM_strp_sup};
  return std::ranges::find(kForms, static_cast<int>(form)) != kForms.end();
}

void add_range(AddressRanges& ranges, std::uint64_t start, std::uint64_t end) {
  constexpr std::size_t kLookedAt = 64;
  const std::size_t count = std::min(ranges.size(), kLookedAt);
  for (std::size_t i = 0; i < count; ++i) {
    if (start == ranges[i].second) {
      ranges[i].second = end;
      return;
    }
    if (end == ranges[i].first) {
      ranges[i].first = start;
      return;
    }
  }
  ranges.emplace_back(start, end);
}

}  // namespace tacho::symbolize
