// The pager for standard output, as in git: only on a terminal; TACHO_PAGER, else PAGER, else less if it is
// installed.
#pragma once

#include <cstdint>
#include <string>

#include "report/output/output_file.h"

namespace tacho::report {

enum class Paging : std::uint8_t {
  OnTerminal,
  Never,  // --no-pager
};

// The shell command of the pager; empty: none. An empty variable and "cat" mean none.
std::string pager_command(const char* tacho_pager, const char* pager, bool has_less);

// Standard output, through the pager if there is one.
OutputFile standard_output(Paging paging);

}  // namespace tacho::report
