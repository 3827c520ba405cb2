// Text page by page, as git shows it: only when standard output is a terminal, by TACHO_PAGER, else PAGER,
// else less where it is installed.
#pragma once

#include <cstdint>
#include <string>

#include "report/output/output_file.h"

namespace tacho::report {

enum class Paging : std::uint8_t {
  OnTerminal,
  Never,  // --no-pager
};

// The shell's line for the pager; empty: none. An empty variable and "cat" mean none.
std::string pager_command(const char* tacho_pager, const char* pager, bool has_less);

// Standard output, through a pager where one is wanted.
OutputFile standard_output(Paging paging);

}  // namespace tacho::report
