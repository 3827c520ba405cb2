// --as-perf: the bytes of perf 6.1, or of stackcollapse-perf.pl, also where they are wrong. Without the option
// every view shows what is right. Everything that the option changes is decided here; a view asks one of these
// and never for the option itself. docs/comparing-with-perf.md lists them for users.
#pragma once

#include "report/output/printable.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

struct PerfBytes {
  bool is_asked_for = false;  // for what refuses the option
};

// `names`: how names are printed; `symbols`: how addresses get them.
inline PerfBytes ask_for_perf_bytes(Names& names, symbolize::SymbolOptions& symbols) {
  names = Names::Raw;
  symbols.callers = symbolize::Callers::ByReturnAddress;
  symbols.stand_in = symbolize::StandIn::AtFirst;
  return {.is_asked_for = true};
}

}  // namespace tacho::report
