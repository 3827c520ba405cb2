// --as-perf: print the same bytes as perf 6.1 or stackcollapse-perf.pl, even where these are wrong. This
// struct has a member for each thing that the option changes; views test the member and not the option.
// docs/comparing-with-perf.md lists the differences for users.
#pragma once

#include "report/output/text_output.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

struct PerfBytes {
  bool is_asked_for = false;  // the option was given
  // folded: stacks as stackcollapse-perf.pl parses them from perf's text. The thread's name is the first word
  // that looks like one, function names are cut where the script cuts them, and all samples are counted under
  // the first event.
  bool folds_as_perl = false;
  // script: BPF payloads are dumped in hexadecimal although their fields are known, and stacks are the ones
  // that the kernel recorded with the sample and not those in the payload.
  bool dumps_payloads = false;
  // report: events whose periods are all 0 have 0.00 % in every row, as each of their samples weighs 0.
  bool keeps_zero_periods = false;
  // report: siblings of equal weight in call graphs are sorted by address, the highest first.
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
