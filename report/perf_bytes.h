// --as-perf: the bytes of perf 6.1, or of stackcollapse-perf.pl, also where they are wrong. Without the
// option every view shows what is right. Everything that the option changes is decided here; a view asks one
// of these and never for the option itself. docs/comparing-with-perf.md lists them for users.
#pragma once

#include "report/output/text_output.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

struct PerfBytes {
  bool is_asked_for = false;  // for what refuses the option
  // folded: stackcollapse-perf.pl's reading of perf's text. A thread's name is what a line seems to begin
  // with, names of functions are cut where one of another language would end, and of several events the first
  // has all samples.
  bool folds_as_perl = false;
  // script: BPF payloads whose fields are known are dumped in hexadecimal digits, and their stacks are those
  // that the kernel recorded with the sample.
  bool dumps_payloads = false;
  // report: events whose periods are all 0 have 0.00 % in every row, as each of their samples weighs 0.
  bool keeps_zero_periods = false;
  // report: siblings of equal weight in call graphs stand by where they lie, the highest first.
  bool orders_siblings = false;
  // Samples of guests (cpumode 4 and 5) are left out.
  bool leaves_out_guests = false;
};

// `names`: how names are printed; `symbols`: how addresses get them.
inline PerfBytes ask_for_perf_bytes(Names& names, symbolize::SymbolOptions& symbols) {
  names = Names::Raw;
  symbols.callers = symbolize::Callers::ByReturnAddress;
  symbols.stand_in = symbolize::StandIn::AtFirst;
  symbols.unwinds_32_bit = false;
  symbols.names_memory_files = false;
  symbols.unnamed = symbolize::Unnamed::Addresses;
  symbols.checks_inodes = false;
  return {.is_asked_for = true,
          .folds_as_perl = true,
          .dumps_payloads = true,
          .keeps_zero_periods = true,
          .orders_siblings = true,
          .leaves_out_guests = true};
}

// stackcollapse-perf.pl --inline asks addr2line for each address anew.
inline void take_addr2line_names(const PerfBytes& perf, symbolize::SymbolOptions& symbols) {
  if (perf.is_asked_for) symbols.stand_in = symbolize::StandIn::Always;
}

}  // namespace tacho::report
