// Every address that the samples of a capture hit, with what is known of it here.
#pragma once

#include <cstddef>

#include "format/symbol_pack.h"
#include "report/samples/session.h"

namespace tacho::report {

struct GatheredSymbols {
  format::SymbolPack pack;
  std::size_t addresses = 0;  // distinct places that samples hit
  std::size_t named = 0;      // of these, with a function
};

// Options that packing needs of a session, whatever the user says.
void set_for_gathering(SessionOptions& options);
// Reads the whole capture.
GatheredSymbols gather_symbols(Session& session, format::PackLevel level);

}  // namespace tacho::report
