// Distinguishes places by their functions instead of their addresses.
#pragma once

#include <cstdint>
#include <functional>

#include "symbolize/address_space.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

struct NamesOf {
  // Returns the symbol table of a mapping; empty: places are distinguished by address.
  std::function<symbolize::Symbolizer::Names(const symbolize::Mapping&)> ask;
  bool of_chains = false;      // of the frames of call chains, and not of the samples' own places
  bool joins_unknown = false;  // places of a mapping's file that have no name are one
};

}  // namespace tacho::report
